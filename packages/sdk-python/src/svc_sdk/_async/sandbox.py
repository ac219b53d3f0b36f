"""A sandbox of the server."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Unpack

from .._client.budget import Budget
from .._client.content import Content
from .._client.follow_events import follow_events
from .._client.pages import each_item
from .._client.read_record import read_record
from .._client.server_events import StreamEvent
from ..errors import SvcError
from ..records import SandboxInfo, SandboxMetrics, Snapshot
from ..values import CodeResult, ExecResult, FetchProgress, LogEntry, OnError, OnResult, OnText
from .client import AsyncClient
from .code_contexts import AsyncCodeContext, AsyncCodeContexts
from .code_runs import CodeRuns
from .commands import AsyncCommands
from .create_options import CreateOptions, body_of
from .files import AsyncFiles
from .git import AsyncGit
from .logs import LogQuery, read_logs
from .network import AsyncNetwork
from .ports import AsyncPorts
from .run_code import CodeRun, code_body
from .settle import Record, until_running, until_started, until_stopped
from .shared_channel import SharedChannel
from .snapshot import make_snapshot
from .terminals import AsyncTerminals

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DEFAULT_SHELL = "/bin/sh"
_WAIT_FOR_PORT_MS = 60_000.0


class AsyncSandbox:
    """A sandbox. The object holds a connection for commands and files and one for code, each opened when
    it is needed.

    Its `with` block stops the sandbox at the end, or removes it when it is ephemeral.
    """

    client: AsyncClient
    #: Processes.
    commands: AsyncCommands
    files: AsyncFiles
    #: Repositories.
    git: AsyncGit
    #: Terminals.
    pty: AsyncTerminals
    network: AsyncNetwork
    ports: AsyncPorts
    #: Interpreters with a state of their own, for `run_code`.
    contexts: AsyncCodeContexts

    def __init__(self, client: AsyncClient, record: Record) -> None:
        id = str(record["id"])
        self.client = client
        self._record = record
        self._channel = SharedChannel(client, id)
        self.commands = AsyncCommands(client, id, self._channel)
        self.files = AsyncFiles(client, id, self._channel)
        self.git = AsyncGit(self.commands, lambda: (self._record.get("spec") or {}).get("image"))
        self.pty = AsyncTerminals(self.commands, lambda: self._shell)
        self.network = AsyncNetwork(client, id)
        self.ports = AsyncPorts(client, id, self._channel)
        self._code_runs = CodeRuns(client, id)
        self.contexts = AsyncCodeContexts(client, id, self._code_runs)

    @staticmethod
    async def create(
        *,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
        **options: Unpack[CreateOptions],
    ) -> AsyncSandbox:
        """Makes a sandbox and waits until it runs.

        Raises `start_failed` when it was made but does not run, and `timeout` while it starts, with
        `details["sandbox_id"]` once it is made.
        """
        body = body_of(options)
        used = client or AsyncClient.of_environment()
        key = options.get("idempotency_key")
        if options.get("start") is False:
            record = await used.call(
                "sandboxes.create", body=body, timeout_ms=timeout_ms, idempotency_key=key
            )
            return AsyncSandbox(used, record)

        async def ask(query: dict[str, object], limit: float) -> Record:
            asked = {"start": True, **query}
            made: Record = await used.call(
                "sandboxes.create", body=body, query=asked, timeout_ms=limit, idempotency_key=key
            )
            return made

        return AsyncSandbox(used, await until_started(used, timeout_ms, ask))

    @staticmethod
    async def connect(
        name_or_id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AsyncSandbox:
        """One that exists; it is not started. Raises `sandbox_not_found`."""
        used = client or AsyncClient.of_environment()
        return AsyncSandbox(used, await _find(used, name_or_id, timeout_ms))

    @staticmethod
    async def get_or_create(
        *,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
        **options: Unpack[CreateOptions],
    ) -> AsyncSandbox:
        """The sandbox of this `name`, started when it does not run, or else a new one. The options do
        not change an existing one."""
        body_of(options)
        name = options.get("name")
        if not name:
            said = "get_or_create needs the name of the sandbox"
            raise SvcError("invalid_request", said, details={"field": "name"})
        try:
            sandbox = await AsyncSandbox.connect(name, client=client, timeout_ms=timeout_ms)
        except SvcError as error:
            if error.code != "sandbox_not_found":
                raise
            try:
                return await AsyncSandbox.create(client=client, timeout_ms=timeout_ms, **options)
            except SvcError as refused:
                # Another client has created it meanwhile.
                if refused.code != "name_already_exists":
                    raise
            sandbox = await AsyncSandbox.connect(name, client=client, timeout_ms=timeout_ms)
        if options.get("start") is not False and sandbox.status != "running":
            await sandbox.start(timeout_ms=timeout_ms)
        return sandbox

    @staticmethod
    async def list(
        *,
        labels: Mapping[str, str] | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[AsyncSandbox]:
        """All sandboxes of the organization, newest first; with `labels` those that have all of them."""
        used = client or AsyncClient.of_environment()
        async for record in _list(used, labels, timeout_ms):
            yield AsyncSandbox(used, record)

    @property
    def id(self) -> str:
        return str(self._record["id"])

    @property
    def name(self) -> str:
        return str(self._record["name"])

    @property
    def status(self) -> str:
        """Its status as of the last call: see `refresh`."""
        return str(self._record["status"])

    @property
    def info(self) -> SandboxInfo:
        """The record of the server as of the last call."""
        return read_record(SandboxInfo, self._record)

    async def refresh(self, *, timeout_ms: float | None = None) -> SandboxInfo:
        """Fetches the record from the server."""
        await self._ask("sandboxes.get", timeout_ms)
        return self.info

    async def start(self, *, timeout_ms: float | None = None) -> None:
        """Starts it, unless it runs already, and waits until it runs. Raises `start_failed` or `timeout`."""

        async def ask(query: dict[str, object], limit: float) -> Record:
            self._record = await self.client.call(
                "sandboxes.start", params=self._params, query=query, timeout_ms=limit
            )
            return self._record

        self._record = await until_started(self.client, timeout_ms, ask)

    async def wait_for_running(self, *, timeout_ms: float | None = None) -> None:
        """Waits for a start that this or another client has requested."""
        self._record = await until_running(self.client, self.id, timeout_ms)

    async def start_progress(
        self, *, timeout_ms: float | None = None
    ) -> AsyncIterator[FetchProgress]:
        """The progress of a start that was requested already: how much of its image is there. Ends
        with the start."""

        async def open(last_id: str | None) -> AsyncIterator[StreamEvent]:
            return await self.client.events("progress.follow", params=self._params)

        events = follow_events(Budget(timeout_ms), open)
        try:
            async for event in events:
                if event.event == "progress":
                    yield read_record(FetchProgress, event.data)
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    async def stop(self, *, timeout_ms: float | None = None) -> None:
        """Stops it and waits until it has stopped. Its disk is kept; an ephemeral one is removed."""
        await self._leave()
        await self._ask("sandboxes.stop", timeout_ms)
        stopped = await until_stopped(self.client, self.id, timeout_ms)
        self._record = stopped or {**self._record, "status": "stopped"}

    async def restart(self, *, timeout_ms: float | None = None) -> None:
        await self.stop(timeout_ms=timeout_ms)
        await self.start(timeout_ms=timeout_ms)

    async def remove(self, *, timeout_ms: float | None = None) -> None:
        """Stops it and destroys all that it has; volumes and snapshots stay."""
        await self._leave()
        await self.client.call("sandboxes.remove", params=self._params, timeout_ms=timeout_ms)

    async def rename(
        self,
        *,
        name: str | None = None,
        slug: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        given = {"name": name, "slug": slug}
        body = {key: value for key, value in given.items() if value is not None}
        await self._ask("sandboxes.update", timeout_ms, body)

    async def set_lifecycle(
        self,
        *,
        max_duration_secs: int | None | Literal["unchanged"] = "unchanged",
        idle_timeout_secs: int | None | Literal["unchanged"] = "unchanged",
        timeout_ms: float | None = None,
    ) -> None:
        """Changes how long it may run, counted from its start, and be idle; None: no limit. Applies at
        once, and to its next runs."""
        given = {"max_duration_secs": max_duration_secs, "idle_timeout_secs": idle_timeout_secs}
        body = {key: value for key, value in given.items() if value != "unchanged"}
        await self._ask("lifecycle.update", timeout_ms, body)

    async def set_timeout(self, ends_in_ms: float, *, timeout_ms: float | None = None) -> None:
        """Sets its end to this many milliseconds from now, earlier or later than before."""
        body = {"ends_in_secs": max(1, -int(-ends_in_ms // 1000))}
        await self._ask("lifecycle.update", timeout_ms, body)

    async def keep_alive(self, *, timeout_ms: float | None = None) -> None:
        """Counts as use: its idle time begins anew. Raises `sandbox_not_running`."""
        await self._ask("lifecycle.keepAlive", timeout_ms)

    async def recover(
        self, action: Literal["wait", "restart", "stop"], *, timeout_ms: float | None = None
    ) -> None:
        """Chooses how it continues after an outage of its host."""
        await self._ask("sandboxes.recover", timeout_ms, {"action": action})

    async def exec(
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
        """Runs a program to its end; short for `commands.run`. No shell is involved."""
        return await self.commands.run(
            program,
            args,
            env=env,
            cwd=cwd,
            user=user,
            rlimits=rlimits,
            stdin=stdin,
            timeout_ms=timeout_ms,
            max_output_bytes=max_output_bytes,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )

    async def shell(
        self,
        script: str,
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
        """Runs a script in the shell of the sandbox."""
        return await self.commands.run(
            self._shell,
            ["-c", script],
            env=env,
            cwd=cwd,
            user=user,
            rlimits=rlimits,
            stdin=stdin,
            timeout_ms=timeout_ms,
            max_output_bytes=max_output_bytes,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
        )

    async def run_code(
        self,
        code: str,
        *,
        language: Literal["python", "javascript"] | None = None,
        kernel: str | None = None,
        context: AsyncCodeContext | str | None = None,
        on_stdout: OnText | None = None,
        on_stderr: OnText | None = None,
        on_result: OnResult | None = None,
        on_error: OnError | None = None,
        env: Mapping[str, str] | None = None,
        print_result: bool = True,
        timeout_ms: float | None = None,
    ) -> CodeResult:
        """Runs code in an interpreter that keeps its state between calls: in the default context of
        `language` (Python unless given), in that of a Jupyter `kernel` of the image, or in `context`.
        `env` is over the environment of the interpreter, for this code alone; not for a kernel. Without
        `print_result` the value of a last bare expression is not in `output`.
        After `timeout_ms` the code is interrupted, and `status` is `timeout`; 24 hours unless given."""
        id = context.id if isinstance(context, AsyncCodeContext) else context
        run = CodeRun(on_stdout, on_stderr, on_result, on_error)
        body = code_body(
            code,
            language=language,
            kernel=kernel,
            context=id,
            env=env,
            print_result=print_result,
            timeout_ms=timeout_ms,
        )
        return await self._code_runs.run(body, run)

    async def url(
        self, port: int, *, expires_in_secs: int | None = None, timeout_ms: float | None = None
    ) -> str:
        """An address of a port that opens as it is, in a browser too; short for `ports.url`."""
        return await self.ports.url(port, expires_in_secs=expires_in_secs, timeout_ms=timeout_ms)

    async def wait_for_port(self, port: int, *, timeout_ms: float = _WAIT_FOR_PORT_MS) -> None:
        """Waits until a program listens on the port; short for `ports.wait_for`."""
        await self.ports.wait_for(port, timeout_ms=timeout_ms)

    def logs(
        self,
        *,
        follow: bool = False,
        sources: Sequence[Literal["stdout", "stderr", "output", "system"]] | None = None,
        tail: int | None = None,
        since: str | None = None,
        until: str | None = None,
        after: str | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[LogEntry]:
        """What its processes have written, oldest first.

        `follow`: until the sandbox stops, over lost connections too. `sources`: all but `system`
        unless given. `tail`: begin with so many of the last entries. `since` and `until` are RFC 3339.
        `after`: the cursor of the last entry that was seen.
        """
        query = LogQuery(follow, sources, tail, since, until, after, timeout_ms)
        return read_logs(self.client, self.id, query)

    async def metrics(
        self,
        *,
        range_seconds: int | None = None,
        step_seconds: int | None = None,
        timeout_ms: float | None = None,
    ) -> SandboxMetrics:
        """What it used over time: the last hour in steps of 30 s unless told otherwise."""
        query = {"range_secs": range_seconds, "step_secs": step_seconds}
        data = await self.client.call(
            "sandboxes.metrics", params=self._params, query=query, timeout_ms=timeout_ms
        )
        return read_record(SandboxMetrics, data)

    async def snapshot(
        self,
        name: str,
        *,
        force: bool = False,
        labels: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> Snapshot:
        """Makes a snapshot of its disk, while it runs or is stopped, with all writes so far; `force`
        replaces one of this name. Create sandboxes from it with `Sandbox.create(snapshot_id=…)`."""
        return await make_snapshot(self.client, self.id, name, force, labels, timeout_ms)

    async def close(self) -> None:
        """Ends its connections and what runs over them; the sandbox goes on."""
        await self._channel.close()
        await self._code_runs.close()

    async def _leave(self) -> None:
        """Closes the connections before it ends; current runs of code get the end from the server."""
        await self._channel.close()
        await self._code_runs.close_when_idle()

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        try:
            await (self.remove() if self._record["ephemeral"] else self.stop())
        except SvcError as refused:
            # Another client has stopped or removed it already.
            if refused.code not in ("sandbox_not_found", "invalid_state_transition"):
                raise
        return False

    def __repr__(self) -> str:
        return f"<Sandbox {self.name} {self.status}>"

    def _repr_html_(self) -> str:
        spec = self._record.get("spec") or {}
        image = spec.get("image") or "a snapshot"
        name, status = html.escape(self.name), html.escape(self.status)
        return f"<div><b>{name}</b> · {status} · {html.escape(str(image))}<br><code>{self.id}</code></div>"

    async def _ask(self, name: str, timeout_ms: float | None, body: Any = None) -> None:
        self._record = await self.client.call(
            name, params=self._params, body=body, timeout_ms=timeout_ms
        )

    @property
    def _params(self) -> dict[str, str]:
        return {"sandbox_id": self.id}

    @property
    def _shell(self) -> str:
        runtime = (self._record.get("spec") or {}).get("runtime") or {}
        return runtime.get("shell") or _DEFAULT_SHELL


async def _find(client: AsyncClient, name_or_id: str, timeout_ms: float | None) -> Record:
    """A text with the form of an id may still be a name."""
    if _UUID.fullmatch(name_or_id):
        try:
            params = {"sandbox_id": name_or_id}
            by_id: Record = await client.call("sandboxes.get", params=params, timeout_ms=timeout_ms)
            return by_id
        except SvcError as error:
            if error.code != "sandbox_not_found":
                raise
    found: Record = await client.call(
        "sandboxes.getByName", params={"name": name_or_id}, timeout_ms=timeout_ms
    )
    return found


def _list(
    client: AsyncClient, labels: Mapping[str, str] | None, timeout_ms: float | None
) -> AsyncIterator[Record]:
    known = None if labels is None else json.dumps(dict(labels))

    async def page(cursor: str | None) -> Any:
        query = {"limit": 100, "labels": known, "cursor": cursor}
        return await client.call("sandboxes.list", query=query, timeout_ms=timeout_ms)

    return each_item(page)
