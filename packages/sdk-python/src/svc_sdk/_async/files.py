"""Files of a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timezone
from os import PathLike, fspath
from typing import Literal, TypeVar

from .._channel.files import ChannelFiles, FileEntry
from .._client.content import Content, pieces_of
from .._client.trees import within_tree
from ..errors import SvcError
from ..values import FileInfo, FileLink, OnFile
from .client import AsyncClient
from .download_tree import download
from .file_link import make_file_link
from .file_watch import AsyncFileWatch
from .shared_channel import SharedChannel
from .upload_tree import upload

T = TypeVar("T")

_PERMISSIONS = 0o7777
_DEFAULT_FILE_LIMIT_BYTES = 64 * 1024 * 1024


class AsyncFiles:
    """Paths are absolute. Failures are `not_found`, `name_already_exists`, `forbidden`, `disk_full` or
    `invalid_request`, with the errno and the path in `details`. Content of any size goes through the
    streams."""

    def __init__(self, client: AsyncClient, sandbox_id: str, channel: SharedChannel) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._channel = channel

    async def read(
        self, path: str, *, max_bytes: int | None = None, timeout_ms: float | None = None
    ) -> bytes:
        """Whole, up to 64 MiB unless told otherwise. Raises `payload_too_large`."""
        limit = _DEFAULT_FILE_LIMIT_BYTES if max_bytes is None else max_bytes

        async def work(files: ChannelFiles) -> bytes:
            content = bytearray()
            async for chunk in files.read_stream(path):
                content += chunk
                if len(content) > limit:
                    said = f"{path} has more than {limit} bytes; stream it"
                    raise SvcError("payload_too_large", said, details={"path": path})
            return bytes(content)

        return await self._call(path, timeout_ms, work)

    async def read_text(
        self, path: str, *, max_bytes: int | None = None, timeout_ms: float | None = None
    ) -> str:
        """As UTF-8."""
        content = await self.read(path, max_bytes=max_bytes, timeout_ms=timeout_ms)
        return content.decode("utf-8", "replace")

    async def read_stream(
        self, path: str, *, timeout_ms: float | None = None
    ) -> AsyncIterator[bytes]:
        """Piece by piece; the sandbox waits for a slow reader."""
        chunks = self._channel.stream(timeout_ms, lambda each: each.files.read_stream(path))
        try:
            async for chunk in chunks:
                yield chunk
        except SvcError as error:
            raise _about(path, error) from error.__cause__
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    async def write(
        self,
        path: str,
        content: Content,
        *,
        mode: int | None = None,
        atomic: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Creates or replaces a file; `mode` is for a new one.

        Readers may see it half written, unless it is `atomic`: then they see the old one until the
        new one is complete, and nothing is left of a failed write. That needs space for both for a
        moment, the owner of a replaced file stays, and a link is replaced itself. What the content
        raises is raised unchanged.
        """
        pieces = pieces_of(content)
        if atomic:
            await self._call(path, timeout_ms, lambda files: files.replace(path, pieces, mode))
        else:
            await self._call(path, timeout_ms, lambda files: files.write(path, pieces, mode))

    async def list(self, path: str, *, timeout_ms: float | None = None) -> tuple[FileInfo, ...]:
        """The children of a directory, by name."""
        entries = await self._call(path, timeout_ms, lambda files: files.children(path))
        return tuple(sorted(map(_to_info, entries), key=lambda info: info.name))

    async def stat(
        self, path: str, *, follow_symlink: bool = True, timeout_ms: float | None = None
    ) -> FileInfo:
        """Follows links, unless told otherwise."""
        entry = await self._call(
            path, timeout_ms, lambda files: files.stat(path, follow_symlink=follow_symlink)
        )
        return _to_info(entry)

    async def exists(self, path: str, *, timeout_ms: float | None = None) -> bool:
        return await self._call(path, timeout_ms, lambda files: files.exists(path))

    async def mkdir(
        self, path: str, *, mode: int | None = None, timeout_ms: float | None = None
    ) -> None:
        """Creates its parents too; an existing directory is no error."""
        await self._call(path, timeout_ms, lambda files: files.mkdir(path, mode))

    async def rename(self, source: str, target: str, *, timeout_ms: float | None = None) -> None:
        """Replaces what is there."""
        await self._call(source, timeout_ms, lambda files: files.rename(source, target))

    async def copy(self, source: str, target: str, *, timeout_ms: float | None = None) -> None:
        """A single file."""
        await self._call(source, timeout_ms, lambda files: files.copy(source, target))

    async def remove(
        self, path: str, *, recursive: bool = False, timeout_ms: float | None = None
    ) -> None:
        """Directories that are not empty only with `recursive`."""
        await self._call(path, timeout_ms, lambda files: files.remove(path, recursive=recursive))

    async def read_link(self, path: str, *, timeout_ms: float | None = None) -> str:
        """The target of a link."""
        return await self._call(path, timeout_ms, lambda files: files.read_link(path))

    async def symlink(self, target: str, path: str, *, timeout_ms: float | None = None) -> None:
        await self._call(path, timeout_ms, lambda files: files.symlink(target, path))

    async def chmod(self, path: str, mode: int, *, timeout_ms: float | None = None) -> None:
        """Permission bits; follows links."""
        await self._call(path, timeout_ms, lambda files: files.set_mode(path, mode))

    async def upload_tree(
        self,
        local_path: str | PathLike[str],
        remote_path: str,
        *,
        on_file: OnFile | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Copies a file or a folder of this machine with all that is in it: `remote_path` is what it
        becomes in the sandbox.

        Permission bits and links are kept, owners are not; `local_path` itself may be a link, which is
        followed. Existing files are replaced, existing folders are added to and otherwise stay as they
        are. Sockets and devices are left out. `timeout_ms` is for the whole tree. Errors of local files
        are raised as Python raises them; a name that is not UTF-8 is `invalid_request`.
        """
        work = upload(self, fspath(local_path), remote_path, on_file)
        await within_tree(timeout_ms, work)

    async def download_tree(
        self,
        remote_path: str,
        local_path: str | PathLike[str],
        *,
        on_file: OnFile | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[str, ...]:
        """Copies a file or a folder of the sandbox with all that is in it to this machine: `local_path`
        is what it becomes here. Returns the links that were left out, as paths in the sandbox.

        Permission bits and links are kept, owners are not; existing folders stay as they are. The sandbox
        is not trusted: nothing is written outside `local_path`, links that would lead out of it are left
        out, and so are set-user-id bits, sockets and devices. Needs a POSIX system. `timeout_ms` is for
        the whole tree; a name that is not UTF-8 is `invalid_request`.
        """
        work = download(self, remote_path, fspath(local_path), on_file)
        return await within_tree(timeout_ms, work)

    async def link(
        self,
        path: str,
        *,
        method: Literal["GET", "PUT"] = "GET",
        expires_in_secs: int | None = None,
        owner: str | None = None,
        mode: int | None = None,
        parents: bool | None = None,
        timeout_ms: float | None = None,
    ) -> FileLink:
        """A link to read or write this file without a key: for `curl`, and for pages of any origin.

        It ends after `expires_in_secs` (an hour unless given, a week at most), when the credential of
        this client is revoked, and with the sandbox. For a file that is written: `owner` is `user` or
        `user:group`, `mode` its permission bits, and `parents` makes the folders that lead to it.
        """
        given = {
            "path": path,
            "method": method,
            "expires_in_secs": expires_in_secs,
            "owner": owner,
            "mode": None if mode is None else f"{mode:04o}",
            "parents": parents,
        }
        body = {key: value for key, value in given.items() if value is not None}
        return await make_file_link(self._client, self._sandbox_id, body, timeout_ms)

    async def watch(
        self, path: str, *, recursive: bool = False, timeout_ms: float | None = None
    ) -> AsyncFileWatch:
        """Returns when the watch is active. `timeout_ms` is for the start only. With `recursive` it
        watches directories below it too, also new ones; symbolic links are not followed."""
        return await AsyncFileWatch._start(self._channel, path, recursive, timeout_ms)

    async def _call(
        self,
        path: str,
        timeout_ms: float | None,
        work: Callable[[ChannelFiles], Awaitable[T]],
    ) -> T:
        try:
            return await self._channel.use(timeout_ms, lambda channel: work(channel.files))
        except SvcError as error:
            raise _about(path, error) from error.__cause__


def _about(path: str, error: SvcError) -> SvcError:
    """Adds the path, which the answer of the sandbox lacks."""
    if error.details is None or error.details.get("errno") is None:
        return error
    details = {**error.details, "path": path}
    return SvcError(error.code, f"{path}: {error.message}", details=details)


_KINDS: dict[str, Literal["file", "directory", "symlink", "other"]] = {
    "file": "file",
    "dir": "directory",
    "symlink": "symlink",
    "other": "other",
}


def _to_info(entry: FileEntry) -> FileInfo:
    seconds = entry.modified_seconds
    return FileInfo(
        path=entry.path,
        name=entry.path.rpartition("/")[2],
        kind=_KINDS[entry.kind],
        size_bytes=entry.size,
        mode=entry.mode & _PERMISSIONS,
        uid=entry.uid,
        gid=entry.gid,
        modified_at=None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc),
    )
