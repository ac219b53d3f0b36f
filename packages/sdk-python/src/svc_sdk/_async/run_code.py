"""Runs code in interpreters that keep their state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.listen import report
from .._client.read_record import read_record
from ..errors import error_of_envelope
from ..values import CodeException, CodeResult, CodeRunResult, OnError, OnResult, OnText

#: Of each stream; what is beyond goes to the listeners only.
_MAX_KEPT_LENGTH = 10 * 1024 * 1024


class CodeRun:
    """One run: takes its events, and gives the result with the last one."""

    def __init__(
        self,
        on_stdout: OnText | None,
        on_stderr: OnText | None,
        on_result: OnResult | None,
        on_error: OnError | None,
    ) -> None:
        self._listeners = {"stdout": on_stdout, "stderr": on_stderr}
        self._on_result = on_result
        self._on_error = on_error
        self._kept: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._lengths = {"stdout": 0, "stderr": 0}
        self._results: list[CodeRunResult] = []
        self._is_cut = False

    async def take(self, event: str, data: Any) -> CodeResult | None:
        if event == "error":
            raise error_of_envelope(data)
        if event == "end":
            return await self._end(data)
        if event == "result":
            result = _read_result(data)
            self._results.append(result)
            await report(self._on_result, result)
        elif event in self._kept:
            self._keep(event, data["text"])
            await report(self._listeners[event], data["text"])
        return None

    def _keep(self, stream: str, text: str) -> None:
        space = _MAX_KEPT_LENGTH - self._lengths[stream]
        if len(text) > space:
            self._is_cut = True
        self._kept[stream].append(text[:space])
        self._lengths[stream] += len(text[:space])

    async def _end(self, data: Any) -> CodeResult:
        exception = data["exception"]
        known = None if exception is None else read_record(CodeException, exception)
        if known is not None:
            await report(self._on_error, known)
        return CodeResult(
            status=data["status"],
            output="".join(self._kept["stdout"]),
            error="".join(self._kept["stderr"]),
            result=data["result"],
            exception=known,
            is_truncated=data["truncated"] or self._is_cut,
            results=tuple(self._results),
        )


def code_body(
    code: str,
    *,
    language: str | None,
    kernel: str | None,
    context: str | None,
    env: Mapping[str, str] | None,
    print_result: bool,
    timeout_ms: float | None,
) -> dict[str, Any]:
    """Python unless a language, a kernel or a context is given."""
    if language is None and kernel is None and context is None:
        language = "python"
    body = {
        "code": code,
        "language": language,
        "kernel": kernel,
        "context": context,
        "env": None if env is None else dict(env),
        "print_result": None if print_result else False,
        "timeout_ms": None if timeout_ms is None else round(timeout_ms),
    }
    return {name: value for name, value in body.items() if value is not None}


def _read_result(data: Any) -> CodeRunResult:
    return CodeRunResult(
        data=data["data"],
        metadata=data["metadata"],
        is_main_result=data["is_main_result"],
        is_truncated=data["truncated"],
        left_out=tuple(data["left_out"]),
    )
