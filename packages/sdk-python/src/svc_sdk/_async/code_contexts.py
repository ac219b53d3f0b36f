"""Interpreters with a state of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .._client.read_record import read_record
from ..records import ContextInfo
from ..values import CodeResult, OnError, OnResult, OnText
from .client import AsyncClient
from .code_runs import CodeRuns
from .run_code import CodeRun, code_body


class AsyncCodeContext:
    """One interpreter. Its state is kept between runs; concurrent runs queue."""

    def __init__(
        self, client: AsyncClient, sandbox_id: str, runs: CodeRuns, info: ContextInfo
    ) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._runs = runs
        self._info = info

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def name(self) -> str | None:
        return self._info.name

    @property
    def info(self) -> ContextInfo:
        """The record of the server as of the last call."""
        return self._info

    async def run_code(
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
        run = CodeRun(on_stdout, on_stderr, on_result, on_error)
        body = code_body(
            code,
            language=None,
            kernel=None,
            context=self.id,
            env=env,
            print_result=print_result,
            timeout_ms=timeout_ms,
        )
        return await self._runs.run(body, run)

    async def interrupt(self, *, timeout_ms: float | None = None) -> None:
        """Ends what runs, as Ctrl-C does; the state is kept."""
        self._info = await self._ask("contexts.interrupt", timeout_ms)

    async def restart(self, *, timeout_ms: float | None = None) -> None:
        """Restarts the interpreter in the same folder and environment, without its state."""
        self._info = await self._ask("contexts.restart", timeout_ms)

    async def remove(self, *, timeout_ms: float | None = None) -> None:
        await self._client.call("contexts.remove", params=self._params, timeout_ms=timeout_ms)

    async def _ask(self, name: str, timeout_ms: float | None) -> ContextInfo:
        data = await self._client.call(name, params=self._params, timeout_ms=timeout_ms)
        return read_record(ContextInfo, data)

    @property
    def _params(self) -> dict[str, str]:
        return {"sandbox_id": self._sandbox_id, "context_id": self.id}


class AsyncCodeContexts:
    """They end with the run of the sandbox."""

    def __init__(self, client: AsyncClient, sandbox_id: str, runs: CodeRuns) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._runs = runs

    async def create(
        self,
        *,
        language: Literal["python", "javascript"] | None = None,
        kernel: str | None = None,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncCodeContext:
        """Returns when it can run code. It has a `language`, or a Jupyter `kernel` of the image; its
        name is unique among the contexts of the sandbox."""
        body: dict[str, Any] = {
            "language": language,
            "kernel": kernel,
            "name": name,
            "cwd": cwd,
            "env": None if env is None else dict(env),
        }
        given = {key: value for key, value in body.items() if value is not None}
        params = {"sandbox_id": self._sandbox_id}
        data = await self._client.call(
            "contexts.create", params=params, body=given, timeout_ms=timeout_ms
        )
        return self._make(data)

    async def get(self, id_or_name: str, *, timeout_ms: float | None = None) -> AsyncCodeContext:
        """Raises `context_not_found`, or `context_lost` for an id whose context has ended."""
        params = {"sandbox_id": self._sandbox_id, "context_id": id_or_name}
        return self._make(
            await self._client.call("contexts.get", params=params, timeout_ms=timeout_ms)
        )

    async def list(self, *, timeout_ms: float | None = None) -> tuple[AsyncCodeContext, ...]:
        """Oldest first; the default ones are not among them."""
        params = {"sandbox_id": self._sandbox_id}
        found = await self._client.call("contexts.list", params=params, timeout_ms=timeout_ms)
        return tuple(self._make(each) for each in found)

    def _make(self, data: Any) -> AsyncCodeContext:
        info = read_record(ContextInfo, data)
        return AsyncCodeContext(self._client, self._sandbox_id, self._runs, info)
