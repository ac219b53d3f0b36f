"""The sandbox environment of a sample."""

from __future__ import annotations

import posixpath
import shlex
from typing import Any, Literal, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    sandboxenv,
)
from svc_sdk import AsyncSandbox, SvcError
from svc_sdk import ExecResult as ProcessResult
from typing_extensions import override

from ._config import LABELS, SvcConfig, read_config
from ._failures import explain_file, explain_sandbox, explain_start
from ._scripts import READ, WRITE

_KILLED_BY_SIGNAL = 128
_MAKE_WORKDIR = 'd=${1:-${HOME:-/}}; mkdir -p -- "$d" && cd -- "$d" && pwd'


@sandboxenv(name="svc")
class SvcSandboxEnvironment(SandboxEnvironment):
    """One sandbox per sample, removed with it.

    - Commands and files are those of the sandbox's user.
    - A command that runs out of time is killed with all that it started, and is not repeated: no
      answer is lost on the way that a repetition could bring back.
    - Needs an event loop of asyncio, which is Inspect's default.
    """

    def __init__(self, sandbox: AsyncSandbox, workdir: str) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._workdir = workdir

    @override
    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        wanted = read_config(config)
        sandbox = await AsyncSandbox.create(**wanted.options())
        try:
            made = await sandbox.exec("/bin/sh", ["-c", _MAKE_WORKDIR, "sh", wanted.workdir or ""])
            if not made.is_success:
                raise RuntimeError(f"The working directory was not made: {made.error_text()}")
        except BaseException:
            await _remove(sandbox)
            raise
        return {"default": cls(sandbox, made.text().rstrip("\n"))}

    @override
    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            await _remove(environment.as_type(SvcSandboxEnvironment)._sandbox)

    @override
    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        """The sandbox with this id or name, or all of evaluations, also those that still run."""
        if id is not None:
            await _remove(await AsyncSandbox.connect(id))
            return
        async for sandbox in AsyncSandbox.list(labels=LABELS):
            await _remove(sandbox)

    @override
    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> SvcConfig:
        return SvcConfig(**config)

    @override
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            result = await self._sandbox.exec(
                cmd[0],
                cmd[1:],
                stdin=input,
                cwd=self._resolve(cwd or ""),
                env=env,
                user=user,
                timeout_ms=None if timeout is None else timeout * 1000,
                max_output_bytes=limit,
            )
        except SvcError as error:
            return explain_start(error, cmd[0])
        if result.truncated:
            raise OutputLimitExceededError(
                SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, result.text()
            )
        code = result.code if result.signal is None else _KILLED_BY_SIGNAL + result.signal
        return ExecResult(code == 0, code, result.text(), result.error_text())

    @override
    async def write_file(self, file: str, contents: str | bytes) -> None:
        await self._script(WRITE, file, stdin=contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @override
    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        read = await self._script(READ, file, max_output_bytes=limit)
        if read.truncated:
            said = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR
            raise OutputLimitExceededError(said, None)
        content = read.stdout
        return content.decode() if text else content

    @override
    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        try:
            await self._sandbox.refresh()
        except SvcError as error:
            raise explain_sandbox(error) from error
        if self._sandbox.status != "running":
            raise ConnectionError(f"The sandbox {self._sandbox.name} is {self._sandbox.status}")
        option = [] if user is None else ["--user", user]
        words = ["svc", "exec", "-it", "-w", self._workdir, *option, self._sandbox.name, "/bin/sh"]
        return SandboxConnection(type="svc", command=shlex.join(words))

    @override
    def default_polling_interval(self) -> float:
        """In seconds: a command takes milliseconds to start."""
        return 0.2

    async def _script(
        self,
        script: str,
        file: str,
        *,
        stdin: str | bytes | None = None,
        max_output_bytes: int | None = None,
    ) -> ProcessResult:
        """As the user of the sandbox, so that it is told what this user may not do."""
        try:
            ended = await self._sandbox.exec(
                "/bin/sh",
                ["-c", script, "sh", self._resolve(file)],
                stdin=stdin,
                max_output_bytes=max_output_bytes,
            )
        except SvcError as error:
            raise explain_sandbox(error) from error
        if not ended.is_success:
            raise explain_file(ended, file)
        return ended

    def _resolve(self, path: str) -> str:
        return posixpath.join(self._workdir, path)


async def _remove(sandbox: AsyncSandbox) -> None:
    """One that is gone already is no failure."""
    try:
        await sandbox.remove()
    except SvcError as error:
        if error.code != "sandbox_not_found":
            raise
