"""A connection that many calls share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from ..errors import SvcError


class Closable(Protocol):
    @property
    def is_over(self) -> bool: ...

    async def closed(self) -> None: ...


C = TypeVar("C", bound=Closable)


class KeptOpen(Generic[C]):
    """Opened at the first call, and again at the first one after it broke, or in another event loop."""

    def __init__(self, open: Callable[[], Awaitable[C]]) -> None:
        self._open = open
        self._opening: asyncio.Future[C] | None = None

    async def take(self) -> C:
        if self._opening is None or _has_ended(self._opening):
            # Several calls may wait for it, so no caller's limit ends its opening, only its own.
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not opening.cancelled() or (task is not None and task.cancelling() > 0):
                raise
            # Another call has closed it meanwhile; this one was not cancelled.
            raise SvcError("connection_failed", "The connection was closed") from None

    def leave(self) -> C | None:
        """The next call opens another one; one that is being opened is given up. The caller closes what
        this returns: the one that is open here."""
        opening, self._opening = self._opening, None
        if opening is None or _is_of_another_loop(opening):
            return None
        if not opening.done():
            opening.cancel()
            return None
        return None if opening.cancelled() or opening.exception() is not None else opening.result()

    async def close(self) -> None:
        connection = self.leave()
        if connection is not None:
            await connection.closed()


def _has_ended(opening: asyncio.Future[C]) -> bool:
    if _is_of_another_loop(opening):
        return True
    if not opening.done():
        return False
    if opening.cancelled() or opening.exception() is not None:
        return True
    return opening.result().is_over


def _is_of_another_loop(opening: asyncio.Future[C]) -> bool:
    return opening.get_loop() is not asyncio.get_running_loop()
