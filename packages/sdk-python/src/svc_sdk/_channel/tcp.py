"""Asks a sandbox whether something listens on one of its ports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from .channel_errors import ChannelError
from .connection import Connection
from .frame import Message
from .payload_fields import read_message, refusal

_LOOPBACK = "127.0.0.1"


async def try_port(connection: Connection, port: int) -> None:
    """Connects to the port of the sandbox's loopback and closes. Raises ChannelError `refused`."""
    session = _TcpSession(connection)
    try:
        await connection.send(session.id, ("core.tcp.connect", {"host": _LOOPBACK, "port": port}))
        await asyncio.shield(session.connected)
    finally:
        if not connection.is_over and not session.is_over:
            connection.post(session.id, "core.tcp.close", {})
            # The agent does not answer a close, so the id is freed here.
            connection.forget(session.id)


class _TcpSession:
    def __init__(self, connection: Connection) -> None:
        self.connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.connected.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.is_over = False
        self.id = connection.start(self)

    def receive(self, message: Message) -> Awaitable[None] | None:
        if message.type == "core.tcp.connected" and not self.connected.done():
            self.connected.set_result(None)
        elif message.type == "core.tcp.failed":
            said = read_message(message.payload, "error")
            self.lost(ChannelError("refused", said or "The connection failed"))
        elif message.type == "core.error":
            self.lost(refusal(message))
        return None

    def lost(self, error: Exception) -> None:
        self.is_over = True
        if not self.connected.done():
            self.connected.set_exception(error)
