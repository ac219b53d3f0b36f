"""Generated from ../_async/events.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from .._async.events import AsyncEvents
from .._client import portal
from ..records import AuditEvent
from .client import Client


class Events:
    """The audit log of the organization; each event names the hash of the one before."""

    @staticmethod
    def list(
        *,
        type: str | None = None,
        sandbox_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[AuditEvent]:
        """Newest first. `type` is such as `sandbox_created`; `since` and `until` are RFC 3339."""
        return portal.iterate(AsyncEvents.list(
            type=type,
            sandbox_id=sandbox_id,
            since=since,
            until=until,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def get(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> AuditEvent:
        """Raises `event_not_found`."""
        return portal.run(AsyncEvents.get(id, client=portal.inner(client), timeout_ms=timeout_ms))
