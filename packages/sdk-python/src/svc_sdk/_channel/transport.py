"""A WebSocket as a pipe of bytes, over each `websockets` from 10.4 on."""

from __future__ import annotations

import asyncio
import importlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from websockets import exceptions

from ..errors import SvcError, error_of_answer

#: Messages of the server are frames of at most 4 MiB, or lines of JSON of at most 16 MiB.
_MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_QUEUED_MESSAGES = 4
#: While a slow reader stalls the connection, pings of the server are not read.
_PONG_S = 10.0
_CLOSE_S = 1.0
#: The close code of a channel whose sandbox ran out of memory; the reason is a sentence.
_OUT_OF_MEMORY = 4137
_NORMAL = 1000
_NO_CODE = 1005


class Transport:
    """One open WebSocket."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._pongs = asyncio.ensure_future(self._send_pongs())
        self._closing: asyncio.Future[None] | None = None
        self.is_aborted = False

    async def read(self) -> bytes | None:
        """None at the end. Raises SvcError or OSError when the connection broke."""
        try:
            message = await self._socket.recv()
        except exceptions.ConnectionClosed as error:
            self._pongs.cancel()
            _raise_unless_normal(error)
            return None
        return message.encode() if isinstance(message, str) else bytes(message)

    async def write(self, data: bytes) -> None:
        """Returns when more can be written. Raises OSError."""
        try:
            await self._socket.send(data)
        except exceptions.ConnectionClosed as error:
            raise OSError("The connection is closed") from error

    def close(self) -> None:
        """Sends a close frame and does not wait for the answer."""
        if self._closing is None:
            self._pongs.cancel()
            self._closing = asyncio.ensure_future(self._close())

    def abort(self) -> None:
        """Drops the connection at once, for an event loop that ends."""
        self.is_aborted = True
        self._pongs.cancel()
        self._socket.transport.abort()

    async def closed(self) -> None:
        """Returns when the socket is closed."""
        self.close()
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._socket.close()
        except (exceptions.WebSocketException, OSError):
            # It broke, which is an end too.
            return

    async def _send_pongs(self) -> None:
        try:
            while True:
                await asyncio.sleep(_PONG_S)
                await self._socket.pong()
        except (exceptions.WebSocketException, OSError):
            # The reader reports it.
            return


def _raise_unless_normal(error: exceptions.ConnectionClosed) -> None:
    received = error.rcvd
    if received is None or received.code in (_NORMAL, _NO_CODE):
        return
    if received.code == _OUT_OF_MEMORY:
        raise SvcError("sandbox_not_running", received.reason, details={"reason": "oom"})
    raise OSError(received.reason or f"The server closed the channel ({received.code})")


async def dial(
    url: str,
    headers: dict[str, str],
    context: ssl.SSLContext | None,
    describe_refusal: Callable[[], Awaitable[SvcError | None]],
) -> Transport:
    """Opens a WebSocket. Raises SvcError."""
    try:
        return Transport(await _connect(url, headers, context))
    except exceptions.InvalidHandshake as error:
        known = _refusal_of(error) or await describe_refusal()
        raise known or _unreachable(url, error) from error
    except (OSError, EOFError, exceptions.WebSocketException) as error:
        raise _unreachable(url, error) from error


def _unreachable(url: str, error: Exception) -> SvcError:
    place = url.split("/")[2]
    reason = f": {error}" if str(error) else ""
    return SvcError("connection_failed", f"The server at {place} cannot be reached{reason}")


def _refusal_of(error: exceptions.InvalidHandshake) -> SvcError | None:
    """The answer to the upgrade; None from a `websockets` that does not have its body."""
    response = getattr(error, "response", None)
    if response is None or not response.body:
        return None
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    body = bytes(response.body).decode("utf-8", "replace")
    return error_of_answer(response.status_code, headers, body)


async def _connect(url: str, headers: dict[str, str], context: ssl.SSLContext | None) -> Any:
    options: dict[str, Any] = {
        _HEADERS: headers,
        "compression": None,
        "max_size": _MAX_MESSAGE_BYTES,
        "max_queue": _QUEUED_MESSAGES,
        # The server pings, and a reader that is slow is not a dead one.
        "ping_interval": None,
        "open_timeout": None,
        "close_timeout": _CLOSE_S,
    }
    if url.startswith("wss:") and context is not None:
        options["ssl"] = context
    return await _CONNECT(url, **options)


def _load() -> tuple[Any, str]:
    try:
        return importlib.import_module("websockets.asyncio.client").connect, "additional_headers"
    except ImportError:
        return importlib.import_module("websockets.legacy.client").connect, "extra_headers"


_FOUND, _HEADERS = _load()


class _Connect(_FOUND):  # type: ignore[misc, valid-type]
    """SAFETY: follows no redirect, which would send the credential to the host that it names."""

    def process_redirect(self, error: Exception) -> Exception:
        return error

    def handle_redirect(self, uri: str) -> None:
        raise exceptions.InvalidHandshake(f"the server redirects to {uri}")


_CONNECT: Any = _Connect
