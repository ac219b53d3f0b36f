"""What calls of `Git` take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GitChange = Literal[
    "unmodified",
    "modified",
    "type_changed",
    "added",
    "deleted",
    "renamed",
    "copied",
    "unmerged",
    "untracked",
]


@dataclass(frozen=True)
class GitAuth:
    """A credential that the sandbox does not hold: git is given a placeholder, and the proxy sends the
    value to the hosts of the secret."""

    #: The variable of a secret of the sandbox, as in `Sandbox.create(secrets={"GIT_TOKEN": …})`.
    secret: str
    #: Goes with tokens of most hosts.
    username: str = "x-access-token"


@dataclass(frozen=True)
class GitAuthor:
    name: str
    email: str


@dataclass(frozen=True)
class GitFileStatus:
    #: Relative to the top of the repository; one of a folder ends with a slash.
    path: str
    #: Of what is renamed or copied: the path before.
    renamed_from: str | None
    #: What the next commit changes.
    index: GitChange
    #: What is changed beyond that.
    work_tree: GitChange


@dataclass(frozen=True)
class GitStatus:
    #: None: the head is detached.
    branch: str | None
    #: None before the first commit.
    commit: str | None
    #: Such as `origin/main`.
    upstream: str | None
    #: Commits that the upstream does not have; None without one.
    ahead: int | None
    #: Commits that only the upstream has; None without one.
    behind: int | None
    #: What differs from the commit, untracked files too.
    files: tuple[GitFileStatus, ...]

    @property
    def is_clean(self) -> bool:
        return not self.files


@dataclass(frozen=True)
class GitBranch:
    name: str
    commit: str
    upstream: str | None
    is_current: bool
