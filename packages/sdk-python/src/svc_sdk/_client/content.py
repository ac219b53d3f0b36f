"""Content to send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Protocol, Union, runtime_checkable


@runtime_checkable
class Readable(Protocol):
    """A file that was opened in binary mode."""

    def read(self, size: int, /) -> bytes: ...


#: Whole, or piece by piece.
Content = Union[
    str, bytes, bytearray, memoryview, Readable, Iterable[bytes], AsyncIterable[bytes]
]

#: A file is read in pieces of this size.
_PIECE_BYTES = 1024 * 1024


def whole_of(content: Content) -> bytes | None:
    """None for content that comes piece by piece."""
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    return None


async def pieces_of(content: Content) -> AsyncIterator[bytes]:
    """What the content raises is raised unchanged."""
    if isinstance(content, (str, bytes, bytearray, memoryview)):
        yield content.encode() if isinstance(content, str) else bytes(content)
    elif isinstance(content, AsyncIterable):
        async for piece in content:
            yield bytes(piece)
    elif isinstance(content, Readable):
        # A disk may be slow, and the loop must go on.
        while data := await asyncio.to_thread(content.read, _PIECE_BYTES):
            yield data
    else:
        for piece in content:
            yield bytes(piece)
