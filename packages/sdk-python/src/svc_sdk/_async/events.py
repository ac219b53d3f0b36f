"""The audit log of the organization."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .._client.pages import each_item
from .._client.read_record import read_record
from ..records import AuditEvent
from .client import AsyncClient


class AsyncEvents:
    """The audit log of the organization; each event names the hash of the one before."""

    @staticmethod
    async def list(
        *,
        type: str | None = None,
        sandbox_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[AuditEvent]:
        """Newest first. `type` is such as `sandbox_created`; `since` and `until` are RFC 3339."""
        used = client or AsyncClient.of_environment()
        asked = {"event_type": type, "sandbox_id": sandbox_id, "since": since, "until": until}

        async def page(cursor: str | None) -> Any:
            query = {"limit": 100, **asked, "cursor": cursor}
            return await used.call("events.list", query=query, timeout_ms=timeout_ms)

        async for item in each_item(page):
            yield read_record(AuditEvent, item)

    @staticmethod
    async def get(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AuditEvent:
        """Raises `event_not_found`."""
        used = client or AsyncClient.of_environment()
        params = {"event_id": id}
        return read_record(
            AuditEvent, await used.call("events.get", params=params, timeout_ms=timeout_ms)
        )
