"""A process that runs, over a connection of its own."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Awaitable
from types import TracebackType
from typing import Literal, TypeVar

from .._channel.byte_queue import ByteQueue
from .._channel.channel_errors import ChannelError
from .._channel.process import ChannelProcess, CommandExit
from .._client.budget import to_svc_error
from ..signals import Signal, signal_number
from .shared_channel import Channel

T = TypeVar("T")


class AsyncOutputStream:
    """The output of a process, as it arrives. Read it once: with 1 MiB unread the process waits for
    its reader. Leaving the iteration early drops the rest."""

    def __init__(self, queue: ByteQueue) -> None:
        self._queue = queue

    async def chunks(self) -> AsyncIterator[bytes]:
        """Piece by piece, as bytes."""
        try:
            async for chunk in self._queue:
                yield chunk
        except ChannelError as error:
            raise to_svc_error(error) from error

    async def bytes(self) -> bytes:
        """All of it."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def text(self) -> str:
        """All of it, as text."""
        return (await self.bytes()).decode("utf-8", "replace")

    async def texts(self) -> AsyncIterator[str]:
        """Piece by piece as text; a character is never cut in two."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for chunk in self.chunks():
            text = decoder.decode(chunk)
            if text:
                yield text
        rest = decoder.decode(b"", final=True)
        if rest:
            yield rest

    async def lines(self) -> AsyncIterator[str]:
        """Line by line, without the line ends."""
        rest = ""
        async for text in self.texts():
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                yield line
        if rest:
            yield rest

    async def discard(self) -> None:
        """Drops current and future output."""
        self._queue.discard()


class AsyncCommand:
    """It ends when its connection is closed: by `kill`, at the end of a `with` block, or with this
    program."""

    stdout: AsyncOutputStream
    stderr: AsyncOutputStream

    def __init__(self, channel: Channel, process: ChannelProcess) -> None:
        self._channel = channel
        self._process = process
        self.stdout = AsyncOutputStream(process.stdout)
        self.stderr = AsyncOutputStream(process.stderr)
        self._ending = asyncio.ensure_future(self._close_at_end())

    @property
    def pid(self) -> int:
        """In the sandbox."""
        return self._process.pid

    async def write(self, data: str | bytes) -> None:
        """Returns when more can be written. Writing to a process that has ended does nothing."""
        await _called(self._process.write(data.encode() if isinstance(data, str) else data))

    async def close_stdin(self) -> None:
        """The process reads the end of its input."""
        await _called(self._process.close_stdin())

    async def signal(self, signal: Signal) -> None:
        """To the process and all that it started."""
        await _called(self._process.signal(signal_number(signal)))

    async def kill(self) -> None:
        """The process and all that it started, in sessions of their own too."""
        await _called(self._process.kill())

    async def resize(self, *, cols: int, rows: int) -> None:
        """Of a terminal."""
        await _called(self._process.resize(rows, cols))

    async def wait(self) -> CommandExit:
        """All output has come before it returns, so read or discard both streams meanwhile."""
        return await _called(self._process.exited())

    async def close(self) -> None:
        """Ends the process if it still runs."""
        await self._channel.connection.closed()

    async def __aenter__(self) -> AsyncCommand:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        await self.close()
        return False

    async def _close_at_end(self) -> None:
        try:
            await self._process.exited()
        except Exception:
            # Callers of `wait` get it.
            pass
        self._channel.close()


async def _called(work: Awaitable[T]) -> T:
    try:
        return await work
    except ChannelError as error:
        raise to_svc_error(error) from error
