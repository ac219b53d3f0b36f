"""A path of a sandbox that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Literal

from ..values import FileChange
from .byte_queue import BoundedQueue
from .channel_errors import ChannelError, FileFailed
from .connection import AgentInfo, Connection
from .frame import Message
from .payload_fields import (
    read_array,
    read_message,
    read_optional_message,
    read_record,
    read_text,
    refusal,
)

#: Unread changes that are held before the whole connection waits for their reader.
_HELD_LIMIT_BYTES = 256 * 1024
_CHANGES: tuple[Literal["created", "modified", "removed", "attributes", "renamed"], ...] = (
    "created",
    "modified",
    "removed",
    "attributes",
    "renamed",
)


class ChannelWatch:
    """With 256 KiB of changes unread the whole connection waits for their reader, so use one of its own."""

    def __init__(self, connection: Connection, agent: AgentInfo) -> None:
        if "svc.watch" not in agent.features:
            said = "The sandbox's agent is too old to watch files; start the sandbox again"
            raise ChannelError("unsupported", said)
        self._connection = connection
        self._started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._started.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._changes = BoundedQueue[FileChange](_HELD_LIMIT_BYTES, _size_of)
        self._id = connection.start(self)

    async def start(self, path: str, recursive: bool) -> str:
        """Returns the watched path, with symbolic links resolved, when nothing is missed any more."""
        request = ("svc.watch.start", {"path": path, "recursive": recursive})
        await self._connection.send(self._id, request)
        return await asyncio.shield(self._started)

    def changes(self) -> AsyncIterator[FileChange]:
        """Ends after `removed` of '', when the watched path is gone. Iterate once."""
        return self._changes.__aiter__()

    def receive(self, message: Message) -> Awaitable[None] | None:
        payload = message.payload
        hold: Awaitable[None] | None = None
        match message.type:
            case "svc.watch.started":
                if not self._started.done():
                    self._started.set_result(read_text(payload, "path"))
            case "svc.watch.events":
                for event in read_array(payload.get("events"), "events"):
                    hold = self._changes.push(_read_change(event)) or hold
            case "svc.watch.failed":
                said = read_message(payload, "message")
                self.lost(FileFailed(said, read_optional_message(payload, "errno_name")))
            case "core.error":
                self.lost(refusal(message))
            case "svc.watch.end":
                self._changes.end()
        return hold

    def lost(self, error: Exception) -> None:
        if not self._started.done():
            self._started.set_exception(error)
        self._changes.end(error)


def _size_of(change: FileChange) -> int:
    return len(change.path) + len(change.renamed_from or "")


def _read_change(value: object) -> FileChange:
    event = read_record(value, "event")
    said = read_text(event, "type")
    if said == "overflow":
        return FileChange("overflow")
    kind: Literal["file", "directory"] = "directory" if event.get("kind") == "dir" else "file"
    known = next((each for each in _CHANGES if each == said), None)
    if known is None:
        raise ChannelError("protocol", "The sandbox reported a change of an unknown type")
    renamed_from = read_text(event, "from") if known == "renamed" else None
    return FileChange(known, read_text(event, "path"), kind, renamed_from)
