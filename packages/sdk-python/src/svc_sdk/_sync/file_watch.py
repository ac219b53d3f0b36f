"""Generated from ../_async/file_watch.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Literal
from .._async.file_watch import AsyncFileWatch
from .._client import portal
from ..values import FileChange


class FileWatch:
    """The changes from now on, over a connection of their own; iterate once. The iteration ends after
    `close`, and when what is watched was removed, moved or unmounted, which a `removed` of '' says.
    When the connection breaks it is opened again, and an `overflow` says so."""

    @classmethod
    def _of(cls, inner: AsyncFileWatch) -> FileWatch:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncFileWatch) -> None:
        self._inner = inner

    @property
    def path(self) -> str:
        """The watched path, with symbolic links resolved."""
        return self._inner.path

    def changes(self) -> Iterator[FileChange]:
        """As they happen. A program that reads a file because of one finds it as it is by then."""
        return portal.iterate(self._inner.changes())

    def close(self) -> None:
        """Ends the iteration at once; changes that have arrived already are dropped."""
        portal.run(self._inner.close())

    def __enter__(self) -> FileWatch:
        portal.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        return portal.run(self._inner.__aexit__(kind, error, trace))
