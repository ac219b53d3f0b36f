"""Generated from ../_async/command.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Literal
from .._async.command import AsyncCommand
from .._async.command import AsyncOutputStream
from .._channel.process import CommandExit
from .._client import portal
from ..signals import Signal


class OutputStream:
    """The output of a process, as it arrives. Read it once: with 1 MiB unread the process waits for
    its reader. Leaving the iteration early drops the rest."""

    @classmethod
    def _of(cls, inner: AsyncOutputStream) -> OutputStream:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncOutputStream) -> None:
        self._inner = inner

    def chunks(self) -> Iterator[bytes]:
        """Piece by piece, as bytes."""
        return portal.iterate(self._inner.chunks())

    def bytes(self) -> bytes:
        """All of it."""
        return portal.run(self._inner.bytes())

    def text(self) -> str:
        """All of it, as text."""
        return portal.run(self._inner.text())

    def texts(self) -> Iterator[str]:
        """Piece by piece as text; a character is never cut in two."""
        return portal.iterate(self._inner.texts())

    def lines(self) -> Iterator[str]:
        """Line by line, without the line ends."""
        return portal.iterate(self._inner.lines())

    def discard(self) -> None:
        """Drops current and future output."""
        portal.run(self._inner.discard())


class Command:
    """It ends when its connection is closed: by `kill`, at the end of a `with` block, or with this
    program."""

    stdout: OutputStream
    stderr: OutputStream

    @classmethod
    def _of(cls, inner: AsyncCommand) -> Command:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncCommand) -> None:
        self._inner = inner
        self.stdout = OutputStream._of(inner.stdout)
        self.stderr = OutputStream._of(inner.stderr)

    @property
    def pid(self) -> int:
        """In the sandbox."""
        return self._inner.pid

    def write(self, data: str | bytes) -> None:
        """Returns when more can be written. Writing to a process that has ended does nothing."""
        portal.run(self._inner.write(data))

    def close_stdin(self) -> None:
        """The process reads the end of its input."""
        portal.run(self._inner.close_stdin())

    def signal(self, signal: Signal) -> None:
        """To the process and all that it started."""
        portal.run(self._inner.signal(signal))

    def kill(self) -> None:
        """The process and all that it started, in sessions of their own too."""
        portal.run(self._inner.kill())

    def resize(self, *, cols: int, rows: int) -> None:
        """Of a terminal."""
        portal.run(self._inner.resize(cols=cols, rows=rows))

    def wait(self) -> CommandExit:
        """All output has come before it returns, so read or discard both streams meanwhile."""
        return portal.run(self._inner.wait())

    def close(self) -> None:
        """Ends the process if it still runs."""
        portal.run(self._inner.close())

    def __enter__(self) -> Command:
        portal.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        return portal.run(self._inner.__aexit__(kind, error, trace))
