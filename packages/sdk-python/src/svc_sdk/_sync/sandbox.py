"""Generated from ../_async/sandbox.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Unpack
from .._async.create_options import CreateOptions
from .._async.sandbox import AsyncSandbox
from .._client import portal
from .._client.content import Content
from ..records import SandboxInfo, SandboxMetrics, Snapshot
from ..values import CodeResult, ExecResult, FetchProgress, LogEntry, OnError, OnResult, OnText
from .client import Client
from .code_contexts import CodeContext
from .code_contexts import CodeContexts
from .commands import Commands
from .files import Files
from .git import Git
from .network import Network
from .ports import Ports
from .terminals import Terminals

_WAIT_FOR_PORT_MS = 60000.0


class Sandbox:
    """A sandbox. The object holds a connection for commands and files and one for code, each opened when
    it is needed.

    Its `with` block stops the sandbox at the end, or removes it when it is ephemeral.
    """

    client: Client
    commands: Commands
    files: Files
    git: Git
    pty: Terminals
    network: Network
    ports: Ports
    contexts: CodeContexts

    @classmethod
    def _of(cls, inner: AsyncSandbox) -> Sandbox:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncSandbox) -> None:
        self._inner = inner
        self.client = Client._of(inner.client)
        self.commands = Commands._of(inner.commands)
        self.files = Files._of(inner.files)
        self.git = Git._of(inner.git)
        self.pty = Terminals._of(inner.pty)
        self.network = Network._of(inner.network)
        self.ports = Ports._of(inner.ports)
        self.contexts = CodeContexts._of(inner.contexts)

    @staticmethod
    def create(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
        **options: Unpack[CreateOptions],
    ) -> Sandbox:
        """Makes a sandbox and waits until it runs.

        Raises `start_failed` when it was made but does not run, and `timeout` while it starts, with
        `details["sandbox_id"]` once it is made.
        """
        return Sandbox._of(portal.run(AsyncSandbox.create(
            client=portal.inner(client),
            timeout_ms=timeout_ms,
            **options,
        )))

    @staticmethod
    def connect(
        name_or_id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Sandbox:
        """One that exists; it is not started. Raises `sandbox_not_found`."""
        return Sandbox._of(portal.run(AsyncSandbox.connect(
            name_or_id,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        )))

    @staticmethod
    def get_or_create(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
        **options: Unpack[CreateOptions],
    ) -> Sandbox:
        """The sandbox of this `name`, started when it does not run, or else a new one. The options do
        not change an existing one."""
        return Sandbox._of(portal.run(AsyncSandbox.get_or_create(
            client=portal.inner(client),
            timeout_ms=timeout_ms,
            **options,
        )))

    @staticmethod
    def list(
        *,
        labels: Mapping[str, str] | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[Sandbox]:
        """All sandboxes of the organization, newest first; with `labels` those that have all of them."""
        for each in portal.iterate(AsyncSandbox.list(
            labels=labels,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        )):
            yield Sandbox._of(each)

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def status(self) -> str:
        """Its status as of the last call: see `refresh`."""
        return self._inner.status

    @property
    def info(self) -> SandboxInfo:
        """The record of the server as of the last call."""
        return self._inner.info

    def refresh(self, *, timeout_ms: float | None = None) -> SandboxInfo:
        """Fetches the record from the server."""
        return portal.run(self._inner.refresh(timeout_ms=timeout_ms))

    def start(self, *, timeout_ms: float | None = None) -> None:
        """Starts it, unless it runs already, and waits until it runs. Raises `start_failed` or `timeout`."""
        portal.run(self._inner.start(timeout_ms=timeout_ms))

    def wait_for_running(self, *, timeout_ms: float | None = None) -> None:
        """Waits for a start that this or another client has requested."""
        portal.run(self._inner.wait_for_running(timeout_ms=timeout_ms))

    def start_progress(self, *, timeout_ms: float | None = None) -> Iterator[FetchProgress]:
        """The progress of a start that was requested already: how much of its image is there. Ends
        with the start."""
        return portal.iterate(self._inner.start_progress(timeout_ms=timeout_ms))

    def stop(self, *, timeout_ms: float | None = None) -> None:
        """Stops it and waits until it has stopped. Its disk is kept; an ephemeral one is removed."""
        portal.run(self._inner.stop(timeout_ms=timeout_ms))

    def restart(self, *, timeout_ms: float | None = None) -> None:
        portal.run(self._inner.restart(timeout_ms=timeout_ms))

    def remove(self, *, timeout_ms: float | None = None) -> None:
        """Stops it and destroys all that it has; volumes and snapshots stay."""
        portal.run(self._inner.remove(timeout_ms=timeout_ms))

    def rename(
        self,
        *,
        name: str | None = None,
        slug: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        portal.run(self._inner.rename(name=name, slug=slug, timeout_ms=timeout_ms))

    def set_lifecycle(
        self,
        *,
        max_duration_secs: int | None | Literal['unchanged'] = 'unchanged',
        idle_timeout_secs: int | None | Literal['unchanged'] = 'unchanged',
        timeout_ms: float | None = None,
    ) -> None:
        """Changes how long it may run, counted from its start, and be idle; None: no limit. Applies at
        once, and to its next runs."""
        portal.run(self._inner.set_lifecycle(
            max_duration_secs=max_duration_secs,
            idle_timeout_secs=idle_timeout_secs,
            timeout_ms=timeout_ms,
        ))

    def set_timeout(self, ends_in_ms: float, *, timeout_ms: float | None = None) -> None:
        """Sets its end to this many milliseconds from now, earlier or later than before."""
        portal.run(self._inner.set_timeout(ends_in_ms, timeout_ms=timeout_ms))

    def keep_alive(self, *, timeout_ms: float | None = None) -> None:
        """Counts as use: its idle time begins anew. Raises `sandbox_not_running`."""
        portal.run(self._inner.keep_alive(timeout_ms=timeout_ms))

    def recover(
        self,
        action: Literal['wait', 'restart', 'stop'],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Chooses how it continues after an outage of its host."""
        portal.run(self._inner.recover(action, timeout_ms=timeout_ms))

    def exec(
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
        return portal.run(self._inner.exec(
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

    def shell(
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
        return portal.run(self._inner.shell(
            script,
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

    def run_code(
        self,
        code: str,
        *,
        language: Literal['python', 'javascript'] | None = None,
        kernel: str | None = None,
        context: CodeContext | str | None = None,
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
        return portal.run(self._inner.run_code(
            code,
            language=language,
            kernel=kernel,
            context=portal.inner(context),
            on_stdout=portal.listener(on_stdout),
            on_stderr=portal.listener(on_stderr),
            on_result=portal.listener(on_result),
            on_error=portal.listener(on_error),
            env=env,
            print_result=print_result,
            timeout_ms=timeout_ms,
        ))

    def url(
        self,
        port: int,
        *,
        expires_in_secs: int | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """An address of a port that opens as it is, in a browser too; short for `ports.url`."""
        return portal.run(self._inner.url(
            port,
            expires_in_secs=expires_in_secs,
            timeout_ms=timeout_ms,
        ))

    def wait_for_port(self, port: int, *, timeout_ms: float = _WAIT_FOR_PORT_MS) -> None:
        """Waits until a program listens on the port; short for `ports.wait_for`."""
        portal.run(self._inner.wait_for_port(port, timeout_ms=timeout_ms))

    def logs(
        self,
        *,
        follow: bool = False,
        sources: Sequence[Literal['stdout', 'stderr', 'output', 'system']] | None = None,
        tail: int | None = None,
        since: str | None = None,
        until: str | None = None,
        after: str | None = None,
        timeout_ms: float | None = None,
    ) -> Iterator[LogEntry]:
        """What its processes have written, oldest first.

        `follow`: until the sandbox stops, over lost connections too. `sources`: all but `system`
        unless given. `tail`: begin with so many of the last entries. `since` and `until` are RFC 3339.
        `after`: the cursor of the last entry that was seen.
        """
        return portal.iterate(self._inner.logs(
            follow=follow,
            sources=sources,
            tail=tail,
            since=since,
            until=until,
            after=after,
            timeout_ms=timeout_ms,
        ))

    def metrics(
        self,
        *,
        range_seconds: int | None = None,
        step_seconds: int | None = None,
        timeout_ms: float | None = None,
    ) -> SandboxMetrics:
        """What it used over time: the last hour in steps of 30 s unless told otherwise."""
        return portal.run(self._inner.metrics(
            range_seconds=range_seconds,
            step_seconds=step_seconds,
            timeout_ms=timeout_ms,
        ))

    def snapshot(
        self,
        name: str,
        *,
        force: bool = False,
        labels: Mapping[str, str] | None = None,
        timeout_ms: float | None = None,
    ) -> Snapshot:
        """Makes a snapshot of its disk, while it runs or is stopped, with all writes so far; `force`
        replaces one of this name. Create sandboxes from it with `Sandbox.create(snapshot_id=…)`."""
        return portal.run(self._inner.snapshot(name, force=force, labels=labels, timeout_ms=timeout_ms))

    def close(self) -> None:
        """Ends its connections and what runs over them; the sandbox goes on."""
        portal.run(self._inner.close())

    def __enter__(self) -> Sandbox:
        portal.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        return portal.run(self._inner.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return self._inner.__repr__()

    def _repr_html_(self) -> str:
        return self._inner._repr_html_()
