"""Generated from ../_async/commands.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping, Sequence
from typing import Literal
from .._async.commands import AsyncCommands
from .._client import portal
from .._client.content import Content
from ..values import ExecResult, OnText
from .command import Command
from .detached_process import DetachedProcess


class Commands:
    """Programs are looked up on PATH; no shell is involved."""

    @classmethod
    def _of(cls, inner: AsyncCommands) -> Commands:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncCommands) -> None:
        self._inner = inner

    def run(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        rlimits: Sequence[Mapping[str, object]] = (),
        stdin: Content | None = None,
        timeout_ms: float | None = None,
        max_output_bytes: int | None = None,
        on_stdout: OnText | None = None,
        on_stderr: OnText | None = None,
    ) -> ExecResult:
        """Runs a program to its end. An exit code other than 0 raises nothing.

        After `timeout_ms` the process is killed, and `exec_timeout` raised; there is no limit unless
        given. Of each stream `max_output_bytes` are kept, 8 MiB unless given; the rest goes to the
        listeners only. Raises `exec_failed` when it cannot be started; when the sandbox ended
        meanwhile, the output so far is in `details["output"]` and `details["error"]`.
        """
        return portal.run(self._inner.run(
            program,
            args,
            env=env,
            cwd=cwd,
            user=user,
            rlimits=rlimits,
            stdin=portal.content(stdin),
            timeout_ms=timeout_ms,
            max_output_bytes=max_output_bytes,
            on_stdout=portal.listener(on_stdout),
            on_stderr=portal.listener(on_stderr),
        ))

    def start(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        rlimits: Sequence[Mapping[str, object]] = (),
        stdout: Literal['pipe', 'ignore'] = 'pipe',
        stderr: Literal['pipe', 'ignore'] = 'pipe',
        timeout_ms: float | None = None,
    ) -> Command:
        """Starts a program for interactive use. `ignore` throws the output away. `timeout_ms` is for
        the start only."""
        return Command._of(portal.run(self._inner.start(
            program,
            args,
            env=env,
            cwd=cwd,
            user=user,
            rlimits=rlimits,
            stdout=stdout,
            stderr=stderr,
            timeout_ms=timeout_ms,
        )))

    def start_detached(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        name: str | None = None,
        has_stdin: bool = False,
        terminal: tuple[int, int] | None = None,
        max_run_seconds: int | None = None,
        output_buffer_bytes: int | None = None,
        timeout_ms: float | None = None,
    ) -> DetachedProcess:
        """Starts a program that runs on when this one ends; `connect` finds it again, from anywhere.

        `name` is unique among the running processes of the sandbox. `terminal` is a size in columns
        and rows. After `max_run_seconds` it is killed. Of each stream `output_buffer_bytes` of unread
        output are kept, 1 MiB unless given.
        """
        return DetachedProcess._of(portal.run(self._inner.start_detached(
            program,
            args,
            env=env,
            cwd=cwd,
            user=user,
            name=name,
            has_stdin=has_stdin,
            terminal=terminal,
            max_run_seconds=max_run_seconds,
            output_buffer_bytes=output_buffer_bytes,
            timeout_ms=timeout_ms,
        )))

    def connect(self, id_or_name: str, *, timeout_ms: float | None = None) -> DetachedProcess:
        """A detached process. Raises `process_not_found`."""
        return DetachedProcess._of(portal.run(self._inner.connect(id_or_name, timeout_ms=timeout_ms)))

    def list(
        self,
        *,
        status: Literal['running', 'exited'] | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[DetachedProcess]:
        """Detached processes, newest first; also those that ended."""
        for each in portal.iterate(self._inner.list(status=status, timeout_ms=timeout_ms)):
            yield DetachedProcess._of(each)
