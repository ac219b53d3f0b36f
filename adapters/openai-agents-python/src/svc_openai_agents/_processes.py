"""Commands that go on when an agent waits no longer."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from agents.sandbox.errors import ExecTransportError, PtySessionNotFoundError
from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PtyExecUpdate,
    allocate_pty_process_id,
    clamp_pty_yield_time_ms,
    process_id_to_prune_from_meta,
    resolve_pty_write_yield_time_ms,
)
from svc_sdk import AsyncCommand, AsyncOutputStream, AsyncSandbox, AsyncTerminal, SvcError

_EXEC_YIELD_MS = 10_000
_WRITE_YIELD_MS = 250
_KILLED_BY_SIGNAL = 128
_COLS, _ROWS = 120, 40
#: Of output that was not read yet; older output is dropped.
_MOST_UNREAD_CHUNKS = 256


@dataclass(frozen=True)
class Place:
    """Where and as whom a command runs, and how many seconds its start may take."""

    env: dict[str, str]
    cwd: str | None
    user: str | None
    timeout: float | None


@dataclass
class _Process:
    command: AsyncCommand | AsyncTerminal
    is_terminal: bool
    chunks: deque[bytes] = field(default_factory=lambda: deque(maxlen=_MOST_UNREAD_CHUNKS))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    last_used: float = field(default_factory=time.monotonic)
    exit_code: int | None = None
    following: asyncio.Task[None] | None = None

    async def follow(self, streams: list[AsyncOutputStream]) -> None:
        """Sets the exit code when all output has come."""
        taking = [asyncio.create_task(self._take(stream)) for stream in streams]
        try:
            exit = await self.command.wait()
            code = exit.code if exit.signal is None else _KILLED_BY_SIGNAL + exit.signal
        except SvcError:
            # Its connection ended, and it with it.
            code = 1
        await asyncio.gather(*taking, return_exceptions=True)
        self.exit_code = code
        self.news.set()

    async def _take(self, stream: AsyncOutputStream) -> None:
        async for chunk in stream.chunks():
            async with self.lock:
                self.chunks.append(chunk)
            self.news.set()


class Processes:
    """Each has a number while it runs. It ends with the session, or with this program."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox
        self._running: dict[int, _Process] = {}

    async def start(
        self,
        words: list[str],
        place: Place,
        *,
        tty: bool,
        yield_time_s: float | None,
        max_output_tokens: int | None,
    ) -> PtyExecUpdate:
        try:
            process = await self._open(words, place, tty)
        except SvcError as error:
            raise ExecTransportError(command=words, cause=error, message=str(error)) from error
        await self._end_oldest()
        number = allocate_pty_process_id(set(self._running))
        self._running[number] = process
        wait_ms = clamp_pty_yield_time_ms(_milliseconds(yield_time_s, _EXEC_YIELD_MS))
        return await self._update(number, process, wait_ms, max_output_tokens)

    async def write(
        self,
        number: int,
        chars: str,
        *,
        yield_time_s: float | None,
        max_output_tokens: int | None,
    ) -> PtyExecUpdate:
        process = self._running.get(number)
        if process is None:
            raise PtySessionNotFoundError(session_id=number)
        if chars:
            if not process.is_terminal:
                raise RuntimeError("The command has no terminal and reads nothing: start it with tty=True")
            await process.command.write(chars)
        wait_ms = resolve_pty_write_yield_time_ms(
            yield_time_ms=_milliseconds(yield_time_s, _WRITE_YIELD_MS), input_empty=chars == ""
        )
        process.last_used = time.monotonic()
        return await self._update(number, process, wait_ms, max_output_tokens)

    async def end(self) -> None:
        processes = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*map(_end, processes))

    async def _open(self, words: list[str], place: Place, tty: bool) -> _Process:
        timeout_ms = None if place.timeout is None else place.timeout * 1000
        if tty:
            terminal = await self._sandbox.pty.open(
                cols=_COLS,
                rows=_ROWS,
                program=words[0],
                args=words[1:],
                env=place.env,
                cwd=place.cwd,
                user=place.user,
                timeout_ms=timeout_ms,
            )
            return _followed(_Process(terminal, True), [terminal.output])
        command = await self._sandbox.commands.start(
            words[0],
            words[1:],
            env=place.env,
            cwd=place.cwd,
            user=place.user,
            timeout_ms=timeout_ms,
        )
        # A command that has ended meanwhile has closed its connection.
        with suppress(SvcError):
            await command.close_stdin()
        return _followed(_Process(command, False), [command.stdout, command.stderr])

    async def _end_oldest(self) -> None:
        """As many as the SDK lets other sandboxes have."""
        if len(self._running) < PTY_PROCESSES_MAX:
            return
        meta = [
            (number, process.last_used, process.exit_code is not None)
            for number, process in self._running.items()
        ]
        oldest = process_id_to_prune_from_meta(meta)
        if oldest is not None:
            await _end(self._running.pop(oldest))

    async def _update(
        self, number: int, process: _Process, wait_ms: int, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        output, tokens, has_ended = await collect_pty_output(
            output_chunks=process.chunks,
            output_lock=process.lock,
            output_notify=process.news,
            is_done=lambda: process.exit_code is not None,
            yield_time_ms=wait_ms,
            max_output_tokens=max_output_tokens,
        )
        if has_ended:
            self._running.pop(number, None)
        return PtyExecUpdate(
            process_id=None if has_ended else number,
            output=output,
            exit_code=process.exit_code if has_ended else None,
            original_token_count=tokens,
        )


def _followed(process: _Process, streams: list[AsyncOutputStream]) -> _Process:
    process.following = asyncio.create_task(process.follow(streams))
    return process


async def _end(process: _Process) -> None:
    """What has ended already cannot be killed."""
    ending: Callable[[], Awaitable[None]] = process.command.kill
    try:
        await ending()
    except SvcError:
        await process.command.close()
    if process.following is not None:
        await process.following


def _milliseconds(seconds: float | None, otherwise: int) -> int:
    return otherwise if seconds is None else int(seconds * 1000)
