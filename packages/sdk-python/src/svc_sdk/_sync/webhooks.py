"""Generated from ../_async/webhooks.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from .._async.webhooks import AsyncWebhooks
from .._client import portal
from ..records import NewWebhook, Webhook, WebhookDelivery
from .client import Client


class Webhooks:
    """The webhooks of the organization that the client acts in. `event_types` are types such as
    `sandbox_ending`, all of a category such as `sandbox.*`, or `*`."""

    @staticmethod
    def list(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[Webhook, ...]:
        """Oldest first."""
        return portal.run(AsyncWebhooks.list(client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def create(
        url: str,
        event_types: Sequence[str],
        *,
        description: str | None = None,
        enabled: bool | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> NewWebhook:
        """Its signing secret is shown once; None: the answer was lost on the way, so rotate it."""
        return portal.run(AsyncWebhooks.create(
            url,
            event_types,
            description=description,
            enabled=enabled,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def get(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Webhook:
        return portal.run(AsyncWebhooks.get(id, client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def update(
        id: str,
        *,
        url: str | None = None,
        event_types: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Webhook:
        """What is None stays as it is."""
        return portal.run(AsyncWebhooks.update(
            id,
            url=url,
            event_types=event_types,
            description=description,
            enabled=enabled,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def remove(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        portal.run(AsyncWebhooks.remove(id, client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def rotate(
        id: str,
        *,
        overlap_secs: int | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> NewWebhook:
        """A new secret; the one before signs too for `overlap_secs`, a day unless given."""
        return portal.run(AsyncWebhooks.rotate(
            id,
            overlap_secs=overlap_secs,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def test(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> WebhookDelivery:
        """Sends a test now; `status` and `attempts` say how it went."""
        return portal.run(AsyncWebhooks.test(id, client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def deliveries(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[WebhookDelivery]:
        """Newest first; of the last 7 days."""
        return portal.iterate(AsyncWebhooks.deliveries(id, client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def redeliver(
        id: str,
        delivery_id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> WebhookDelivery:
        """Sends a delivery once more now, under its `webhook-id`."""
        return portal.run(AsyncWebhooks.redeliver(
            id,
            delivery_id,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))
