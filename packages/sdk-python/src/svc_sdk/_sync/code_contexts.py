"""Generated from ../_async/code_contexts.py by `make generate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from .._async.code_contexts import AsyncCodeContext
from .._async.code_contexts import AsyncCodeContexts
from .._client import portal
from ..records import ContextInfo
from ..values import CodeResult, OnError, OnResult, OnText


class CodeContext:
    """One interpreter. Its state is kept between runs; concurrent runs queue."""

    @classmethod
    def _of(cls, inner: AsyncCodeContext) -> CodeContext:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncCodeContext) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def name(self) -> str | None:
        return self._inner.name

    @property
    def info(self) -> ContextInfo:
        """The record of the server as of the last call."""
        return self._inner.info

    def run_code(
        self,
        code: str,
        *,
        on_stdout: OnText | None = None,
        on_stderr: OnText | None = None,
        on_result: OnResult | None = None,
        on_error: OnError | None = None,
        env: Mapping[str, str] | None = None,
        print_result: bool = True,
        timeout_ms: float | None = None,
    ) -> CodeResult:
        """As `Sandbox.run_code`, in this context."""
        return portal.run(self._inner.run_code(
            code,
            on_stdout=portal.listener(on_stdout),
            on_stderr=portal.listener(on_stderr),
            on_result=portal.listener(on_result),
            on_error=portal.listener(on_error),
            env=env,
            print_result=print_result,
            timeout_ms=timeout_ms,
        ))

    def interrupt(self, *, timeout_ms: float | None = None) -> None:
        """Ends what runs, as Ctrl-C does; the state is kept."""
        portal.run(self._inner.interrupt(timeout_ms=timeout_ms))

    def restart(self, *, timeout_ms: float | None = None) -> None:
        """Restarts the interpreter in the same folder and environment, without its state."""
        portal.run(self._inner.restart(timeout_ms=timeout_ms))

    def remove(self, *, timeout_ms: float | None = None) -> None:
        portal.run(self._inner.remove(timeout_ms=timeout_ms))


class CodeContexts:
    """They end with the run of the sandbox."""

    @classmethod
    def _of(cls, inner: AsyncCodeContexts) -> CodeContexts:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncCodeContexts) -> None:
        self._inner = inner

    def create(
        self,
        *,
        language: Literal['python', 'javascript'] | None = None,
        kernel: str | None = None,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> CodeContext:
        """Returns when it can run code. It has a `language`, or a Jupyter `kernel` of the image; its
        name is unique among the contexts of the sandbox."""
        return CodeContext._of(portal.run(self._inner.create(
            language=language,
            kernel=kernel,
            name=name,
            cwd=cwd,
            env=env,
            timeout_ms=timeout_ms,
        )))

    def get(self, id_or_name: str, *, timeout_ms: float | None = None) -> CodeContext:
        """Raises `context_not_found`, or `context_lost` for an id whose context has ended."""
        return CodeContext._of(portal.run(self._inner.get(id_or_name, timeout_ms=timeout_ms)))

    def list(self, *, timeout_ms: float | None = None) -> tuple[CodeContext, ...]:
        """Oldest first; the default ones are not among them."""
        return tuple(CodeContext._of(each) for each in portal.run(self._inner.list(timeout_ms=timeout_ms)))
