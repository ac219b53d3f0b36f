"""The environment of a trial."""

from __future__ import annotations

import asyncio
import io
import os
import posixpath
import tarfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult, OutputStream
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)
from harbor.environments.definition import effective_exec_cwd
from harbor.models.task.config import NetworkPolicy
from harbor.models.trial.config import ResourceMode
from harbor.utils.path_safety import validate_output_path
from svc_sdk import AsyncSandbox, SvcError
from typing_extensions import override

from ._network import to_policy

_LABELS = {"made-by": "harbor"}
_NOT_STARTED = 127
_KILLED_BY_SIGNAL = 128
#: Without those that give rights on this host.
_PERMISSIONS = 0o777
_MOST_OUTPUT_BYTES = 64 * 1024 * 1024
_MOST_ARCHIVE_BYTES = 1024 * 1024 * 1024
#: Output and its stream; None at the end.
_Heard = asyncio.Queue[tuple[str, OutputStream] | None]


class SvcEnvironment(BaseEnvironment):
    """One sandbox per trial, for `--environment-import-path svc_harbor:SvcEnvironment`.

    - The task names an image that is there; none is built of a Dockerfile.
    - Needs `/bin/sh`, `tar` and a user `root` in the image.
    """

    def __init__(self, *args: Any, isolation: str | None = None, **kwargs: Any) -> None:
        """`isolation`: the class of the sandbox, as in the REST API."""
        super().__init__(*args, **kwargs)
        self._isolation = isolation
        self._started: AsyncSandbox | None = None

    @staticmethod
    @override
    def type() -> str:
        return "svc"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            network_allowlist_ipv6_cidrs=True,
            dynamic_network_policy=True,
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    @classmethod
    @override
    def preflight(cls) -> None:
        if not os.environ.get("SVC_API_KEY"):
            raise SystemExit("svc needs a key: set SVC_API_URL and SVC_API_KEY")

    @override
    def _validate_definition(self) -> None:
        if not self.task_env_config.docker_image:
            said = "svc builds no Dockerfile: set docker_image in [environment] of the task"
            raise ValueError(f"{said}, to an image that svc can pull ({self.environment_name})")

    @property
    def sandbox(self) -> AsyncSandbox:
        if self._started is None:
            raise RuntimeError("The environment was not started, or has stopped")
        return self._started

    @override
    async def start(self, force_build: bool) -> None:
        """`force_build` has nothing to build: the image is there."""
        try:
            self._started = await AsyncSandbox.create(
                image=self.task_env_config.docker_image,
                vcpus=self._resource_limit_value("cpu", auto_mode=ResourceMode.LIMIT),
                memory_mib=self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT),
                disk_mib=self._effective_storage_mb,
                env=self._startup_env(),
                isolation=self._isolation,
                network={"policy": to_policy(self.network_policy)},
                labels={**_LABELS, "session": self.session_id},
                # It is kept when it stops without being deleted.
                is_ephemeral=False,
            )
        except SvcError as error:
            made = (error.details or {}).get("sandbox_id")
            if isinstance(made, str):
                await (await AsyncSandbox.connect(made)).remove()
            raise
        workdir = self.task_env_config.workdir
        if workdir:
            await self.sandbox.files.mkdir(workdir)
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        sandbox, self._started = self._started, None
        if sandbox is None:
            return
        try:
            await (sandbox.remove() if delete else sandbox.stop())
        except SvcError as error:
            if error.code not in ("sandbox_not_found", "invalid_state_transition"):
                raise

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        as_user = self._resolve_user(user)
        heard: _Heard = asyncio.Queue()
        telling = asyncio.create_task(self._tell(heard))
        try:
            ended = await self.sandbox.exec(
                "/bin/sh",
                ["-c", command],
                cwd=effective_exec_cwd(cwd, self.task_env_config.workdir, None),
                env=self._merge_env(env),
                user=None if as_user is None else str(as_user),
                timeout_ms=None if timeout_sec is None else timeout_sec * 1000,
                max_output_bytes=_MOST_OUTPUT_BYTES,
                on_stdout=lambda text: heard.put_nowait((text, "stdout")),
                on_stderr=lambda text: heard.put_nowait((text, "stderr")),
            )
        except SvcError as error:
            if error.code == "exec_timeout":
                said = f"Command timed out after {timeout_sec} seconds and was killed"
                raise RuntimeError(said) from error
            if error.code == "exec_failed":
                return ExecResult(stderr=f"{error}\n", return_code=_NOT_STARTED)
            raise
        finally:
            heard.put_nowait(None)
            await telling
        for stream in ended.truncated:
            self.logger.warning(f"Of {stream} {_MOST_OUTPUT_BYTES} bytes are kept: {command}")
        code = ended.code if ended.signal is None else _KILLED_BY_SIGNAL + ended.signal
        return ExecResult(stdout=ended.text(), stderr=ended.error_text(), return_code=code)

    async def _tell(self, heard: _Heard) -> None:
        """Output as it comes, to those that Harbor has listen."""
        emit = self._output_callback()
        while (said := await heard.get()) is not None:
            if emit is not None:
                await emit(*said)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self.sandbox.files.mkdir(posixpath.dirname(target_path) or "/")
        await self.sandbox.files.write(target_path, Path(source_path).read_bytes())

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(source_dir, arcname=".")
        await self.sandbox.files.mkdir(target_dir)
        await self._tar(["-C", target_dir, "--no-same-owner", "-xf", "-"], archive.getvalue())

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            async for chunk in self.sandbox.files.read_stream(source_path):
                file.write(chunk)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Files and folders; links, pipes and devices are left out."""
        archive = await self._tar(["-C", source_dir, "-cf", "-", "."])
        root = Path(target_dir)
        root.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None and not member.isdir():
                    continue
                target = root / member.name
                # SAFETY: the sandbox chooses the names, and may have a link of an earlier download as a folder.
                validate_output_path(target, root)
                (target if content is None else target.parent).mkdir(parents=True, exist_ok=True)
                if content is not None:
                    target.write_bytes(content.read())
                    target.chmod(member.mode & _PERMISSIONS)

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        await self.sandbox.network.update({"policy": to_policy(network_policy)})

    async def _tar(self, words: list[str], stdin: bytes | None = None) -> bytes:
        """As root, whose files are part of a folder, too."""
        done = await self.sandbox.exec(
            "tar", words, user="root", stdin=stdin, max_output_bytes=_MOST_ARCHIVE_BYTES
        )
        if done.truncated:
            raise RuntimeError(f"{words[1]} has more than {_MOST_ARCHIVE_BYTES} bytes")
        if not done.is_success:
            raise RuntimeError(f"{words[1]} was not transferred: {done.error_text().strip()}")
        return done.stdout
