"""A process in the sandbox that lives as long as its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .byte_queue import ByteQueue
from .channel_errors import ChannelError, ExecFailed
from .connection import Connection
from .frame import Message, Payload
from .payload_fields import (
    read_bytes,
    read_integer,
    read_message,
    read_optional_integer,
    read_optional_message,
    read_uint,
    refusal,
)

#: Unread output that is held per stream before the whole connection waits for the reader.
_OUTPUT_LIMIT_BYTES = 1024 * 1024
#: Larger input is split, so that no frame delays signals for long.
_STDIN_CHUNK_BYTES = 256 * 1024
_SIGKILL = 9
#: Shells add the number of a signal to it.
_SIGNAL_BASE = 128

ExitReason = Literal["exit", "signal", "oom", "max_duration"]
_REASONS: tuple[ExitReason, ...] = ("exit", "signal", "oom", "max_duration")


@dataclass(frozen=True)
class ExecRequest:
    cmd: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    user: str | None = None
    tty: bool = False
    rows: int = 24
    cols: int = 80
    rlimits: Sequence[Mapping[str, object]] = field(default=())

    def payload(self) -> Payload:
        env = [f"{name}={value}" for name, value in (self.env or {}).items()]
        return {
            "cmd": self.cmd,
            "args": list(self.args),
            "env": env,
            "cwd": self.cwd,
            "user": self.user,
            "tty": self.tty,
            "rows": self.rows,
            "cols": self.cols,
            "rlimits": [dict(each) for each in self.rlimits],
        }


@dataclass(frozen=True)
class CommandExit:
    """How a command ended."""

    #: -1 when a signal ended it.
    code: int
    signal: int | None
    #: `oom`: the sandbox ran out of memory. `max_duration`: it ended with its sandbox.
    reason: ExitReason

    @property
    def shell_code(self) -> int:
        """As a shell gives it: the code, or 128 + n when signal n ended the command."""
        return shell_code_of(self.code, self.signal)


def shell_code_of(code: int, signal: int | None) -> int:
    if signal is not None:
        return _SIGNAL_BASE + signal
    return _SIGNAL_BASE + _SIGKILL if code < 0 else code


class ChannelProcess:
    """Read `stdout` and `stderr`, or discard them: when one holds 1 MiB unread, the whole connection
    waits for its reader. A terminal has all its output in `stdout`."""

    def __init__(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._connection = connection
        self._started: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[CommandExit] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._stdin_error: ChannelError | None = None
        self.pid = 0
        self.stdout = ByteQueue(_OUTPUT_LIMIT_BYTES)
        self.stderr = ByteQueue(_OUTPUT_LIMIT_BYTES)
        for future in (self._started, self._exited):
            # Callers may ignore either.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._id = connection.start(self)

    @classmethod
    async def start(
        cls, connection: Connection, request: ExecRequest, *, is_input_over: bool = False
    ) -> ChannelProcess:
        """Raises ExecFailed when it cannot be started. A cancelled start kills the process."""
        process = cls(connection)
        messages: list[tuple[str, Payload]] = [("core.exec.request", request.payload())]
        if is_input_over:
            messages.append(("core.exec.stdin", {"data": b""}))
        try:
            await connection.send(process._id, *messages)
            await asyncio.shield(process._started)
        except asyncio.CancelledError:
            process.give_up()
            raise
        return process

    async def exited(self) -> CommandExit:
        """All output has been delivered before it returns."""
        return await asyncio.shield(self._exited)

    @property
    def is_over(self) -> bool:
        return self._over.done()

    async def write(self, data: bytes) -> None:
        """Does nothing when the process has ended."""
        for start in range(0, len(data), _STDIN_CHUNK_BYTES):
            if self._stdin_error is not None:
                raise self._stdin_error
            await self._send("core.exec.stdin", {"data": data[start : start + _STDIN_CHUNK_BYTES]})

    async def close_stdin(self) -> None:
        await self._send("core.exec.stdin", {"data": b""})

    async def signal(self, number: int) -> None:
        await self._send("core.exec.signal", {"signal": number})

    async def kill(self) -> None:
        """The process and all that it started."""
        await self._send("core.exec.signal", {"signal": _SIGKILL, "tree": True})

    async def resize(self, rows: int, cols: int) -> None:
        await self._send("core.exec.resize", {"rows": rows, "cols": cols})

    def give_up(self) -> None:
        """Kills without waiting for the outcome."""
        if self._over.done():
            return
        self._connection.post(self._id, "core.exec.signal", {"signal": _SIGKILL, "tree": True})
        self._connection.abandon(self._id)
        self._finish(ChannelError("closed", "The process was given up"))

    def receive(self, message: Message) -> Awaitable[None] | None:
        payload = message.payload
        match message.type:
            case "core.exec.stdout":
                return self._push(self.stdout, read_bytes(payload, "data"))
            case "core.exec.stderr":
                return self._push(self.stderr, read_bytes(payload, "data"))
            case "core.exec.started":
                self.pid = read_uint(payload, "pid")
                if not self._started.done():
                    self._started.set_result(None)
            case "core.exec.stdin.error":
                said = read_message(payload, "message")
                self._stdin_error = ChannelError("refused", f"stdin: {said}")
            case "core.exec.exited":
                if not self._exited.done():
                    self._exited.set_result(_read_exit(payload))
                self._finish(None)
            case "core.exec.failed":
                self._finish(_read_failure(payload))
            case "core.error":
                self._finish(refusal(message))
        return None

    def lost(self, error: Exception) -> None:
        self._finish(error)

    @staticmethod
    def _push(queue: ByteQueue, data: bytes) -> Awaitable[None] | None:
        return queue.push(data) if data else None

    async def _send(self, type: str, payload: Payload) -> None:
        """Stops waiting when the process ends, since the input has no reader any more."""
        if self._over.done():
            return
        sending = asyncio.ensure_future(self._connection.send(self._id, (type, payload)))
        try:
            await asyncio.wait((sending, self._over), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()

    def _finish(self, error: Exception | None) -> None:
        if self._over.done():
            return
        self._over.set_result(None)
        outcome = error or ChannelError("protocol", "The process exited before it started")
        for future in (self._started, self._exited):
            if not future.done():
                future.set_exception(outcome)
        self.stdout.end(error)
        self.stderr.end(error)


def _read_exit(payload: Payload) -> CommandExit:
    code = read_integer(payload, "code")
    said = read_optional_message(payload, "reason")
    # Agents other than ours send the code only.
    fallback: ExitReason = "signal" if code == -1 else "exit"
    reason = next((known for known in _REASONS if known == said), fallback)
    return CommandExit(code, read_optional_integer(payload, "signal"), reason)


def _read_failure(payload: Payload) -> ExecFailed:
    return ExecFailed(
        read_message(payload, "kind") or "other",
        read_message(payload, "message") or "The process could not be started",
        read_optional_message(payload, "errno_name"),
    )
