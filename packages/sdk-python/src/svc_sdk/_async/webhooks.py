"""Addresses to which events of the organization are posted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from .._client.pages import each_item
from .._client.read_record import read_record
from ..records import NewWebhook, Webhook, WebhookDelivery
from .client import AsyncClient


class AsyncWebhooks:
    """The webhooks of the organization that the client acts in. `event_types` are types such as
    `sandbox_ending`, all of a category such as `sandbox.*`, or `*`."""

    @staticmethod
    async def list(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> tuple[Webhook, ...]:
        """Oldest first."""
        used = client or AsyncClient.of_environment()
        found = await used.call("webhooks.list", timeout_ms=timeout_ms)
        return tuple(read_record(Webhook, each) for each in found)

    @staticmethod
    async def create(
        url: str,
        event_types: Sequence[str],
        *,
        description: str | None = None,
        enabled: bool | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> NewWebhook:
        """Its signing secret is shown once; None: the answer was lost on the way, so rotate it."""
        used = client or AsyncClient.of_environment()
        body = _body_of(url, event_types, description, enabled)
        data = await used.call("webhooks.create", body=body, timeout_ms=timeout_ms)
        return read_record(NewWebhook, data)

    @staticmethod
    async def get(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> Webhook:
        used = client or AsyncClient.of_environment()
        params = {"webhook_id": id}
        return read_record(
            Webhook, await used.call("webhooks.get", params=params, timeout_ms=timeout_ms)
        )

    @staticmethod
    async def update(
        id: str,
        *,
        url: str | None = None,
        event_types: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> Webhook:
        """What is None stays as it is."""
        used = client or AsyncClient.of_environment()
        body = _body_of(url, event_types, description, enabled)
        data = await used.call(
            "webhooks.update", params={"webhook_id": id}, body=body, timeout_ms=timeout_ms
        )
        return read_record(Webhook, data)

    @staticmethod
    async def remove(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> None:
        used = client or AsyncClient.of_environment()
        await used.call("webhooks.remove", params={"webhook_id": id}, timeout_ms=timeout_ms)

    @staticmethod
    async def rotate(
        id: str,
        *,
        overlap_secs: int | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> NewWebhook:
        """A new secret; the one before signs too for `overlap_secs`, a day unless given."""
        used = client or AsyncClient.of_environment()
        body = {} if overlap_secs is None else {"overlap_secs": overlap_secs}
        data = await used.call(
            "webhooks.rotate", params={"webhook_id": id}, body=body, timeout_ms=timeout_ms
        )
        return read_record(NewWebhook, data)

    @staticmethod
    async def test(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> WebhookDelivery:
        """Sends a test now; `status` and `attempts` say how it went."""
        used = client or AsyncClient.of_environment()
        params = {"webhook_id": id}
        data = await used.call("webhooks.test", params=params, timeout_ms=timeout_ms)
        return read_record(WebhookDelivery, data)

    @staticmethod
    async def deliveries(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AsyncIterator[WebhookDelivery]:
        """Newest first; of the last 7 days."""
        used = client or AsyncClient.of_environment()

        async def page(cursor: str | None) -> Any:
            return await used.call(
                "webhooks.deliveries",
                params={"webhook_id": id},
                query={"limit": 100, "cursor": cursor},
                timeout_ms=timeout_ms,
            )

        async for item in each_item(page):
            yield read_record(WebhookDelivery, item)

    @staticmethod
    async def redeliver(
        id: str,
        delivery_id: str,
        *,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> WebhookDelivery:
        """Sends a delivery once more now, under its `webhook-id`."""
        used = client or AsyncClient.of_environment()
        params = {"webhook_id": id, "delivery_id": delivery_id}
        data = await used.call("webhooks.redeliver", params=params, timeout_ms=timeout_ms)
        return read_record(WebhookDelivery, data)


def _body_of(
    url: str | None,
    event_types: Sequence[str] | None,
    description: str | None,
    enabled: bool | None,
) -> dict[str, object]:
    given = {
        "url": url,
        "event_types": None if event_types is None else [*event_types],
        "description": description,
        "enabled": enabled,
    }
    return {name: value for name, value in given.items() if value is not None}
