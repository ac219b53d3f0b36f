"""The connection that calls of one sandbox object share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from .._channel.connection import AgentInfo, Connection
from .._channel.files import ChannelFiles
from .._client.budget import Budget, with_retries
from .client import AsyncClient

T = TypeVar("T")


class Channel:
    """An open command channel."""

    def __init__(self, connection: Connection, agent: AgentInfo) -> None:
        self.connection = connection
        self.agent = agent
        self.files = ChannelFiles(connection, agent)

    def close(self) -> None:
        """Ends it, and with it everything that was started over it."""
        self.connection.close()


class SharedChannel:
    """Opened at the first call, and again at the first one after it broke, or in another event loop."""

    def __init__(self, client: AsyncClient, sandbox_id: str) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._opening: asyncio.Future[Channel] | None = None

    async def use(
        self, timeout_ms: float | None, work: Callable[[Channel], Awaitable[T]]
    ) -> T:
        budget = Budget(timeout_ms)
        channel = await budget.wait(self._take())
        return await budget.wait(work(channel))

    async def stream(
        self, timeout_ms: float | None, work: Callable[[Channel], AsyncIterator[T]]
    ) -> AsyncIterator[T]:
        """Like `use`, for an iteration."""
        budget = Budget(timeout_ms)
        channel = await budget.wait(self._take())
        items = budget.each(work(channel))
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()  # type: ignore[attr-defined]

    async def open_own(self, timeout_ms: float | None = None) -> Channel:
        """A connection for one user alone, who closes it."""
        limit = self._client.timeout_ms
        return await self._open(limit if timeout_ms is None else min(timeout_ms, limit))

    async def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is None or _is_of_another_loop(opening):
            return
        if opening.done():
            if not opening.cancelled() and opening.exception() is None:
                await opening.result().connection.closed()
        else:
            opening.cancel()

    async def _take(self) -> Channel:
        if self._opening is None or self._has_ended(self._opening):
            # Several calls may wait for it, so no caller's limit ends its opening, only its own.
            self._opening = asyncio.ensure_future(self._open(self._client.timeout_ms))
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._opening)

    @staticmethod
    def _has_ended(opening: asyncio.Future[Channel]) -> bool:
        if _is_of_another_loop(opening):
            return True
        if not opening.done():
            return False
        if opening.cancelled() or opening.exception() is not None:
            return True
        return opening.result().connection.is_over

    async def _open(self, timeout_ms: float) -> Channel:
        budget = Budget(timeout_ms)

        async def attempt() -> Channel:
            connection = Connection(await self._client._dial(self._sandbox_id, "agent"))
            return Channel(connection, await connection.handshake())

        return await with_retries(budget, self._client.max_retries, attempt)


def _is_of_another_loop(opening: asyncio.Future[Channel]) -> bool:
    return opening.get_loop() is not asyncio.get_running_loop()
