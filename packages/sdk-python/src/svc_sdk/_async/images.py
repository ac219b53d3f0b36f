"""Images that sandboxes are made from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from .._client.budget import Budget
from .._client.read_record import read_record
from ..errors import SvcError, error_of_envelope
from ..records import ImageInfo
from ..values import FetchProgress, OnProgress, PulledImage
from .client import AsyncClient


class AsyncImages:
    """Images that sandboxes are made from."""

    @staticmethod
    async def list(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> tuple[ImageInfo, ...]:
        """Those that the organization has pulled or used, and those that the operator provides."""
        used = client or AsyncClient.of_environment()
        found = await used.call("images.list", timeout_ms=timeout_ms)
        return tuple(read_record(ImageInfo, each) for each in found)

    @staticmethod
    async def remove(
        reference: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> None:
        """Removes an image from the organization, by a name or its id. Remove the sandboxes and
        snapshots that use it first."""
        used = client or AsyncClient.of_environment()
        params = {"reference": reference}
        await used.call("images.remove", params=params, timeout_ms=timeout_ms)

    @staticmethod
    async def pull(
        reference: str,
        *,
        policy: str | None = None,
        registry: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> PulledImage:
        """Fetches an image ahead of the first sandbox that needs it. No time limit unless given.
        `policy` `always` asks the registry; `registry` is the user name and password for it."""
        used = client or AsyncClient.of_environment()
        given: dict[str, Any] = {
            "reference": reference,
            "pull_policy": policy,
            "registry": None if registry is None else dict(registry),
        }
        body = {key: value for key, value in given.items() if value is not None}
        budget = Budget(timeout_ms)
        events = budget.each(await budget.wait(used.events("images.pull", body=body)))
        try:
            async for event in events:
                if event.event == "done":
                    return read_record(PulledImage, event.data)
                if event.event == "error":
                    raise error_of_envelope(event.data)
                if event.event == "progress" and on_progress is not None:
                    said = on_progress(read_record(FetchProgress, event.data))
                    if inspect.isawaitable(said):
                        await said
        finally:
            await events.aclose()  # type: ignore[attr-defined]
        raise SvcError("connection_failed", f"The connection broke while {reference} was pulled")
