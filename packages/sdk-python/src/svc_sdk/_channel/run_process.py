"""Runs a process to its end and collects its output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .channel_errors import ChannelError, RunOutput
from .connection import Connection
from .process import ChannelProcess, CommandExit, ExecRequest

_DEFAULT_OUTPUT_BYTES = 8 * 1024 * 1024
#: How long a killed process may take to be reported as gone.
_KILL_GRACE_S = 5.0

StreamName = Literal["stdout", "stderr"]
#: Called with every piece as it arrives, and with None at the end of the stream.
OnOutput = Callable[[StreamName, bytes | None], Awaitable[None]]


@dataclass(frozen=True)
class RunResult:
    exit: CommandExit
    output: RunOutput
    is_timeout: bool


async def run_process(
    connection: Connection,
    request: ExecRequest,
    *,
    content: AsyncIterable[bytes] | None = None,
    timeout_ms: float | None = None,
    max_output_bytes: int | None = None,
    on_output: OnOutput | None = None,
) -> RunResult:
    """Without input its stdin is at its end from the start. A cancelled run kills the process.
    Raises ChannelError with the output so far when the connection ends."""
    run = _Run(max_output_bytes or _DEFAULT_OUTPUT_BYTES, on_output)
    loop = asyncio.get_running_loop()
    deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
    try:
        async with asyncio.timeout_at(deadline):
            process = await ChannelProcess.start(connection, request, is_input_over=content is None)
    except TimeoutError:
        raise ChannelError("timeout", "The process did not start in time") from None
    try:
        return await run.finish(process, content, deadline)
    except BaseException:
        process.give_up()
        raise


class _Run:
    def __init__(self, limit_bytes: int, on_output: OnOutput | None) -> None:
        self._on_output = on_output
        self._collected = {"stdout": _Collector(limit_bytes), "stderr": _Collector(limit_bytes)}

    async def finish(
        self,
        process: ChannelProcess,
        content: AsyncIterable[bytes] | None,
        deadline: float | None,
    ) -> RunResult:
        tasks = [
            asyncio.ensure_future(self._collect(process, "stdout")),
            asyncio.ensure_future(self._collect(process, "stderr")),
        ]
        feed = None if content is None else asyncio.ensure_future(_feed(process, content))
        # Its failure is found below; unlike the output, it need not come to an end.
        watched = [*tasks, feed] if feed is not None else tasks
        try:
            is_late = await self._wait(tasks, feed, deadline)
            if is_late:
                await process.kill()
                _, unfinished = await asyncio.wait(tasks, timeout=_KILL_GRACE_S)
                if unfinished:
                    return RunResult(CommandExit(-1, None, "signal"), self._output(), True)
            for task in tasks:
                task.result()
            return RunResult(await process.exited(), self._output(), is_late)
        except ChannelError as error:
            if error.kind != "closed":
                raise
            await asyncio.wait(tasks)
            ended = ChannelError("closed", str(error), output=self._output())
            raise ended from error.__cause__
        finally:
            for each in watched:
                each.cancel()
            await asyncio.gather(*watched, return_exceptions=True)

    @staticmethod
    async def _wait(
        tasks: Sequence[asyncio.Future[None]], feed: asyncio.Future[None] | None, deadline: float | None
    ) -> bool:
        """Whether the time was up first. Raises what the content or a listener raised."""
        waiting: set[asyncio.Future[None]] = set(tasks)
        if feed is not None:
            waiting.add(feed)
        loop = asyncio.get_running_loop()
        while waiting & set(tasks):
            left = None if deadline is None else max(0.0, deadline - loop.time())
            done, waiting = await asyncio.wait(
                waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return True
            for task in done:
                task.result()
        return False

    async def _collect(self, process: ChannelProcess, name: StreamName) -> None:
        stream = process.stdout if name == "stdout" else process.stderr
        async for chunk in stream:
            self._collected[name].add(chunk)
            if self._on_output is not None:
                await self._on_output(name, chunk)
        if self._on_output is not None:
            await self._on_output(name, None)

    def _output(self) -> RunOutput:
        stdout, stderr = self._collected["stdout"], self._collected["stderr"]
        truncated = tuple(name for name, each in self._collected.items() if each.is_truncated)
        return RunOutput(bytes(stdout.data), bytes(stderr.data), truncated)


async def _feed(process: ChannelProcess, content: AsyncIterable[bytes]) -> None:
    """Writes the input beside everything else; a process may exit without reading it."""
    async for chunk in content:
        try:
            await process.write(chunk)
        except ChannelError:
            # A process that stops reading, or a connection that ends, is not an error of the input.
            return
    try:
        await process.close_stdin()
    except ChannelError:
        return


class _Collector:
    """Keeps the first bytes of a stream."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.data = bytearray()
        self.is_truncated = False

    def add(self, chunk: bytes) -> None:
        room = self._limit_bytes - len(self.data)
        if len(chunk) > room:
            self.is_truncated = True
        self.data += chunk[:room]
