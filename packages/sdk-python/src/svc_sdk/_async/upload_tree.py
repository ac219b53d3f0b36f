"""Copies folders of this machine into a sandbox."""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._client.listen import report
from .._client.trees import for_each, not_utf8
from ..errors import SvcError
from ..values import OnFile

if TYPE_CHECKING:
    from .files import AsyncFiles

_PERMISSIONS = 0o7777


@dataclass(frozen=True)
class _LocalFile:
    local: str
    remote: str
    mode: int
    size_bytes: int


@dataclass(frozen=True)
class _Tree:
    files: list[_LocalFile] = field(default_factory=list)
    #: New folders, a folder before its content.
    folders: list[_LocalFile] = field(default_factory=list)


async def upload(files: AsyncFiles, local: str, remote: str, on_file: OnFile | None) -> None:
    tree = await _put_folders(files, local, remote)

    async def put(each: _LocalFile) -> None:
        with open(each.local, "rb") as content:
            await files.write(each.remote, content, mode=each.mode)
        # The mode of a write counts for new files, and the sandbox's mask takes from it.
        await files.chmod(each.remote, each.mode)
        await report(on_file, each.remote, each.size_bytes)

    await for_each(tree.files, put)
    # Last, and the deepest first, because some folders become read-only.
    for folder in reversed(tree.folders):
        await files.chmod(folder.remote, folder.mode)


async def _put_folders(files: AsyncFiles, local: str, remote: str) -> _Tree:
    """Creates the folders and links of a tree and collects its files."""
    tree = _Tree()
    pending = [(local, remote, os.stat(local), False)]
    while pending:
        path, target, status, is_in_new = pending.pop()
        found = _LocalFile(path, target, status.st_mode & _PERMISSIONS, status.st_size)
        if stat.S_ISLNK(status.st_mode):
            await _put_link(files, _text_of(os.readlink(path), path), target)
        elif stat.S_ISREG(status.st_mode):
            tree.files.append(found)
        elif stat.S_ISDIR(status.st_mode):
            is_new = is_in_new or not await files.exists(target)
            await files.mkdir(target)
            if is_new:
                tree.folders.append(found)
            for child, name, child_status in await asyncio.to_thread(_children_of, path):
                pending.append((child, posixpath.join(target, name), child_status, is_new))
    return tree


def _children_of(folder: str) -> list[tuple[str, str, os.stat_result]]:
    with os.scandir(folder) as entries:
        return [
            (entry.path, _text_of(entry.name, entry.path), entry.stat(follow_symlinks=False))
            for entry in entries
        ]


def _text_of(name: str, path: str) -> str:
    """As it is sent. Raises SvcError for a name that is not UTF-8."""
    try:
        return os.fsencode(name).decode("utf-8")
    except UnicodeDecodeError:
        raise not_utf8(os.fsencode(path).decode("utf-8", "replace")) from None


async def _put_link(files: AsyncFiles, target: str, remote: str) -> None:
    try:
        await files.symlink(target, remote)
    except SvcError as error:
        if error.code != "name_already_exists":
            raise
        await files.remove(remote)
        await files.symlink(target, remote)
