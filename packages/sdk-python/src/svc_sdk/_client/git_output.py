"""Reads what git prints for programs."""

from __future__ import annotations

import re

from ..errors import SvcError
from ..git import GitBranch, GitChange, GitFileStatus, GitStatus

BRANCH_FORMAT = "--format=%(refname:lstrip=2)%00%(objectname)%00%(upstream:short)%00%(HEAD)"

_CHANGES: dict[str, GitChange] = {
    ".": "unmodified",
    "M": "modified",
    "T": "type_changed",
    "A": "added",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "U": "unmerged",
    "?": "untracked",
}
#: Fields before the path, by the kind of a line.
_FIELDS = {"1": 8, "2": 9, "u": 10, "?": 1}


def read_status(output: str) -> GitStatus:
    """Of `git status --porcelain=v2 --branch -z`."""
    entries = iter(output.split("\0"))
    heads: dict[str, str] = {}
    files: list[GitFileStatus] = []
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            heads[name] = value
        elif kind in _FIELDS:
            # A renamed one has the path before as an entry of its own.
            renamed_from = next(entries, None) if kind == "2" else None
            path = entry.split(" ", _FIELDS[kind])[-1]
            letters = "??" if kind == "?" else rest[:2]
            files.append(
                GitFileStatus(path, renamed_from, _change(letters[0]), _change(letters[1]))
            )
    counts = re.fullmatch(r"\+(\d+) -(\d+)", heads.get("branch.ab", ""))
    branch, commit = heads.get("branch.head"), heads.get("branch.oid")
    return GitStatus(
        branch=None if branch == "(detached)" else branch,
        commit=None if commit == "(initial)" else commit,
        upstream=heads.get("branch.upstream"),
        ahead=int(counts[1]) if counts else None,
        behind=int(counts[2]) if counts else None,
        files=tuple(files),
    )


def read_branches(output: str) -> tuple[GitBranch, ...]:
    """Of `git for-each-ref` with `BRANCH_FORMAT`."""
    fields = [line.split("\0") for line in output.split("\n") if line]
    return tuple(
        GitBranch(name, commit, upstream or None, head == "*")
        for name, commit, upstream, head in fields
    )


def _change(letter: str) -> GitChange:
    if letter in _CHANGES:
        return _CHANGES[letter]
    raise SvcError("git_failed", f"git status gave a letter that is not known: {letter}")
