"""The connection that calls of one sandbox object share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from .._channel.connection import AgentInfo, Connection
from .._channel.files import ChannelFiles
from .._client.budget import Budget, with_retries
from .._client.kept_open import KeptOpen
from .client import AsyncClient

T = TypeVar("T")


class Channel:
    """An open command channel."""

    def __init__(self, connection: Connection, agent: AgentInfo) -> None:
        self.connection = connection
        self.agent = agent
        self.files = ChannelFiles(connection, agent)

    @property
    def is_over(self) -> bool:
        return self.connection.is_over

    def close(self) -> None:
        """Ends it, and with it everything that was started over it."""
        self.connection.close()

    async def closed(self) -> None:
        """Closes it, and returns when its socket is closed."""
        await self.connection.closed()


class SharedChannel:
    """Calls overlap on one channel, which is opened when it is needed."""

    def __init__(self, client: AsyncClient, sandbox_id: str) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._kept = KeptOpen(lambda: self._open(self._client.timeout_ms))

    async def use(
        self, timeout_ms: float | None, work: Callable[[Channel], Awaitable[T]]
    ) -> T:
        budget = Budget(timeout_ms)
        channel = await budget.wait(self._kept.take())
        return await budget.wait(work(channel))

    async def stream(
        self, timeout_ms: float | None, work: Callable[[Channel], AsyncIterator[T]]
    ) -> AsyncIterator[T]:
        """Like `use`, for an iteration."""
        budget = Budget(timeout_ms)
        channel = await budget.wait(self._kept.take())
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
        await self._kept.close()

    async def _open(self, timeout_ms: float) -> Channel:
        budget = Budget(timeout_ms)

        async def attempt() -> Channel:
            connection = Connection(await self._client._dial(self._sandbox_id, "agent"))
            return Channel(connection, await connection.handshake())

        return await with_retries(budget, self._client.max_retries, attempt)
