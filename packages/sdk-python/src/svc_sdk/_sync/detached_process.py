"""Generated from ../_async/detached_process.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from .._async.detached_process import AsyncDetachedProcess
from .._client import portal
from .._client.content import Content
from ..records import ProcessInfo, ProcessInfoExit
from ..signals import Signal
from ..values import DetachedOutput


class DetachedProcess:
    """It ends on its own, by a signal, or with its sandbox."""

    @classmethod
    def _of(cls, inner: AsyncDetachedProcess) -> DetachedProcess:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncDetachedProcess) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def name(self) -> str | None:
        return self._inner.name

    @property
    def info(self) -> ProcessInfo:
        """The record of the server as of the last call."""
        return self._inner.info

    def refresh(self, *, timeout_ms: float | None = None) -> ProcessInfo:
        """Fetches the record from the server."""
        return portal.run(self._inner.refresh(timeout_ms=timeout_ms))

    def output(
        self,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        timeout_ms: float | None = None,
    ) -> Iterator[DetachedOutput]:
        """Its output from the beginning, or from the offsets that were read up to, until it ends.
        Survives lost connections, and restarts of the server, without losing or repeating a byte."""
        return portal.iterate(self._inner.output(
            stdout_offset=stdout_offset,
            stderr_offset=stderr_offset,
            timeout_ms=timeout_ms,
        ))

    def wait(self, *, timeout_ms: float | None = None) -> ProcessInfoExit:
        """Waits until it has ended; its output need not be read."""
        return portal.run(self._inner.wait(timeout_ms=timeout_ms))

    def write(self, data: Content, *, timeout_ms: float | None = None) -> None:
        """Returns when the process has taken it."""
        portal.run(self._inner.write(portal.content(data), timeout_ms=timeout_ms))

    def close_stdin(self, *, timeout_ms: float | None = None) -> None:
        """The process reads the end of its input."""
        portal.run(self._inner.close_stdin(timeout_ms=timeout_ms))

    def signal(self, signal: Signal, *, timeout_ms: float | None = None) -> None:
        """To the process and all that it started in its group."""
        portal.run(self._inner.signal(signal, timeout_ms=timeout_ms))

    def kill(self, *, timeout_ms: float | None = None) -> None:
        """SIGKILL to the process and all that it started in its group."""
        portal.run(self._inner.kill(timeout_ms=timeout_ms))

    def resize(
        self,
        *,
        cols: int,
        rows: int,
        timeout_ms: float | None = None,
    ) -> None:
        """Of a terminal."""
        portal.run(self._inner.resize(cols=cols, rows=rows, timeout_ms=timeout_ms))

    def remove(self, *, timeout_ms: float | None = None) -> None:
        """Kills it if it runs, and forgets it with its output."""
        portal.run(self._inner.remove(timeout_ms=timeout_ms))
