"""Files of a sandbox over the command channel."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from dataclasses import dataclass

from .channel_errors import ChannelError, FileFailed
from .connection import AgentInfo, Connection
from .frame import Message, Payload
from .payload_fields import (
    read_array,
    read_bytes,
    read_integer,
    read_message,
    read_optional_integer,
    read_optional_message,
    read_record,
    read_text,
    read_uint,
    refusal,
)

#: Window of a streamed read: the sandbox never sends more than the reader has space for.
_READ_WINDOW_BYTES = 2 * 1024 * 1024
#: Most bytes of content in one frame to the sandbox.
_WRITE_CHUNK_BYTES = 2 * 1024 * 1024
#: Directory entries per answer.
_DIRECTORY_PAGE = 1024
#: A peer that sends smaller pieces on average is refused: each costs more memory than its bytes.
_MIN_PIECE_BYTES = 256
_SPARE_PIECES = 64
_PERMISSIONS = 0o7777
_MISSING = ("ENOENT", "ENOTDIR")
_UNCHANGED: Payload = dict.fromkeys(("mode", "uid", "gid", "size", "atime", "mtime"))


@dataclass(frozen=True)
class FileEntry:
    path: str
    kind: str
    size: int
    mode: int
    uid: int
    gid: int
    modified_seconds: int | None


class ChannelFiles:
    """Every call may raise FileFailed (the sandbox's answer) or ChannelError (no usable answer)."""

    def __init__(self, connection: Connection, agent: AgentInfo) -> None:
        self._connection = connection
        self._agent = agent

    async def stat(self, path: str, *, follow_symlink: bool = True) -> FileEntry:
        answer = await self._ask("Stat", {"path": path, "follow_symlink": follow_symlink})
        return _read_entry(answer.get("Stat"))

    async def set_mode(self, path: str, mode: int) -> None:
        attrs = {**_UNCHANGED, "mode": mode}
        await self._ask("SetStat", {"path": path, "follow_symlink": True, "attrs": attrs})

    async def read_link(self, path: str) -> str:
        return read_text(await self._ask("ReadLink", {"path": path}), "Path")

    async def symlink(self, target: str, path: str) -> None:
        await self._ask("Symlink", {"target": target, "link_path": path})

    async def mkdir(self, path: str, mode: int | None) -> None:
        await self._ask("Mkdir", {"path": path, "mode": mode})

    async def remove(self, path: str, *, recursive: bool) -> None:
        if (await self.stat(path, follow_symlink=False)).kind == "dir":
            await self._ask("RemoveDir", {"path": path, "recursive": recursive})
        else:
            await self._ask("Remove", {"path": path})

    async def copy(self, source: str, target: str) -> None:
        await self._ask("Copy", {"src": source, "dst": target})

    async def rename(self, source: str, target: str) -> None:
        await self._ask("Rename", {"src": source, "dst": target})

    async def exists(self, path: str) -> bool:
        return await self._entry_of(path) is not None

    async def children(self, path: str) -> list[FileEntry]:
        handle = await self._open("OpenDir", {"path": path})
        try:
            entries: list[FileEntry] = []
            while page := await self._read_page(handle):
                entries += page
            return entries
        finally:
            self._release(handle)

    async def read_stream(self, path: str) -> AsyncIterator[bytes]:
        handle = await self._open_file(path, {"read": True})
        offset = 0
        ahead = asyncio.ensure_future(self._read(handle, offset))
        try:
            while True:
                chunks = await ahead
                length = sum(map(len, chunks))
                offset += length
                if length == _READ_WINDOW_BYTES:
                    ahead = asyncio.ensure_future(self._read(handle, offset))
                for chunk in chunks:
                    yield chunk
                if length < _READ_WINDOW_BYTES:
                    return
        finally:
            ahead.cancel()
            ahead.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._release(handle)

    async def write(self, path: str, content: AsyncIterable[bytes], mode: int | None) -> None:
        """Creates or overwrites the file in place; a reader may see it half written."""
        flags = {"write": True, "create": True, "truncate": True, "mode": mode}
        handle = await self._open_file(path, flags)
        try:
            await self._write(handle, content)
        except BaseException:
            self._release(handle)
            raise
        await self._ask("CloseHandle", {"handle": handle})

    async def replace(self, path: str, content: AsyncIterable[bytes], mode: int | None) -> None:
        """Readers see the old file until the new one is complete, and nothing is left when the
        content, the caller or the connection fails."""
        kept = await self._entry_of(path)
        if mode is None and kept is not None:
            mode = kept.mode & _PERMISSIONS
        partial = f"{path[: path.rfind('/') + 1]}.svc-partial-{secrets.token_hex(8)}"
        flags = {"write": True, "create_new": True, "temporary": True, "mode": mode}
        handle = await self._open_file(partial, flags)
        try:
            await self._write(handle, content)
            # A new file is root's already.
            if kept is not None and (kept.uid, kept.gid) != (0, 0):
                attrs = {"uid": kept.uid, "gid": kept.gid, "mode": mode}
                await self._ask("FSetStat", {"handle": handle, "attrs": {**_UNCHANGED, **attrs}})
            await self.rename(partial, path)
        except BaseException:
            self._release(handle)
            raise
        await self._ask("CloseHandle", {"handle": handle})

    async def _entry_of(self, path: str) -> FileEntry | None:
        try:
            return await self.stat(path)
        except FileFailed as error:
            if error.errno_name in _MISSING:
                return None
            raise

    async def _read_page(self, handle: int) -> list[FileEntry]:
        answer = await self._ask("ReadDir", {"handle": handle, "limit": _DIRECTORY_PAGE})
        return [_read_entry(each) for each in read_array(answer.get("List"), "list of files")]

    async def _read(self, handle: int, offset: int) -> list[bytes]:
        fields = {"handle": handle, "offset": offset, "len": _READ_WINDOW_BYTES}
        session = await self._start("Read", fields, _READ_WINDOW_BYTES)
        await session.finish()
        return session.chunks

    async def _write(self, handle: int, content: AsyncIterable[bytes]) -> None:
        """Sends content until it ends, or until the sandbox answers early to report an error."""
        session = await self._start("Write", {"handle": handle, "offset": 0, "len": None}, 0)
        sending = asyncio.ensure_future(self._send_content(session, content))
        try:
            await asyncio.wait((sending, session.answer), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except BaseException:
            self._connection.abandon(session.id)
            raise
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            # The agent closes the file at the end of the content, also when it has answered before.
            self._connection.post(session.id, "core.fs.data", {"data": b""})
        await session.finish()

    async def _send_content(self, session: _FileSession, content: AsyncIterable[bytes]) -> None:
        async for chunk in content:
            for start in range(0, len(chunk), _WRITE_CHUNK_BYTES):
                data = chunk[start : start + _WRITE_CHUNK_BYTES]
                await self._connection.send(session.id, ("core.fs.data", {"data": data}))

    async def _open_file(self, path: str, flags: Payload) -> int:
        names = ("read", "write", "append", "create", "truncate", "create_new")
        options = {**dict.fromkeys(names, False), "mode": None, **flags}
        return await self._open("OpenFile", {"path": path, "options": options})

    async def _open(self, operation: str, fields: Payload) -> int:
        """When the caller is cancelled while the handle is on its way, it is closed on arrival."""
        opening = asyncio.ensure_future(self._ask(operation, fields))
        try:
            return read_uint(await asyncio.shield(opening), "Handle")
        except asyncio.CancelledError:
            opening.add_done_callback(self._release_opened)
            raise

    def _release_opened(self, opening: asyncio.Future[Payload]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._release(read_uint(opening.result(), "Handle"))

    def _release(self, handle: int) -> None:
        """Closes a handle without waiting; the end of the connection frees it too."""
        if self._connection.is_over:
            return
        closing = asyncio.ensure_future(self._ask("CloseHandle", {"handle": handle}))
        _CLOSING.add(closing)
        closing.add_done_callback(_forget_closing)

    async def _ask(self, operation: str, fields: Payload) -> Payload:
        session = await self._start(operation, fields, 0)
        answer = await session.finish()
        return {} if answer is None else read_record(answer, "data")

    async def _start(self, operation: str, fields: Payload, length_bytes: int) -> _FileSession:
        session = _FileSession(self._connection, operation, length_bytes)
        request = ("core.fs.request", {"op": {operation: fields}})
        await self._connection.send(session.id, request)
        return session


_CLOSING: set[asyncio.Future[Payload]] = set()


def _forget_closing(closing: asyncio.Future[Payload]) -> None:
    _CLOSING.discard(closing)
    if not closing.cancelled():
        closing.exception()


class _FileSession:
    def __init__(self, connection: Connection, operation: str, length_bytes: int) -> None:
        self._connection = connection
        self._operation = operation
        self._space_bytes = length_bytes
        self._max_pieces = length_bytes / _MIN_PIECE_BYTES + _SPARE_PIECES
        self.chunks: list[bytes] = []
        self.answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.id = connection.start(self)

    async def finish(self) -> object:
        try:
            return await asyncio.shield(self.answer)
        finally:
            self._connection.abandon(self.id)

    def receive(self, message: Message) -> Awaitable[None] | None:
        if message.type == "core.fs.data":
            self._keep(read_bytes(message.payload, "data"))
        elif message.type == "core.fs.response":
            self._settle(message.payload)
        elif message.type == "core.error":
            self._fail(refusal(message))
        return None

    def lost(self, error: Exception) -> None:
        self._fail(error)

    def _keep(self, data: bytes) -> None:
        self._space_bytes -= len(data)
        if self._space_bytes < 0 or len(self.chunks) >= self._max_pieces:
            raise ChannelError("protocol", "The sandbox sent more content than was asked for")
        if data:
            self.chunks.append(data)

    def _settle(self, payload: Payload) -> None:
        if payload.get("ok") is True:
            if not self.answer.done():
                self.answer.set_result(payload.get("data"))
            return
        text = read_message(payload, "error") or f"{self._operation} failed"
        self._fail(FileFailed(text, read_optional_message(payload, "errno_name")))

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def _read_entry(value: object) -> FileEntry:
    entry = read_record(value, "file entry")
    kind = read_text(entry, "kind")
    if kind not in ("file", "dir", "symlink", "other"):
        raise ChannelError("protocol", "The sandbox sent a file entry of an unknown kind")
    modified = read_optional_integer(entry, "mtime")
    return FileEntry(
        path=read_text(entry, "path"),
        kind=kind,
        size=read_uint(entry, "size"),
        mode=read_uint(entry, "mode"),
        uid=read_integer(entry, "uid"),
        gid=read_integer(entry, "gid"),
        modified_seconds=read_optional_integer(entry, "modified") if modified is None else modified,
    )
