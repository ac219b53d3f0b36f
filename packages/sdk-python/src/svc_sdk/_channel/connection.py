"""Reads the frames of one transport and hands each to the session of its id."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from ..errors import SvcError
from .background import in_background
from .channel_errors import ChannelError
from .frame import GENERATION, TERMINAL, FrameSplitter, Message, Payload, decode_message, encode_message, read_head
from .payload_fields import read_optional_message, read_uint
from .transport import Transport

#: The range that opens a connection: two words of 32 bits.
_RANGE = struct.Struct(">II")
_HANDSHAKE_S = 10.0


class Session(Protocol):
    """One conversation on a connection: all frames of one id."""

    def receive(self, message: Message) -> Awaitable[None] | None:
        """A returned awaitable delays all messages behind this one until it is done."""

    def lost(self, error: Exception) -> None:
        """No more messages will come. Also called after the last one, and perhaps more than once."""


@dataclass(frozen=True)
class AgentInfo:
    """What the agent says about itself when a connection opens."""

    generation: int
    version: str | None
    #: Groups of messages that it knows beyond the generation, `svc.watch` for instance.
    features: tuple[str, ...]


class Connection:
    """The client end of a channel. The peer is not trusted: frames for unknown ids are dropped
    undecoded, bytes that are no frame end the connection."""

    def __init__(self, transport: Transport) -> None:
        loop = asyncio.get_running_loop()
        self._transport = transport
        self._splitter = FrameSplitter()
        self._sessions: dict[int, Session] = {}
        self._range_bytes = b""
        self._ids: _IdRange | None = None
        self._ready: asyncio.Future[AgentInfo] = loop.create_future()
        self._failure: Exception | None = None
        self._reading = asyncio.ensure_future(self._read())
        #: Done when the connection has ended.
        self.ended: asyncio.Future[None] = loop.create_future()
        # The connection may fail before the handshake is awaited.
        self._ready.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def handshake(self) -> AgentInfo:
        """Waits for the hello of the agent. The connection is closed when it does not come in time."""
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                return await asyncio.shield(self._ready)
        except TimeoutError:
            said = f"The sandbox did not answer within {_HANDSHAKE_S:.0f} s"
            self._fail(ChannelError("timeout", said))
            raise ChannelError("timeout", said) from None
        except BaseException:
            self.close()
            raise

    @property
    def is_over(self) -> bool:
        return self._failure is not None

    def start(self, session: Session) -> int:
        """Opens a session under a fresh id, which gets every message and the end."""
        if self._failure is not None:
            raise self._failure
        if self._ids is None:
            raise ChannelError("closed", "The channel is not open yet")
        id = self._ids.take(self._sessions)
        self._sessions[id] = session
        return id

    async def send(self, id: int, *messages: tuple[str, Payload]) -> None:
        """Returns when the transport can take more. All messages are sent in one write."""
        if self._failure is not None:
            raise self._failure
        data = b"".join(encode_message(id, type, payload) for type, payload in messages)
        try:
            await self._transport.write(data)
        except OSError as error:
            broken = ChannelError("closed", "The connection to the sandbox broke")
            broken.__cause__ = error
            self._fail(broken)
            raise self._failure or broken from error

    def post(self, id: int, type: str, payload: Payload) -> None:
        """Sends a frame without waiting: a failure ends the connection, and with it every session."""
        if self._failure is None:
            in_background(self.send(id, (type, payload)))

    def abandon(self, id: int) -> None:
        """Detaches the caller from a session; the id stays taken until the agent's last message."""
        if id in self._sessions:
            self._sessions[id] = _ABANDONED

    def forget(self, id: int) -> None:
        """Frees the id of a session for which the agent sends no last message."""
        self._sessions.pop(id, None)

    def close(self) -> None:
        self._fail(ChannelError("closed", "The channel was closed"))

    async def closed(self) -> None:
        """Closes it, and returns when its socket is closed."""
        self.close()
        await self._transport.closed()

    async def _read(self) -> None:
        try:
            while (data := await self._transport.read()) is not None:
                for frame in self._splitter.push(self._without_range(data)):
                    hold = self._route(frame)
                    if hold is not None:
                        await hold
                    if self._failure is not None:
                        return
            self._fail(ChannelError("closed", "The sandbox closed the channel"))
        except (ChannelError, SvcError) as error:
            self._fail(error)
        except OSError as error:
            broken = ChannelError("closed", f"The connection to the sandbox broke: {error}")
            broken.__cause__ = error
            self._fail(broken)
        except asyncio.CancelledError:
            if self._failure is None:
                # The event loop ends, and would not run what a close has to wait for.
                self._transport.abort()
                self.close()
            raise

    def _without_range(self, data: bytes) -> bytes:
        """The first bytes of a connection say which ids are ours; returns what follows them."""
        if self._ids is not None:
            return data
        taken = data[: _RANGE.size - len(self._range_bytes)]
        self._range_bytes += taken
        if len(self._range_bytes) == _RANGE.size:
            self._ids = _IdRange(*_RANGE.unpack(self._range_bytes))
        return data[len(taken) :]

    def _route(self, frame: bytes) -> Awaitable[None] | None:
        if not self._ready.done():
            self._ready.set_result(_read_ready(decode_message(frame)))
            return None
        id, flags = read_head(frame)
        session = self._sessions.get(id)
        if session is None:
            return None
        hold = self._deliver(id, session, frame)
        if flags & TERMINAL:
            self._sessions.pop(id, None)
            session.lost(_UNANSWERED)
        return hold

    def _deliver(self, id: int, session: Session, frame: bytes) -> Awaitable[None] | None:
        try:
            return session.receive(decode_message(frame))
        except ChannelError as error:
            # The frame is whole and only its payload is wrong, so the other sessions go on.
            self.abandon(id)
            session.lost(error)
            return None

    def _fail(self, error: Exception) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if not self._transport.is_aborted:
            self._transport.close()
        if not self._ready.done():
            self._ready.set_exception(error)
        self.ended.set_result(None)
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.lost(error)
        if asyncio.current_task() is not self._reading:
            self._reading.cancel()


class _Abandoned:
    def receive(self, message: Message) -> None:
        return None

    def lost(self, error: Exception) -> None:
        return None


_ABANDONED = _Abandoned()
# Created once: every session gets it at the end, although most have their answer already.
_UNANSWERED = ChannelError("protocol", "The sandbox ended the call without an answer")


def _read_ready(message: Message) -> AgentInfo:
    if message.type != "core.ready" or message.id != 0:
        raise ChannelError("protocol", "The sandbox did not begin with core.ready")
    read_uint(message.payload, "ready_time_ns")
    features = message.payload.get("features")
    known = features if isinstance(features, list) else []
    return AgentInfo(
        generation=min(GENERATION, message.generation),
        version=read_optional_message(message.payload, "agent_version"),
        features=tuple(each for each in known if isinstance(each, str)),
    )


class _IdRange:
    """The ids a client may use: counted up, wrapping, never 0."""

    def __init__(self, first: int, end: int) -> None:
        if first >= end or end <= 1:
            raise ChannelError("protocol", "The sandbox sent an invalid id range")
        self._first = max(1, first)
        self._end = end
        self._next = self._first

    def take(self, taken: dict[int, Session]) -> int:
        for _ in range(len(taken) + 1):
            id = self._next
            self._next = id + 1 if id + 1 < self._end else self._first
            if id not in taken:
                return id
        raise ChannelError("refused", "Too many calls are under way on this channel")
