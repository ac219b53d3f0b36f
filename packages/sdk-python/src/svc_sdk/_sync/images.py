"""Generated from ../_async/images.py by `make generate`."""

from __future__ import annotations

from collections.abc import Mapping
from .._async.images import AsyncImages
from .._client import portal
from ..records import ImageInfo
from ..values import OnProgress, PulledImage
from .client import Client


class Images:
    """Images that sandboxes are made from."""

    @staticmethod
    def list(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[ImageInfo, ...]:
        """Those that the organization has pulled or used, and those that the operator provides."""
        return portal.run(AsyncImages.list(client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def remove(
        reference: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Removes an image from the organization, by a name or its id. Remove the sandboxes and
        snapshots that use it first."""
        portal.run(AsyncImages.remove(
            reference,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def pull(
        reference: str,
        *,
        policy: str | None = None,
        registry: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> PulledImage:
        """Fetches an image ahead of the first sandbox that needs it. No time limit unless given.
        `policy` `always` asks the registry; `registry` is the user name and password for it."""
        return portal.run(AsyncImages.pull(
            reference,
            policy=policy,
            registry=registry,
            on_progress=portal.listener(on_progress),
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))
