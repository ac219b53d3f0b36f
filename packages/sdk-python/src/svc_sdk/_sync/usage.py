"""Generated from ../_async/usage.py by `make generate`."""

from __future__ import annotations

from .._async.usage import AsyncCapabilities
from .._async.usage import AsyncUsage
from .._client import portal
from ..records import Quotas, SandboxUsage, ServerCapabilities, StorageUsage, UsageSummary
from .client import Client


class Usage:
    """The usage and the limits of the organization. Times are RFC 3339: the start of the month, and
    now, unless given."""

    @staticmethod
    def summary(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> UsageSummary:
        """Of the current month, with an estimate of what it costs."""
        return portal.run(AsyncUsage.summary(client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def by_sandbox(
        *,
        since: str | None = None,
        until: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> SandboxUsage:
        """By sandbox and day."""
        return portal.run(AsyncUsage.by_sandbox(
            since=since,
            until=until,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def by_volume(
        *,
        since: str | None = None,
        until: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> StorageUsage:
        """By volume and day."""
        return portal.run(AsyncUsage.by_volume(
            since=since,
            until=until,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def quotas(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Quotas:
        """The limits in force and how much of them is taken."""
        return portal.run(AsyncUsage.quotas(client=portal.inner(client), timeout_ms=timeout_ms))


class Capabilities:
    """Isolation classes, the SSH gateway, the preview domain and limits of a server."""

    @staticmethod
    def get(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> ServerCapabilities:
        return portal.run(AsyncCapabilities.get(client=portal.inner(client), timeout_ms=timeout_ms))
