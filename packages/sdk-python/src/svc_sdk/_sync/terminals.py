"""Generated from ../_async/terminals.py by `make generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal
from .._async.terminals import AsyncTerminal
from .._async.terminals import AsyncTerminals
from .._channel.process import CommandExit
from .._client import portal
from .command import OutputStream


class Terminal:
    """A program in a terminal, over a connection of its own, which ends it when it is closed."""

    output: OutputStream

    @classmethod
    def _of(cls, inner: AsyncTerminal) -> Terminal:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncTerminal) -> None:
        self._inner = inner
        self.output = OutputStream._of(inner.output)

    @property
    def pid(self) -> int:
        return self._inner.pid

    def write(self, data: str | bytes) -> None:
        """As if it was typed: `\\x03` is Ctrl-C."""
        portal.run(self._inner.write(data))

    def resize(self, *, cols: int, rows: int) -> None:
        portal.run(self._inner.resize(cols=cols, rows=rows))

    def kill(self) -> None:
        portal.run(self._inner.kill())

    def wait(self) -> CommandExit:
        """Read or discard `output` meanwhile."""
        return portal.run(self._inner.wait())

    def close(self) -> None:
        """Ends the program if it still runs."""
        portal.run(self._inner.close())

    def __enter__(self) -> Terminal:
        portal.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        return portal.run(self._inner.__aexit__(kind, error, trace))


class Terminals:
    """Opens terminals in a sandbox."""

    @classmethod
    def _of(cls, inner: AsyncTerminals) -> Terminals:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncTerminals) -> None:
        self._inner = inner

    def open(
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
    ) -> Terminal:
        """The shell of the sandbox unless `program` is given. Raises `exec_failed`."""
        return Terminal._of(portal.run(self._inner.open(
            cols=cols,
            rows=rows,
            program=program,
            args=args,
            env=env,
            cwd=cwd,
            user=user,
            timeout_ms=timeout_ms,
        )))
