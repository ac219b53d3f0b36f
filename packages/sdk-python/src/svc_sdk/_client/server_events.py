"""Parses `text/event-stream`."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any

from ..errors import SvcError

#: Longer events are refused: the server sends none.
_MAX_EVENT_LENGTH = 16 * 1024 * 1024


@dataclass(frozen=True)
class StreamEvent:
    """One server-sent event."""

    event: str
    data: Any
    #: A client sends it to resume after this event.
    id: str | None


async def read_server_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[StreamEvent]:
    """Comments, which keep the connection alive, are left out."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    async for chunk in chunks:
        text += decoder.decode(chunk).replace("\r\n", "\n")
        *blocks, text = text.split("\n\n")
        for block in blocks:
            event = _read_event(block)
            if event is not None:
                yield event
        if len(text) > _MAX_EVENT_LENGTH:
            raise SvcError("internal", "The server sent an endless event")


def _read_event(block: str) -> StreamEvent | None:
    event, id = "message", None
    data: list[str] = []
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "id":
            id = value
        elif name == "data":
            data.append(value)
    return StreamEvent(event, json.loads("\n".join(data)), id) if data else None
