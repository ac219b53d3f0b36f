"""Generated from ../_async/client.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from .._async.client import AsyncClient
from .._client import portal
from .._client.server_events import StreamEvent


class Client:
    """Everything else in this library goes through one; calls may overlap.

    Every change carries an idempotency key of its own, so that a repetition after a lost answer does
    nothing twice. One client serves any number of event loops.
    """

    def __init__(
        self,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        organization: str | None = None,
        timeout_ms: float = 60000,
        max_retries: int = 3,
    ) -> None:
        """`api_url`, `api_key` and `organization` are those of SVC_API_URL, SVC_API_KEY and SVC_ORG
        unless given; the organization of the environment belongs to the key of the environment."""
        self._attach(AsyncClient(api_url=api_url, api_key=api_key, organization=organization, timeout_ms=timeout_ms, max_retries=max_retries))

    @classmethod
    def _of(cls, inner: AsyncClient) -> Client:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncClient) -> None:
        self._inner = inner

    @property
    def api_url(self) -> str:
        return self._inner.api_url

    @property
    def organization(self) -> str | None:
        return self._inner.organization

    @property
    def timeout_ms(self) -> float:
        return self._inner.timeout_ms

    @property
    def max_retries(self) -> int:
        return self._inner.max_retries

    @staticmethod
    def of_environment() -> Client:
        """The client of SVC_API_URL and SVC_API_KEY, made at its first use."""
        return Client._of(AsyncClient.of_environment())

    def call(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_ms: float | None = None,
        organization: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Calls any operation of the control plane by its name in docs/reference/operations.md, and
        gives the JSON of its answer. A change that is asked for again under its `idempotency_key` is
        not made twice; each has one of its own unless given."""
        return portal.run(self._inner.call(
            name,
            params=params,
            query=query,
            headers=headers,
            body=body,
            timeout_ms=timeout_ms,
            organization=organization,
            idempotency_key=idempotency_key,
        ))

    def events(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_ms: float | None = None,
    ) -> Iterator[StreamEvent]:
        """The events of an operation that streams them. The time limit ends with the answer's head."""
        return portal.iterate(portal.run(self._inner.events(
            name,
            params=params,
            query=query,
            headers=headers,
            body=body,
            timeout_ms=timeout_ms,
        )))

    def download(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[bytes]:
        """The bytes of an operation that streams them. The time limit ends with the answer's head."""
        return portal.iterate(portal.run(self._inner.download(
            name,
            params=params,
            query=query,
            headers=headers,
            timeout_ms=timeout_ms,
        )))

    def rpc(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_ms: float | None = None,
    ) -> Any:
        """Calls a method of the JSON-RPC surface, once: it knows no idempotency keys."""
        return portal.run(self._inner.rpc(method, params, timeout_ms=timeout_ms))

    def slug(self, *, timeout_ms: float | None = None) -> str:
        """The slug of the organization that calls act in: the one of the client, or of its API key."""
        return portal.run(self._inner.slug(timeout_ms=timeout_ms))

    def close(self) -> None:
        """Closes the idle connections of the current event loop; the client can still be used."""
        portal.run(self._inner.close())
