"""Access to ports of a sandbox from outside."""

from __future__ import annotations

from typing import Any

from .._channel.channel_errors import ChannelError
from .._channel.tcp import try_port
from .._client.budget import Budget
from .._client.read_record import read_record
from ..errors import SvcError
from ..records import NewPreview, Preview
from .client import AsyncClient
from .shared_channel import SharedChannel

_WAIT_MS = 60_000.0
_ATTEMPT_PAUSE_MS = 100.0


class AsyncPorts:
    """The server must have a preview domain, as local ones do."""

    def __init__(self, client: AsyncClient, sandbox_id: str, channel: SharedChannel) -> None:
        self._client = client
        self._params = {"sandbox_id": sandbox_id}
        self._channel = channel

    async def url(
        self, port: int, *, expires_in_secs: int | None = None, timeout_ms: float | None = None
    ) -> str:
        """An address of the port that opens as it is, in a browser too. Where the server asks for a
        token one is made and stands in it: for a day, or for `expires_in_secs`."""
        # The retry of a call whose answer was lost returns all but the secret; a new call makes a new one.
        while True:
            body = _body_of(port, expires_in_secs)
            made = await self._client.call(
                "previews.open", params=self._params, body=body, timeout_ms=timeout_ms
            )
            if made["url"] is not None:
                return str(made["url"])

    async def wait_for(self, port: int, *, timeout_ms: float = _WAIT_MS) -> None:
        """Waits until something listens on the port of the sandbox's loopback. Raises `timeout`, or
        `sandbox_not_running` when the sandbox ends meanwhile."""
        budget = Budget(timeout_ms)
        while not await budget.wait(self._is_listening(port)):
            await budget.pause(_ATTEMPT_PAUSE_MS)

    async def share(
        self, port: int, *, expires_in_secs: int, timeout_ms: float | None = None
    ) -> Preview:
        """Opens the port to all who can reach the server's previews, without a token, until its end
        or `revoke`."""
        body = {**_body_of(port, expires_in_secs), "public": True}
        made = await self._client.call(
            "previews.create", params=self._params, body=body, timeout_ms=timeout_ms
        )
        return read_record(Preview, made)

    async def preview(
        self, port: int, *, expires_in_secs: int | None = None, timeout_ms: float | None = None
    ) -> NewPreview:
        """Makes an address with a token for the port; the token is shown once."""
        body = _body_of(port, expires_in_secs)
        made = await self._client.call(
            "previews.create", params=self._params, body=body, timeout_ms=timeout_ms
        )
        return read_record(NewPreview, made)

    async def list(self, *, timeout_ms: float | None = None) -> tuple[Preview, ...]:
        found = await self._client.call(
            "previews.list", params=self._params, timeout_ms=timeout_ms
        )
        return tuple(read_record(Preview, each) for each in found)

    async def revoke(self, preview_id: str, *, timeout_ms: float | None = None) -> None:
        """Connections that it opened end within a minute."""
        params = {**self._params, "preview_id": preview_id}
        await self._client.call("previews.revoke", params=params, timeout_ms=timeout_ms)

    async def _is_listening(self, port: int) -> bool:
        try:
            await self._channel.use(None, lambda channel: try_port(channel.connection, port))
            return True
        except SvcError as error:
            cause = error.__cause__
            # The next attempt finds out why a connection ended: it fails when the sandbox has ended.
            if isinstance(cause, ChannelError) and cause.kind in ("refused", "closed"):
                return False
            raise


def _body_of(port: int, expires_in_secs: int | None) -> dict[str, Any]:
    limit = {} if expires_in_secs is None else {"expires_in_secs": expires_in_secs}
    return {"port": port, **limit}
