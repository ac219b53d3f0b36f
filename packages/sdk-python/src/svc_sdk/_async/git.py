"""Repositories in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._client.git_call import (
    GitCall,
    credentials_of,
    explain_failure,
    explain_missing,
    folder_of,
    identity_of,
    refuse,
    require_name,
    require_revision,
    require_text,
    require_url,
)
from .._client.git_output import BRANCH_FORMAT, read_branches, read_status
from ..errors import SvcError
from ..git import GitAuth, GitAuthor, GitBranch, GitStatus
from .commands import AsyncCommands


class AsyncGit:
    """With the git of the sandbox's image. `path` is a folder of the repository, `user` who runs git.

    All raise `git_missing`, `not_a_repository` and `git_failed`; what talks to a remote raises
    `git_authentication_failed` too.
    """

    def __init__(self, commands: AsyncCommands, image: Callable[[], object]) -> None:
        self._commands = commands
        self._image = image

    async def clone(
        self,
        url: str,
        *,
        path: str | None = None,
        branch: str | None = None,
        depth: int | None = None,
        auth: GitAuth | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """Returns the path of the new repository: the last part of the address unless given, in the
        working directory. `branch` may be a tag. An address with credentials in it is refused: give
        `auth`."""
        target = require_text("path", folder_of(require_url(url)) if path is None else path)
        args = ["--quiet"]
        if branch is not None:
            args.append(f"--branch={require_name('branch', branch)}")
        if depth is not None:
            if not isinstance(depth, int) or depth < 1:
                raise refuse("depth", "is a whole number from 1 on")
            args.append(f"--depth={depth}")
        call = GitCall("clone", None, [*args, "--", url, target], auth=auth)
        await self._run(call, user, timeout_ms)
        top = await self._ask(target, user, timeout_ms, "rev-parse", "--show-toplevel")
        return top.rstrip("\n")

    async def status(
        self, path: str, *, user: str | None = None, timeout_ms: float | None = None
    ) -> GitStatus:
        args = ("--porcelain=v2", "--branch", "-z")
        return read_status(await self._ask(path, user, timeout_ms, "status", *args))

    async def add(
        self,
        path: str,
        files: Sequence[str] | None = None,
        *,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Takes all changes into the next commit, or those of `files`: paths as they are, without
        patterns."""
        if files is not None and (isinstance(files, str) or len(files) == 0):
            raise refuse("files", "is a list with paths in it: leave it out for all changes")
        names = [require_text("files", each) for each in files or ()]
        args = ["--all"] if files is None else ["--all", "--", *names]
        call = GitCall("add", path, args, settings=["--literal-pathspecs"])
        await self._run(call, user, timeout_ms)

    async def commit(
        self,
        path: str,
        message: str,
        *,
        author: GitAuthor | None = None,
        allow_empty: bool = False,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """Returns the id of the commit. `author` writes and commits it; what git is set to in the
        sandbox unless given."""
        flags = ["--allow-empty"] if allow_empty else []
        args = ["--quiet", *flags, f"--message={require_text('message', message)}"]
        call = GitCall("commit", path, args, settings=identity_of(author))
        await self._run(call, user, timeout_ms)
        return (await self._ask(path, user, timeout_ms, "rev-parse", "HEAD")).rstrip("\n")

    async def push(
        self,
        path: str,
        *,
        remote: str = "origin",
        branch: str | None = None,
        set_upstream: bool = False,
        auth: GitAuth | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """The current branch unless another is given. `set_upstream`: later pulls of the branch take
        from here."""
        flags = ["--quiet", "--set-upstream"] if set_upstream else ["--quiet"]
        what = "HEAD" if branch is None else f"refs/heads/{require_name('branch', branch)}"
        args = [*flags, "--", require_name("remote", remote), what]
        await self._run(GitCall("push", path, args, auth=auth), user, timeout_ms)

    async def pull(
        self,
        path: str,
        *,
        remote: str | None = None,
        branch: str | None = None,
        rebase: bool = False,
        auth: GitAuth | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """From where the branch was cloned or pushed to unless given. `rebase` puts own commits after
        those of the remote; otherwise a branch that has some of its own is refused."""
        args = ["--quiet", "--rebase" if rebase else "--ff-only", "--"]
        if remote is not None or branch is not None:
            args.append(require_name("remote", "origin" if remote is None else remote))
        if branch is not None:
            args.append(require_name("branch", branch))
        await self._run(GitCall("pull", path, args, auth=auth), user, timeout_ms)

    async def branches(
        self, path: str, *, user: str | None = None, timeout_ms: float | None = None
    ) -> tuple[GitBranch, ...]:
        """Those of the repository itself, by their names."""
        args = (BRANCH_FORMAT, "refs/heads")
        return read_branches(await self._ask(path, user, timeout_ms, "for-each-ref", *args))

    async def create_branch(
        self,
        path: str,
        name: str,
        *,
        start: str | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Makes a branch and does not switch to it. It begins at `start`, a branch or a commit; at the
        current commit unless given."""
        where = () if start is None else (require_revision("start", start),)
        args = ("--quiet", "--", require_name("name", name), *where)
        await self._ask(path, user, timeout_ms, "branch", *args)

    async def checkout(
        self, path: str, ref: str, *, user: str | None = None, timeout_ms: float | None = None
    ) -> None:
        """Switches to a branch, a tag or a commit. One that only a remote has is made first."""
        args = ("--quiet", require_revision("ref", ref), "--")
        await self._ask(path, user, timeout_ms, "checkout", *args)

    async def delete_branch(
        self,
        path: str,
        name: str,
        *,
        force: bool = False,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """One whose commits are in no other is refused, unless `force` is given."""
        args = ("--quiet", "-D" if force else "-d", "--", require_name("name", name))
        await self._ask(path, user, timeout_ms, "branch", *args)

    async def _ask(
        self, path: str, user: str | None, timeout_ms: float | None, command: str, *args: str
    ) -> str:
        return await self._run(GitCall(command, path, args), user, timeout_ms)

    async def _run(self, call: GitCall, user: str | None, timeout_ms: float | None) -> str:
        """What git prints."""
        settings, env = credentials_of(call.auth)
        where = [] if call.path is None else ["-C", require_text("path", call.path)]
        words = [*where, *call.settings, *settings, call.command, *call.args]
        try:
            result = await self._commands.run(
                "git", words, env=env, user=user, timeout_ms=timeout_ms
            )
        except SvcError as error:
            raise explain_missing(error, self._image()) from error.__cause__
        if not result.is_success:
            raise explain_failure(call, result)
        if "stdout" in result.truncated:
            said = f"git {call.command} printed more than can be read: ask for less"
            raise SvcError("git_failed", said)
        return result.text()
