"""The network policy of a sandbox."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from .._client.budget import Budget
from .._client.follow_events import follow_events
from .._client.pages import each_item
from .._client.read_record import read_record
from .._client.server_events import StreamEvent
from ..records import NetworkDecision, NetworkExplanation
from ..values import OnCount
from .client import AsyncClient

_PAGE = 1000


class AsyncNetwork:
    """The bodies are those of the REST API, in docs/guides/network.md."""

    def __init__(self, client: AsyncClient, sandbox_id: str) -> None:
        self._client = client
        self._params = {"sandbox_id": sandbox_id}

    async def update(
        self, change: Mapping[str, Any], *, timeout_ms: float | None = None
    ) -> None:
        """Changes the network policy, at once and for later runs. Absent: unchanged; None: the
        default. Connections that are now denied are closed."""
        await self._client.call(
            "network.update", params=self._params, body=dict(change), timeout_ms=timeout_ms
        )

    async def explain(
        self, question: Mapping[str, Any], *, timeout_ms: float | None = None
    ) -> NetworkExplanation:
        """Says which rule decides about a connection to a name or an address; over TCP unless
        another protocol is given."""
        answer = await self._client.call(
            "network.explain", params=self._params, body=dict(question), timeout_ms=timeout_ms
        )
        return read_record(NetworkExplanation, answer)

    async def log(
        self,
        *,
        follow: bool = False,
        verdict: Literal["allow", "deny"] | None = None,
        after: str | None = None,
        on_left_out: OnCount | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[NetworkDecision]:
        """The log of network decisions, oldest first: denials up to a limit, and samples of what was
        allowed. `follow`: until the sandbox stops, over lost connections too. `after`: the cursor of
        the last entry that was seen."""
        if follow:
            entries = self._follow(verdict, after, on_left_out, timeout_ms)
        else:
            entries = self._past(verdict, after, on_left_out, timeout_ms)
        try:
            async for entry in entries:
                yield entry
        finally:
            await entries.aclose()  # type: ignore[attr-defined]

    async def _past(
        self,
        verdict: str | None,
        after: str | None,
        on_left_out: OnCount | None,
        timeout_ms: float | None,
    ) -> AsyncIterator[NetworkDecision]:
        left_out = 0

        async def page(cursor: str | None) -> Any:
            nonlocal left_out
            query = {"limit": _PAGE, "verdict": verdict, "cursor": cursor or after}
            found = await self._client.call(
                "network.log", params=self._params, query=query, timeout_ms=timeout_ms
            )
            left_out = found["left_out"]
            return found

        async for item in each_item(page):
            yield read_record(NetworkDecision, item)
        if left_out > 0:
            await _report(on_left_out, left_out)

    async def _follow(
        self,
        verdict: str | None,
        after: str | None,
        on_left_out: OnCount | None,
        timeout_ms: float | None,
    ) -> AsyncIterator[NetworkDecision]:
        async def open(last_id: str | None) -> AsyncIterator[StreamEvent]:
            last = last_id or after
            headers = {} if last is None else {"last-event-id": last}
            return await self._client.events(
                "network.follow", params=self._params, query={"verdict": verdict}, headers=headers
            )

        events = follow_events(Budget(timeout_ms), open)
        try:
            async for event in events:
                if event.event == "left_out":
                    await _report(on_left_out, event.data["count"])
                elif event.event == "decision" and event.id is not None:
                    yield read_record(NetworkDecision, {**event.data, "cursor": event.id})
        finally:
            await events.aclose()  # type: ignore[attr-defined]


async def _report(listener: OnCount | None, count: int) -> None:
    said = None if listener is None else listener(count)
    if inspect.isawaitable(said):
        await said
