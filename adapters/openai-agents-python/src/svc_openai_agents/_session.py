"""A sandbox with a workspace."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.pty_types import PtyExecUpdate
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tarfile
from svc_sdk import AsyncSandbox, SvcError
from typing_extensions import override

from ._processes import Place, Processes
from ._scripts import ABSENT, GIVE_ROOT, MAKE_ROOT, READ, ROOT, WRITE
from ._state import SvcSandboxSessionState

_KILLED_BY_SIGNAL = 128
_NOT_STARTED = 127
_MOST_OUTPUT_BYTES = 64 * 1024 * 1024
_MOST_ARCHIVE_BYTES = 1024 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_OVER = ("sandbox_not_found", "invalid_state_transition")


class SvcSandboxSession(BaseSandboxSession):
    """Made by `SvcSandboxClient`. Commands begin in the root of the manifest."""

    state: SvcSandboxSessionState

    def __init__(self, sandbox: AsyncSandbox, state: SvcSandboxSessionState) -> None:
        self.state = state
        self.sandbox = sandbox
        self._processes = Processes(sandbox)
        self._has_root = False

    async def remove(self) -> None:
        await self.pty_terminate_all()
        try:
            await self.sandbox.remove()
        except SvcError as error:
            if error.code != "sandbox_not_found":
                raise

    @override
    async def running(self) -> bool:
        try:
            await self.sandbox.refresh()
        except SvcError as error:
            if error.code != "sandbox_not_found":
                raise
            return False
        return self.sandbox.status == "running"

    @override
    async def exec(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
    ) -> ExecResult:
        words = self._prepare_exec_command(*command, shell=shell, user=None)
        return await self._run(words, timeout=timeout, user=_name_of(user))

    @override
    async def _exec_internal(
        self, *command: str | Path, timeout: float | None = None
    ) -> ExecResult:
        return await self._run([str(word) for word in command], timeout=timeout)

    @override
    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        place = await self._validate_path_access(path)
        read = await self._script(READ, place.as_posix(), user=_name_of(user))
        if read.exit_code == ABSENT:
            raise WorkspaceReadNotFoundError(path=path)
        if not read.ok():
            raise WorkspaceArchiveReadError(path=path, context={"stderr": read.stderr.decode()})
        return io.BytesIO(read.stdout)

    @override
    async def write(
        self, path: Path, data: io.IOBase, *, user: str | User | None = None
    ) -> None:
        stream = coerce_write_payload(path=path, data=data).stream
        place = await self._validate_path_access(path, for_write=True)
        written = await self._script(WRITE, place.as_posix(), user=_name_of(user), stdin=stream)
        if not written.ok():
            raise WorkspaceArchiveWriteError(path=path, context={"stderr": written.stderr.decode()})

    @override
    async def persist_workspace(self) -> io.IOBase:
        root = self._workspace_root_path()
        left_out = sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())
        words = ["tar", "-C", root.as_posix(), *(f"--exclude=./{path}" for path in left_out), "-cf", "-", "."]
        made = await self._run(words, limit=_MOST_ARCHIVE_BYTES)
        if not made.ok():
            raise WorkspaceArchiveReadError(path=root, context={"stderr": made.stderr.decode()})
        return io.BytesIO(made.stdout)

    @override
    async def hydrate_workspace(self, data: io.IOBase) -> None:
        root = self._workspace_root_path()
        archive = io.BytesIO(coerce_write_payload(path=root, data=data).stream.read())
        try:
            with tarfile.open(fileobj=archive) as tar:
                validate_tarfile(tar, allow_external_symlink_targets=False)
        except UnsafeTarMemberError as error:
            context = {"reason": error.reason, "member": error.member}
            raise WorkspaceArchiveWriteError(path=root, context=context, cause=error) from error
        except (tarfile.TarError, OSError) as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error
        archive.seek(0)
        done = await self._run(["tar", "-C", root.as_posix(), "-xf", "-"], stdin=archive)
        if not done.ok():
            raise WorkspaceArchiveWriteError(path=root, context={"stderr": done.stderr.decode()})

    @override
    def supports_pty(self) -> bool:
        return True

    @override
    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        words = self._prepare_exec_command(*command, shell=shell, user=None)
        place = Place(await self._environment(), self._folder(), _name_of(user), timeout)
        return await self._processes.start(
            words, place, tty=tty, yield_time_s=yield_time_s, max_output_tokens=max_output_tokens
        )

    @override
    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        return await self._processes.write(
            session_id, chars, yield_time_s=yield_time_s, max_output_tokens=max_output_tokens
        )

    @override
    async def pty_terminate_all(self) -> None:
        await self._processes.end()

    @override
    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        url = urlsplit(await self.sandbox.url(port))
        tls = url.scheme == "https"
        outer = url.port or (443 if tls else 80)
        return ExposedPortEndpoint(url.hostname or "", outer, tls, url.query)

    @override
    async def _ensure_backend_started(self) -> None:
        if not await self.running():
            await self.sandbox.start()

    @override
    async def _prepare_backend_workspace(self) -> None:
        root = self.state.manifest.root
        owner = (await self._script(MAKE_ROOT, root)).stdout.decode().strip()
        if owner:
            made = await self._run(["/bin/sh", "-c", GIVE_ROOT, "sh", owner, root], user=ROOT)
            if not made.ok():
                raise WorkspaceArchiveWriteError(
                    path=Path(root), context={"stderr": made.stderr.decode()}
                )
        self._has_root = True

    @override
    async def _shutdown_backend(self) -> None:
        try:
            await self.sandbox.stop()
        except SvcError as error:
            if error.code not in _OVER:
                raise

    async def _script(
        self, script: str, path: str, *, user: str | None = None, stdin: io.IOBase | None = None
    ) -> ExecResult:
        return await self._run(["/bin/sh", "-c", script, "sh", path], user=user, stdin=stdin)

    async def _run(
        self,
        words: list[str],
        *,
        timeout: float | None = None,
        user: str | None = None,
        stdin: io.IOBase | None = None,
        limit: int = _MOST_OUTPUT_BYTES,
    ) -> ExecResult:
        try:
            ended = await self.sandbox.exec(
                words[0],
                words[1:],
                env=await self._environment(),
                cwd=self._folder(),
                user=user,
                stdin=None if stdin is None else iter(lambda: stdin.read(_CHUNK_BYTES), b""),
                timeout_ms=None if timeout is None else timeout * 1000,
                max_output_bytes=limit,
            )
        except SvcError as error:
            if error.code == "exec_timeout":
                raise ExecTimeoutError(command=words, timeout_s=timeout, cause=error) from error
            if error.code == "exec_failed":
                return ExecResult(stdout=b"", stderr=f"{error}\n".encode(), exit_code=_NOT_STARTED)
            raise ExecTransportError(command=words, cause=error, message=str(error)) from error
        if ended.truncated:
            said = f"More than {limit} bytes of {' and '.join(ended.truncated)}: send it to a file"
            raise ExecTransportError(command=words, message=said, retryable=False)
        code = ended.code if ended.signal is None else _KILLED_BY_SIGNAL + ended.signal
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, exit_code=code)

    def _folder(self) -> str | None:
        """Before it is made commands begin where those of the sandbox do."""
        return self.state.manifest.root if self._has_root else None

    async def _environment(self) -> dict[str, str]:
        return await self.state.manifest.environment.resolve()


def _name_of(user: str | User | None) -> str | None:
    return user.name if isinstance(user, User) else user
