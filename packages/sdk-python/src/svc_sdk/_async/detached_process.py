"""Processes that outlive their client."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from .._client.budget import Budget
from .._client.content import Content
from .._client.follow_events import follow_events
from .._client.pages import each_item
from .._client.read_record import read_record
from .._client.server_events import StreamEvent
from ..records import ProcessInfo, ProcessInfoExit
from ..signals import Signal, signal_number
from ..values import DetachedOutput
from .client import AsyncClient

_FIRST_POLL_MS = 20.0
_LONGEST_POLL_MS = 1000.0


class AsyncDetachedProcess:
    """It ends on its own, by a signal, or with its sandbox."""

    def __init__(self, client: AsyncClient, info: ProcessInfo) -> None:
        self._client = client
        self._info = info

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def name(self) -> str | None:
        return self._info.name

    @property
    def info(self) -> ProcessInfo:
        """The record of the server as of the last call."""
        return self._info

    async def refresh(self, *, timeout_ms: float | None = None) -> ProcessInfo:
        """Fetches the record from the server."""
        return await self._ask("processes.get", timeout_ms=timeout_ms)

    async def output(
        self,
        *,
        stdout_offset: int = 0,
        stderr_offset: int = 0,
        timeout_ms: float | None = None,
    ) -> AsyncIterator[DetachedOutput]:
        """Its output from the beginning, or from the offsets that were read up to, until it ends.
        Survives lost connections, and restarts of the server, without losing or repeating a byte."""
        query = {"offset": f"{stdout_offset}-{stderr_offset}", "follow": True}

        async def open(last_id: str | None) -> AsyncIterator[StreamEvent]:
            headers = {} if last_id is None else {"last-event-id": last_id}
            return await self._client.events(
                "processes.output", params=self._params, query=query, headers=headers
            )

        events = follow_events(Budget(timeout_ms), open)
        try:
            async for event in events:
                if event.event == "end":
                    self._info = read_record(ProcessInfo, event.data)
                elif event.event in ("output", "dropped"):
                    yield _to_output(event)
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    async def wait(self, *, timeout_ms: float | None = None) -> ProcessInfoExit:
        """Waits until it has ended; its output need not be read."""
        budget = Budget(timeout_ms)
        pause_ms = _FIRST_POLL_MS
        while True:
            info = await budget.wait(self.refresh())
            if info.exit is not None:
                return info.exit
            await budget.pause(pause_ms)
            pause_ms = min(_LONGEST_POLL_MS, pause_ms * 1.5)

    async def write(self, data: Content, *, timeout_ms: float | None = None) -> None:
        """Returns when the process has taken it."""
        await self._client.call(
            "processes.writeStdin", params=self._params, body=data, timeout_ms=timeout_ms
        )

    async def close_stdin(self, *, timeout_ms: float | None = None) -> None:
        """The process reads the end of its input."""
        await self._client.call(
            "processes.writeStdin",
            params=self._params,
            query={"close": True},
            body=b"",
            timeout_ms=timeout_ms,
        )

    async def signal(self, signal: Signal, *, timeout_ms: float | None = None) -> None:
        """To the process and all that it started in its group."""
        body = {"signal": signal_number(signal)}
        await self._ask("processes.signal", body, timeout_ms=timeout_ms)

    async def kill(self, *, timeout_ms: float | None = None) -> None:
        """SIGKILL to the process and all that it started in its group."""
        await self.signal("SIGKILL", timeout_ms=timeout_ms)

    async def resize(self, *, cols: int, rows: int, timeout_ms: float | None = None) -> None:
        """Of a terminal."""
        body = {"cols": cols, "rows": rows}
        await self._client.call(
            "processes.resize", params=self._params, body=body, timeout_ms=timeout_ms
        )

    async def remove(self, *, timeout_ms: float | None = None) -> None:
        """Kills it if it runs, and forgets it with its output."""
        await self._client.call("processes.remove", params=self._params, timeout_ms=timeout_ms)

    @classmethod
    async def _start(
        cls, client: AsyncClient, sandbox_id: str, body: Mapping[str, Any], timeout_ms: float | None
    ) -> AsyncDetachedProcess:
        params = {"sandbox_id": sandbox_id}
        data = await client.call(
            "processes.start", params=params, body=body, timeout_ms=timeout_ms
        )
        return cls(client, read_record(ProcessInfo, data))

    @classmethod
    async def _connect(
        cls, client: AsyncClient, sandbox_id: str, id_or_name: str, timeout_ms: float | None
    ) -> AsyncDetachedProcess:
        params = {"sandbox_id": sandbox_id, "process_id": id_or_name}
        data = await client.call("processes.get", params=params, timeout_ms=timeout_ms)
        return cls(client, read_record(ProcessInfo, data))

    @classmethod
    async def _list(
        cls,
        client: AsyncClient,
        sandbox_id: str,
        status: Literal["running", "exited"] | None,
        timeout_ms: float | None,
    ) -> AsyncIterator[AsyncDetachedProcess]:
        async def page(cursor: str | None) -> Any:
            return await client.call(
                "processes.list",
                params={"sandbox_id": sandbox_id},
                query={"limit": 100, "status": status, "cursor": cursor},
                timeout_ms=timeout_ms,
            )

        async for item in each_item(page):
            yield cls(client, read_record(ProcessInfo, item))

    async def _ask(
        self, name: str, body: Any = None, *, timeout_ms: float | None = None
    ) -> ProcessInfo:
        data = await self._client.call(
            name, params=self._params, body=body, timeout_ms=timeout_ms
        )
        self._info = read_record(ProcessInfo, data)
        return self._info

    @property
    def _params(self) -> dict[str, str]:
        return {"sandbox_id": self._info.sandbox_id, "process_id": self._info.id}


def _to_output(event: StreamEvent) -> DetachedOutput:
    """Bytes come in base64, because events are text."""
    data = event.data
    if event.event == "dropped":
        return DetachedOutput("dropped", data["stream"], data["from"], b"", data["to"])
    content = base64.b64decode(data["data"])
    offset = data["offset"]
    return DetachedOutput("data", data["stream"], offset, content, offset + len(content))
