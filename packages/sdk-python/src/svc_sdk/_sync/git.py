"""Generated from ../_async/git.py by `make generate`."""

from __future__ import annotations

from collections.abc import Sequence
from .._async.git import AsyncGit
from .._client import portal
from ..git import GitAuth, GitAuthor, GitBranch, GitStatus


class Git:
    """With the git of the sandbox's image. `path` is a folder of the repository, `user` who runs git.

    All raise `git_missing`, `not_a_repository` and `git_failed`; what talks to a remote raises
    `git_authentication_failed` too.
    """

    @classmethod
    def _of(cls, inner: AsyncGit) -> Git:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncGit) -> None:
        self._inner = inner

    def clone(
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
        return portal.run(self._inner.clone(
            url,
            path=path,
            branch=branch,
            depth=depth,
            auth=auth,
            user=user,
            timeout_ms=timeout_ms,
        ))

    def status(
        self,
        path: str,
        *,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> GitStatus:
        return portal.run(self._inner.status(path, user=user, timeout_ms=timeout_ms))

    def add(
        self,
        path: str,
        files: Sequence[str] | None = None,
        *,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Takes all changes into the next commit, or those of `files`: paths as they are, without
        patterns."""
        portal.run(self._inner.add(path, files, user=user, timeout_ms=timeout_ms))

    def commit(
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
        return portal.run(self._inner.commit(
            path,
            message,
            author=author,
            allow_empty=allow_empty,
            user=user,
            timeout_ms=timeout_ms,
        ))

    def push(
        self,
        path: str,
        *,
        remote: str = 'origin',
        branch: str | None = None,
        set_upstream: bool = False,
        auth: GitAuth | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """The current branch unless another is given. `set_upstream`: later pulls of the branch take
        from here."""
        portal.run(self._inner.push(
            path,
            remote=remote,
            branch=branch,
            set_upstream=set_upstream,
            auth=auth,
            user=user,
            timeout_ms=timeout_ms,
        ))

    def pull(
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
        portal.run(self._inner.pull(
            path,
            remote=remote,
            branch=branch,
            rebase=rebase,
            auth=auth,
            user=user,
            timeout_ms=timeout_ms,
        ))

    def branches(
        self,
        path: str,
        *,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[GitBranch, ...]:
        """Those of the repository itself, by their names."""
        return portal.run(self._inner.branches(path, user=user, timeout_ms=timeout_ms))

    def create_branch(
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
        portal.run(self._inner.create_branch(path, name, start=start, user=user, timeout_ms=timeout_ms))

    def checkout(
        self,
        path: str,
        ref: str,
        *,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Switches to a branch, a tag or a commit. One that only a remote has is made first."""
        portal.run(self._inner.checkout(path, ref, user=user, timeout_ms=timeout_ms))

    def delete_branch(
        self,
        path: str,
        name: str,
        *,
        force: bool = False,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """One whose commits are in no other is refused, unless `force` is given."""
        portal.run(self._inner.delete_branch(path, name, force=force, user=user, timeout_ms=timeout_ms))
