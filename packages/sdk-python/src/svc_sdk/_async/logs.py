"""What the processes of a sandbox have written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from .._client.budget import Budget
from .._client.follow_events import follow_events
from .._client.pages import each_item
from .._client.server_events import StreamEvent
from ..values import LogEntry
from .client import AsyncClient

_PAGE = 1000


@dataclass(frozen=True)
class LogQuery:
    follow: bool
    sources: Sequence[str] | None
    tail: int | None
    since: str | None
    until: str | None
    after: str | None
    timeout_ms: float | None

    @property
    def source_list(self) -> str | None:
        return None if self.sources is None else ",".join(self.sources)


async def read_logs(client: AsyncClient, sandbox_id: str, query: LogQuery) -> AsyncIterator[LogEntry]:
    """Oldest first."""
    last = query.after
    is_bounded = any(each is not None for each in (query.tail, query.since, query.until))
    if is_bounded or not query.follow:
        async for entry in _read_past(client, sandbox_id, query):
            last = entry.cursor
            yield entry
    if query.follow and query.until is None:
        following = _follow(client, sandbox_id, query, last)
        try:
            async for entry in following:
                yield entry
        finally:
            await following.aclose()  # type: ignore[attr-defined]


async def _read_past(
    client: AsyncClient, sandbox_id: str, query: LogQuery
) -> AsyncIterator[LogEntry]:
    async def page(cursor: str | None) -> Any:
        asked = {
            "limit": _PAGE,
            "sources": query.source_list,
            "since": query.since,
            "until": query.until,
            # Pages after the first begin behind their cursor, not at the tail.
            "tail": query.tail if cursor is None else None,
            "cursor": cursor or query.after,
        }
        return await client.call(
            "logs.list",
            params={"sandbox_id": sandbox_id},
            query=asked,
            timeout_ms=query.timeout_ms,
        )

    async for item in each_item(page):
        yield LogEntry(item["source"], item["ts"], item["text"], item["cursor"])


async def _follow(
    client: AsyncClient, sandbox_id: str, query: LogQuery, after: str | None
) -> AsyncIterator[LogEntry]:
    async def open(last_id: str | None) -> AsyncIterator[StreamEvent]:
        last = last_id or after
        return await client.events(
            "logs.follow",
            params={"sandbox_id": sandbox_id},
            query={"sources": query.source_list},
            headers={} if last is None else {"last-event-id": last},
        )

    events = follow_events(Budget(query.timeout_ms), open)
    try:
        async for event in events:
            if event.event == "log" and event.id is not None:
                data = event.data
                yield LogEntry(data["source"], data["ts"], data["text"], event.id)
    finally:
        await events.aclose()  # type: ignore[attr-defined]
