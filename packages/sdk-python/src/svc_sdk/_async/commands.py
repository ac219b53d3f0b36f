"""Processes of a sandbox."""

from __future__ import annotations

import codecs
import inspect
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal

from .._channel.channel_errors import ChannelError
from .._channel.process import ChannelProcess, ExecRequest
from .._channel.run_process import OnOutput, RunResult, StreamName, run_process
from .._client.budget import to_svc_error
from .._client.content import Content, pieces_of
from ..errors import SvcError
from ..values import ExecResult, OnText
from .client import AsyncClient
from .command import AsyncCommand
from .detached_process import AsyncDetachedProcess
from .shared_channel import Channel, SharedChannel


class AsyncCommands:
    """Programs are looked up on PATH; no shell is involved."""

    def __init__(self, client: AsyncClient, sandbox_id: str, channel: SharedChannel) -> None:
        self._client = client
        self._sandbox_id = sandbox_id
        self._channel = channel

    async def run(
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
        require_arguments(args)
        request = ExecRequest(program, args, env, cwd, user, rlimits=rlimits)
        listeners = _listeners(on_stdout, on_stderr)

        async def work(channel: Channel) -> RunResult:
            return await run_process(
                channel.connection,
                request,
                content=None if stdin is None else pieces_of(stdin),
                timeout_ms=timeout_ms,
                max_output_bytes=max_output_bytes,
                on_output=listeners,
            )

        try:
            result = await self._channel.use(None, work)
        except SvcError as error:
            raise _explain(error, program, args, timeout_ms) from error.__cause__
        if result.is_timeout:
            raise _too_slow(program, timeout_ms)
        exit, output = result.exit, result.output
        return ExecResult(
            exit.code, exit.signal, exit.reason, output.stdout, output.stderr, output.truncated
        )

    async def start(
        self,
        program: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        user: str | None = None,
        rlimits: Sequence[Mapping[str, object]] = (),
        stdout: Literal["pipe", "ignore"] = "pipe",
        stderr: Literal["pipe", "ignore"] = "pipe",
        timeout_ms: float | None = None,
    ) -> AsyncCommand:
        """Starts a program for interactive use. `ignore` throws the output away. `timeout_ms` is for
        the start only."""
        require_arguments(args)
        request = ExecRequest(program, args, env, cwd, user, rlimits=rlimits)
        command = await self._open(request, timeout_ms)
        if stdout == "ignore":
            await command.stdout.discard()
        if stderr == "ignore":
            await command.stderr.discard()
        return command

    async def start_detached(
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
    ) -> AsyncDetachedProcess:
        """Starts a program that runs on when this one ends; `connect` finds it again, from anywhere.

        `name` is unique among the running processes of the sandbox. `terminal` is a size in columns
        and rows. After `max_run_seconds` it is killed. Of each stream `output_buffer_bytes` of unread
        output are kept, 1 MiB unless given.
        """
        require_arguments(args)
        body = {
            "cmd": program,
            "args": list(args),
            "stdin": has_stdin,
            "env": None if env is None else dict(env),
            "cwd": cwd,
            "user": user,
            "name": name,
            "timeout_secs": max_run_seconds,
            "output_buffer_bytes": output_buffer_bytes,
        }
        if terminal is not None:
            body |= {"tty": True, "cols": terminal[0], "rows": terminal[1]}
        given = {key: value for key, value in body.items() if value is not None}
        return await AsyncDetachedProcess._start(self._client, self._sandbox_id, given, timeout_ms)

    async def connect(
        self, id_or_name: str, *, timeout_ms: float | None = None
    ) -> AsyncDetachedProcess:
        """A detached process. Raises `process_not_found`."""
        return await AsyncDetachedProcess._connect(
            self._client, self._sandbox_id, id_or_name, timeout_ms
        )

    def list(
        self,
        *,
        status: Literal["running", "exited"] | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[AsyncDetachedProcess]:
        """Detached processes, newest first; also those that ended."""
        return AsyncDetachedProcess._list(self._client, self._sandbox_id, status, timeout_ms)

    async def _open(self, request: ExecRequest, timeout_ms: float | None) -> AsyncCommand:
        # A slow reader would stall every other call on a shared connection.
        channel = await self._channel.open_own(timeout_ms)
        try:
            process = await ChannelProcess.start(channel.connection, request)
        except BaseException as error:
            channel.close()
            if not isinstance(error, Exception):
                raise
            raise _explain(to_svc_error(error), request.cmd, request.args, None) from error
        return AsyncCommand(channel, process)


def require_arguments(args: Sequence[str]) -> None:
    """A text would be taken for a list of letters."""
    if isinstance(args, str):
        said = f"args is a list of texts, not a text: use {shlex.split(args)!r}"
        raise SvcError("invalid_request", said, details={"field": "args"})


def _listeners(on_stdout: OnText | None, on_stderr: OnText | None) -> OnOutput | None:
    """A character that is split between two pieces is passed on with the second."""
    if on_stdout is None and on_stderr is None:
        return None
    listeners = {"stdout": on_stdout, "stderr": on_stderr}
    make = codecs.getincrementaldecoder("utf-8")
    decoders = {"stdout": make("replace"), "stderr": make("replace")}

    async def listen(stream: StreamName, data: bytes | None) -> None:
        text = decoders[stream].decode(data or b"", final=data is None)
        listener = listeners[stream]
        if text and listener is not None:
            said = listener(text)
            if inspect.isawaitable(said):
                await said

    return listen


def _explain(
    error: SvcError, program: str, args: Sequence[str], timeout_ms: float | None
) -> SvcError:
    cause = error.__cause__
    if isinstance(cause, ChannelError) and cause.kind == "timeout":
        # It did not start within its time limit; if it still does, it is killed.
        return _too_slow(program, timeout_ms)
    if isinstance(cause, ChannelError) and cause.output is not None:
        said = {
            "output": cause.output.stdout.decode("utf-8", "replace"),
            "error": cause.output.stderr.decode("utf-8", "replace"),
        }
        return SvcError(error.code, error.message, details={**(error.details or {}), **said})
    # The most likely reason for a missing program is a whole command line in place of its name.
    if error.code == "exec_failed" and not args and re.search(r"\s", program.strip()):
        name, *words = program.split()
        hint = f"use shell({program!r}), or exec({name!r}, {words!r})"
        said_too = f"{error.message}; {program!r} is taken as the name of one program: {hint}"
        return SvcError("exec_failed", said_too, details=error.details)
    return error


def _too_slow(program: str, timeout_ms: float | None) -> SvcError:
    said = f"{program} took longer than the {timeout_ms or 0:g} ms that it was given, and was killed"
    return SvcError("exec_timeout", said, details={"timeout_ms": timeout_ms})
