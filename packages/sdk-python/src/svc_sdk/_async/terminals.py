"""Terminals in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal

from .._channel.process import CommandExit, ExecRequest
from .command import AsyncCommand, AsyncOutputStream
from .commands import AsyncCommands, require_arguments


class AsyncTerminal:
    """A program in a terminal, over a connection of its own, which ends it when it is closed."""

    #: Everything that is sent to the screen.
    output: AsyncOutputStream

    def __init__(self, command: AsyncCommand) -> None:
        self._command = command
        self.output = command.stdout

    @property
    def pid(self) -> int:
        return self._command.pid

    async def write(self, data: str | bytes) -> None:
        """As if it was typed: `\\x03` is Ctrl-C."""
        await self._command.write(data)

    async def resize(self, *, cols: int, rows: int) -> None:
        await self._command.resize(cols=cols, rows=rows)

    async def kill(self) -> None:
        await self._command.kill()

    async def wait(self) -> CommandExit:
        """Read or discard `output` meanwhile."""
        return await self._command.wait()

    async def close(self) -> None:
        """Ends the program if it still runs."""
        await self._command.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        await self.close()
        return False


class AsyncTerminals:
    """Opens terminals in a sandbox."""

    def __init__(self, commands: AsyncCommands, shell: Callable[[], str]) -> None:
        self._commands = commands
        self._shell = shell

    async def open(
        self,
        *,
        cols: int,
        rows: int,
        program: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncTerminal:
        """The shell of the sandbox unless `program` is given. Raises `exec_failed`."""
        require_arguments(args)
        request = ExecRequest(
            program or self._shell(),
            args,
            {"TERM": "xterm-256color", **(env or {})},
            cwd,
            user,
            tty=True,
            cols=cols,
            rows=rows,
        )
        return AsyncTerminal(await self._commands._open(request, timeout_ms))
