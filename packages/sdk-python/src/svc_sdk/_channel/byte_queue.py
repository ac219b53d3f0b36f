"""Bounded queues between a connection, which pushes, and one consumer, which iterates."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

#: Overhead that is counted for every item, so that a flood of tiny ones is bounded too.
_OVERHEAD_BYTES = 64


class BoundedQueue(Generic[T]):
    """Items in the order they were sent. Leaving the iteration early drops the rest."""

    def __init__(self, limit_bytes: int, size_of: Callable[[T], int]) -> None:
        self._limit_bytes = limit_bytes
        self._size_of = size_of
        self._items: deque[T] = deque()
        self._held_bytes = 0
        self._state = "open"
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def push(self, item: T) -> asyncio.Future[None] | None:
        """Returns a future when the queue is full: the producer awaits it before it pushes more."""
        if self._state != "open":
            return None
        self._items.append(item)
        self._held_bytes += self._cost(item)
        _wake(self._reader)
        if self._held_bytes <= self._limit_bytes:
            return None
        if self._room is None or self._room.done():
            self._room = asyncio.get_running_loop().create_future()
        return self._room

    def end(self, error: Exception | None = None) -> None:
        """What was pushed can still be read; then the iteration ends, or raises the error."""
        if self._state != "open":
            return
        self._state = "ended"
        self._error = error
        _wake(self._reader)
        _wake(self._room)

    def discard(self) -> None:
        """Drops current and future items, so that an unread queue does not stall the connection."""
        self._state = "discarded"
        self._error = None
        self._items.clear()
        self._held_bytes = 0
        _wake(self._reader)
        _wake(self._room)

    async def __aiter__(self) -> AsyncIterator[T]:
        try:
            while True:
                if self._items:
                    item = self._items.popleft()
                    self._held_bytes -= self._cost(item)
                    if self._held_bytes <= self._limit_bytes / 2:
                        _wake(self._room)
                    yield item
                elif self._state == "open":
                    self._reader = asyncio.get_running_loop().create_future()
                    await self._reader
                elif self._error is not None:
                    raise self._error
                else:
                    return
        finally:
            self.discard()

    def _cost(self, item: T) -> int:
        return _OVERHEAD_BYTES + self._size_of(item)


class ByteQueue(BoundedQueue[bytes]):
    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes, len)


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
