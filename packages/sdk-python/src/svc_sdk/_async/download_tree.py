"""Copies folders of a sandbox to this machine."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._client.listen import report
from .._client.trees import for_each
from ..errors import SvcError
from ..values import FileInfo, OnFile

if TYPE_CHECKING:
    from .files import AsyncFiles

_PERMISSIONS = 0o777
#: With the sticky bit, so that users cannot remove the files of other users.
_FOLDER_PERMISSIONS = 0o1777


@dataclass(frozen=True)
class _RemoteFile:
    info: FileInfo
    local: str


@dataclass(frozen=True)
class _Tree:
    files: list[_RemoteFile] = field(default_factory=list)
    links: list[_RemoteFile] = field(default_factory=list)
    #: New folders, a folder before its content.
    folders: list[_RemoteFile] = field(default_factory=list)


async def download(
    files: AsyncFiles, remote: str, local: str, on_file: OnFile | None
) -> tuple[str, ...]:
    tree = await _make_folders(files, remote, local)

    async def fetch(each: _RemoteFile) -> None:
        await _write_local(each.local, each.info.mode, files.read_stream(each.info.path))
        await report(on_file, each.info.path, each.info.size_bytes)

    await for_each(tree.files, fetch)
    # SAFETY: links come last, so that no file is written through one that the sandbox chose.
    skipped = []
    for each in tree.links:
        target = await files.read_link(each.info.path)
        if _leads_out(remote, each.info.path, target):
            skipped.append(each.info.path)
        else:
            _put_link(target, each.local)
    # The deepest first, because some folders become read-only.
    for each in reversed(tree.folders):
        os.chmod(each.local, each.info.mode & _FOLDER_PERMISSIONS)
    return tuple(skipped)


async def _make_folders(files: AsyncFiles, remote: str, local: str) -> _Tree:
    """Creates the folders of a tree and collects its files and links."""
    tree = _Tree()
    pending = [_RemoteFile(await files.stat(remote), local)]
    while pending:
        found = pending.pop()
        if found.info.kind == "file":
            tree.files.append(found)
        elif found.info.kind == "symlink":
            tree.links.append(found)
        elif found.info.kind == "directory":
            if _make_folder(found.local):
                tree.folders.append(found)
            for child in await files.list(found.info.path):
                # SAFETY: the name is one part, neither `.` nor `..`, so the joined path stays inside the folder.
                path = os.path.join(found.local, _plain_name(child.name))
                pending.append(_RemoteFile(child, path))
    return tree


def _plain_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise SvcError("invalid_request", f"The sandbox has a file whose name '{name}' is none")
    return name


def _make_folder(path: str) -> bool:
    """False when it exists already. SAFETY: a link at this path is not followed."""
    try:
        os.mkdir(path)
        return True
    except FileExistsError:
        if os.path.islink(path) or not os.path.isdir(path):
            raise
        return False


async def _write_local(path: str, mode: int, chunks: AsyncIterator[bytes]) -> None:
    # SAFETY: O_NOFOLLOW, because a link of this name may lead anywhere.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(path, flags, mode & _PERMISSIONS), "wb") as file:
            async for chunk in chunks:
                # A disk may be slow, and the loop must go on.
                await asyncio.to_thread(file.write, chunk)
            os.fchmod(file.fileno(), mode & _PERMISSIONS)
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]


def _leads_out(root: str, link: str, target: str) -> bool:
    if posixpath.isabs(target):
        return True
    path = posixpath.relpath(posixpath.join(posixpath.dirname(link), target), root)
    return path == ".." or path.startswith("../")


def _put_link(target: str, local: str) -> None:
    try:
        os.unlink(local)
    except FileNotFoundError:
        # There was none to replace.
        pass
    os.symlink(target, local)
