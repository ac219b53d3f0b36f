"""A connection over which code runs in a sandbox: messages of JSON, each with its run's number."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from ..errors import SvcError, error_of_answer
from .background import in_background
from .transport import Transport

#: A longer line is a protocol error.
_MAX_LINE_BYTES = 16 * 1024 * 1024
#: Unread output of a run that is held for a slow listener. More is thrown away, as the server does.
_MAX_UNREAD_LENGTH = 8 * 1024 * 1024
_LAST = ("end", "error", "refused")


@dataclass(frozen=True)
class RunName:
    """A run by the connection that it was asked for on, and its number there."""

    connection: str
    id: int


class RunEvents:
    """The events of one run, in their order."""

    def __init__(self, name: RunName) -> None:
        self.name = name
        self._queue: asyncio.Queue[tuple[str, Any] | SvcError] = asyncio.Queue()
        self._unread = 0
        self._is_cut = False

    async def next(self) -> tuple[str, Any]:
        """Raises SvcError when the run was refused, or its connection has ended."""
        item = await self._queue.get()
        if isinstance(item, SvcError):
            raise item
        self._unread -= _length_of(*item)
        return item

    def put(self, event: str, data: Any) -> None:
        length = _length_of(event, data)
        if self._unread + length > _MAX_UNREAD_LENGTH:
            self._is_cut = True
            return
        self._unread += length
        if event == "end" and self._is_cut:
            data = {**data, "truncated": True}
        self._queue.put_nowait((event, data))

    def lose(self, error: SvcError) -> None:
        self._queue.put_nowait(error)


class CodeConnection:
    """Runs overlap. They end with the connection."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._runs: dict[int, RunEvents] = {}
        self._name = ""
        self._last_id = 0
        self._failure: SvcError | None = None
        self._is_leaving = False
        #: The owner has closed it.
        self.is_closed = False
        # Numbers are sent in their order.
        self._sending = asyncio.Lock()
        self._opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._reading = asyncio.ensure_future(self._read())

    async def open(self) -> None:
        """Waits for the server's first word; it is closed when that does not come."""
        try:
            self._name = await asyncio.shield(self._opened)
        except BaseException:
            self._close()
            raise

    @property
    def is_over(self) -> bool:
        return self._failure is not None

    async def run(self, body: dict[str, Any], again: RunName | None) -> RunEvents:
        """Sends the code; `again` is the run, on a connection that broke, that this is."""
        async with self._sending:
            if self._failure is not None:
                raise self._failure
            self._last_id += 1
            run = RunEvents(RunName(self._name, self._last_id))
            self._runs[run.name.id] = run
            message: dict[str, Any] = {"id": run.name.id, "run": body}
            if again is not None:
                message["again"] = {"connection": again.connection, "id": again.id}
            try:
                await self._write(message)
            except BaseException:
                self.cancel(run)
                raise
        return run

    def cancel(self, run: RunEvents) -> None:
        """Interrupts the code of a run that the caller has left. Has no effect on one that is over."""
        id = run.name.id
        if self._runs.get(id) is run:
            self._end(id)
            if self._failure is None:
                in_background(self._send_cancel(id))

    async def closed(self) -> None:
        """Closes it, and returns when its socket is closed."""
        self._close()
        await self._transport.closed()

    async def closed_when_idle(self) -> None:
        """Closes it as soon as nothing runs over it; returns at once while something does."""
        self._is_leaving = True
        if not self._runs:
            await self.closed()

    def _close(self) -> None:
        self.is_closed = True
        self._fail(SvcError("connection_failed", "The connection was closed"))

    async def _send_cancel(self, id: int) -> None:
        async with self._sending:
            await self._write({"id": id, "cancel": True})

    async def _write(self, message: dict[str, Any]) -> None:
        """A failure ends the connection, which every run reports."""
        try:
            await self._transport.write(json.dumps(message, ensure_ascii=False).encode())
        except OSError as error:
            self._fail(_broken(error))

    async def _read(self) -> None:
        begun = bytearray()
        try:
            while (data := await self._transport.read()) is not None:
                first, *others = data.split(b"\n")
                begun += first
                for other in others:
                    self._take(json.loads(begun))
                    begun = bytearray(other)
                if len(begun) > _MAX_LINE_BYTES:
                    return self._fail(SvcError("internal", "The server sent an endless line"))
            self._fail(_broken())
        except SvcError as error:
            self._fail(error)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            self._fail(_broken(error))
        except asyncio.CancelledError:
            if self._failure is None:
                # The event loop ends, and would not run what a close has to wait for.
                self._transport.abort()
                self._close()
            raise

    def _take(self, line: dict[str, Any]) -> None:
        if "connection" in line:
            if not self._opened.done():
                self._opened.set_result(str(line["connection"]))
            return
        run = self._runs.get(line["id"])
        if run is None:
            # It was cancelled.
            return
        event, data = line["event"], line["data"]
        if event == "refused":
            run.lose(_refusal(data))
        else:
            run.put(event, data)
        if event in _LAST:
            self._end(run.name.id)

    def _end(self, id: int) -> None:
        self._runs.pop(id, None)
        if self._is_leaving and not self._runs:
            self._close()

    def _fail(self, error: SvcError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if not self._transport.is_aborted:
            self._transport.close()
        if not self._opened.done():
            self._opened.set_exception(error)
        runs = list(self._runs.values())
        self._runs.clear()
        for run in runs:
            run.lose(error)
        if asyncio.current_task() is not self._reading:
            self._reading.cancel()


def _length_of(event: str, data: Any) -> int:
    return len(data["text"]) if event in ("stdout", "stderr") else 0


def _broken(cause: Exception | None = None) -> SvcError:
    reason = f": {cause}" if cause is not None and str(cause) else ""
    error = SvcError("connection_failed", f"The connection to the server broke{reason}")
    error.__cause__ = cause
    return error


def _refusal(data: dict[str, Any]) -> SvcError:
    """As the answer of a request that was refused."""
    seconds = (data["error"].get("details") or {}).get("retry_after_seconds")
    headers = {} if seconds is None else {"retry-after": str(seconds)}
    return error_of_answer(data["status"], headers, json.dumps({"error": data["error"]}))
