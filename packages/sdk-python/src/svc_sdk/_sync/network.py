"""Generated from ../_async/network.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any, Literal
from .._async.network import AsyncNetwork
from .._client import portal
from ..records import NetworkDecision, NetworkExplanation
from ..values import OnCount


class Network:
    """The bodies are those of the REST API, in docs/guides/network.md."""

    @classmethod
    def _of(cls, inner: AsyncNetwork) -> Network:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncNetwork) -> None:
        self._inner = inner

    def update(
        self,
        change: Mapping[str, Any],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Changes the network policy, at once and for later runs. Absent: unchanged; None: the
        default. Connections that are now denied are closed."""
        portal.run(self._inner.update(change, timeout_ms=timeout_ms))

    def explain(
        self,
        question: Mapping[str, Any],
        *,
        timeout_ms: float | None = None,
    ) -> NetworkExplanation:
        """Says which rule decides about a connection to a name or an address; over TCP unless
        another protocol is given."""
        return portal.run(self._inner.explain(question, timeout_ms=timeout_ms))

    def log(
        self,
        *,
        follow: bool = False,
        verdict: Literal['allow', 'deny'] | None = None,
        after: str | None = None,
        on_left_out: OnCount | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[NetworkDecision]:
        """The log of network decisions, oldest first: denials up to a limit, and samples of what was
        allowed. `follow`: until the sandbox stops, over lost connections too. `after`: the cursor of
        the last entry that was seen."""
        return portal.iterate(self._inner.log(
            follow=follow,
            verdict=verdict,
            after=after,
            on_left_out=portal.listener(on_left_out),
            timeout_ms=timeout_ms,
        ))
