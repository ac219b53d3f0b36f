"""Runs code of one sandbox, over a connection that is held open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._channel.code_connection import CodeConnection, RunEvents, RunName
from .._client.budget import Budget, with_retries
from .._client.kept_open import KeptOpen
from ..errors import SvcError
from ..values import CodeResult
from .client import AsyncClient
from .run_code import CodeRun

#: Longer code is sent as a request: escaped, it could exceed the size of message that servers accept.
_MAX_CODE_LENGTH = 512 * 1024
#: A proxy may swallow the connection and let requests through, which get the rest of the time.
_OPEN_MS = 10_000.0


@dataclass(frozen=True)
class _Begun:
    """A run of which the server has told something."""

    connection: CodeConnection
    events: RunEvents
    first: tuple[str, Any] | SvcError


class CodeRuns:
    """A request of its own costs more than most code. Where no connection is to be had, with servers
    before it and through proxies, each run is a request."""

    def __init__(self, client: AsyncClient, sandbox_id: str, *, open_ms: float = _OPEN_MS) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._open_ms = open_ms
        self._kept = KeptOpen(self._open)
        #: The server does not know such connections.
        self._is_unknown = False

    async def run(self, body: dict[str, Any], run: CodeRun) -> CodeResult:
        """A cancelled run interrupts the code."""
        begun = await self._begin(body)
        return await (self._request(body, run) if begun is None else _follow(begun, run))

    async def close(self) -> None:
        """Ends what runs."""
        await self._kept.close()

    async def close_when_idle(self) -> None:
        """Closes it when the current runs have ended."""
        connection = self._kept.leave()
        if connection is not None:
            await connection.closed_when_idle()

    async def _begin(self, body: dict[str, Any]) -> _Begun | None:
        """None: there is no connection, and nothing was sent."""
        is_long = len(body["code"]) > _MAX_CODE_LENGTH
        if self._is_unknown or is_long or not self._client._is_direct:
            return None
        again: RunName | None = None
        budget = Budget(self._client.timeout_ms)

        async def attempt() -> _Begun | None:
            nonlocal again
            try:
                connection = await self._kept.take()
            except SvcError:
                # Code that may have been begun is asked for again by its name or not at all.
                if again is None:
                    return None
                raise
            events = await connection.run(body, again)
            try:
                return _Begun(connection, events, await _first_of(events, budget))
            except SvcError as error:
                if connection.is_closed:
                    # The owner closed it, so it is not opened again.
                    return _Begun(connection, events, error)
                if error.code == "connection_failed" and again is None:
                    again = events.name
                raise
            except BaseException:
                connection.cancel(events)
                raise

        return await with_retries(budget, self._client.max_retries, attempt)

    async def _request(self, body: dict[str, Any], run: CodeRun) -> CodeResult:
        params = {"sandbox_id": self._sandbox_id}
        events = await self._client.events("code.stream", params=params, body=body)
        steps = Budget(None).each(events)
        try:
            async for event in steps:
                result = await run.take(event.event, event.data)
                if result is not None:
                    return result
        finally:
            await steps.aclose()  # type: ignore[attr-defined]
        raise _interrupted()

    async def _open(self) -> CodeConnection:
        budget = Budget(min(self._open_ms, self._client.timeout_ms))
        try:
            transport = await budget.wait(self._client._dial(self._sandbox_id, "code/channel"))
            connection = CodeConnection(transport)
            await budget.wait(connection.open())
            return connection
        except SvcError as error:
            self._is_unknown = error.code == "not_found"
            raise


async def _first_of(events: RunEvents, budget: Budget) -> tuple[str, Any]:
    """The first event that is of the code. It may take as long as it likes once it has begun."""
    while True:
        event = await events.next()
        budget.stop_clock()
        if event[0] != "begun":
            return event


async def _follow(begun: _Begun, run: CodeRun) -> CodeResult:
    """To the end. From here on nothing is asked for again."""
    if isinstance(begun.first, SvcError):
        raise begun.first
    event, data = begun.first
    try:
        while True:
            result = await run.take(event, data)
            if result is not None:
                return result
            event, data = await _next_of(begun.events)
    finally:
        begun.connection.cancel(begun.events)


async def _next_of(events: RunEvents) -> tuple[str, Any]:
    try:
        return await events.next()
    except SvcError as error:
        if error.code != "connection_failed":
            raise
        raise _interrupted() from error


def _interrupted() -> SvcError:
    said = "The connection broke while the code ran; it was interrupted"
    return SvcError("connection_failed", said)
