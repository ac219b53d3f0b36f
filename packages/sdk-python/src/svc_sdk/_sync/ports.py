"""Generated from ../_async/ports.py by `make generate`."""

from __future__ import annotations

from .._async.ports import AsyncPorts
from .._client import portal
from ..records import NewPreview, Preview

_WAIT_MS = 60000.0


class Ports:
    """The server must have a preview domain, as local ones do."""

    @classmethod
    def _of(cls, inner: AsyncPorts) -> Ports:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncPorts) -> None:
        self._inner = inner

    def url(
        self,
        port: int,
        *,
        expires_in_secs: int | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """An address of the port that opens as it is, in a browser too. Where the server asks for a
        token one is made and stands in it: for a day, or for `expires_in_secs`."""
        return portal.run(self._inner.url(
            port,
            expires_in_secs=expires_in_secs,
            timeout_ms=timeout_ms,
        ))

    def wait_for(self, port: int, *, timeout_ms: float = _WAIT_MS) -> None:
        """Waits until something listens on the port of the sandbox's loopback. Raises `timeout`, or
        `sandbox_not_running` when the sandbox ends meanwhile."""
        portal.run(self._inner.wait_for(port, timeout_ms=timeout_ms))

    def share(
        self,
        port: int,
        *,
        expires_in_secs: int,
        timeout_ms: float | None = None,
    ) -> Preview:
        """Opens the port to all who can reach the server's previews, without a token, until its end
        or `revoke`."""
        return portal.run(self._inner.share(
            port,
            expires_in_secs=expires_in_secs,
            timeout_ms=timeout_ms,
        ))

    def preview(
        self,
        port: int,
        *,
        expires_in_secs: int | None = None,
        timeout_ms: float | None = None,
    ) -> NewPreview:
        """Makes an address with a token for the port; the token is shown once."""
        return portal.run(self._inner.preview(
            port,
            expires_in_secs=expires_in_secs,
            timeout_ms=timeout_ms,
        ))

    def list(self, *, timeout_ms: float | None = None) -> tuple[Preview, ...]:
        return portal.run(self._inner.list(timeout_ms=timeout_ms))

    def revoke(self, preview_id: str, *, timeout_ms: float | None = None) -> None:
        """Connections that it opened end within a minute."""
        portal.run(self._inner.revoke(preview_id, timeout_ms=timeout_ms))
