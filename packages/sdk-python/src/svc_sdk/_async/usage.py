"""The usage and the limits of the organization, and what the server can do."""

from __future__ import annotations

from .._client.read_record import read_record
from ..records import Quotas, SandboxUsage, ServerCapabilities, StorageUsage, UsageSummary
from .client import AsyncClient


class AsyncUsage:
    """The usage and the limits of the organization. Times are RFC 3339: the start of the month, and
    now, unless given."""

    @staticmethod
    async def summary(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> UsageSummary:
        """Of the current month, with an estimate of what it costs."""
        used = client or AsyncClient.of_environment()
        data = await used.call("billing.getUsage", timeout_ms=timeout_ms)
        return read_record(UsageSummary, data)

    @staticmethod
    async def by_sandbox(
        *,
        since: str | None = None,
        until: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> SandboxUsage:
        """By sandbox and day."""
        used = client or AsyncClient.of_environment()
        query = {"from": since, "to": until}
        data = await used.call("billing.getSandboxUsage", query=query, timeout_ms=timeout_ms)
        return read_record(SandboxUsage, data)

    @staticmethod
    async def by_volume(
        *,
        since: str | None = None,
        until: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> StorageUsage:
        """By volume and day."""
        used = client or AsyncClient.of_environment()
        query = {"from": since, "to": until}
        data = await used.call("billing.getStorageUsage", query=query, timeout_ms=timeout_ms)
        return read_record(StorageUsage, data)

    @staticmethod
    async def quotas(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> Quotas:
        """The limits in force and how much of them is taken."""
        used = client or AsyncClient.of_environment()
        return read_record(Quotas, await used.call("quotas.get", timeout_ms=timeout_ms))


class AsyncCapabilities:
    """Isolation classes, the SSH gateway, the preview domain and limits of a server."""

    @staticmethod
    async def get(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> ServerCapabilities:
        used = client or AsyncClient.of_environment()
        data = await used.call("capabilities.get", timeout_ms=timeout_ms)
        return read_record(ServerCapabilities, data)
