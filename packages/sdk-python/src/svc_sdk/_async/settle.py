"""Waits until sandboxes run, or have stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .._client.budget import Budget
from ..errors import SvcError
from .client import AsyncClient

_FIRST_POLL_MS = 20.0
_LONGEST_POLL_MS = 1000.0
#: Time limit of a start unless given.
_START_TIMEOUT_MS = 100_000.0
#: How long of that the server is asked to hold its answer; the rest is for the transfer of the answer.
_HELD = 0.9
_STOPPED = ("stopped", "failed", "created")

Record = dict[str, Any]
#: Asks for a start with a call that the server holds; it gets the query and the time limit.
Ask = Callable[[dict[str, object], float], Awaitable[Record]]


async def until_started(client: AsyncClient, timeout_ms: float | None, ask: Ask) -> Record:
    """Raises `start_failed` or `timeout`."""
    limit = _START_TIMEOUT_MS if timeout_ms is None else timeout_ms
    budget = Budget(limit)
    query = {"wait_for": "running", "wait_timeout": int(limit * _HELD / 1000)}
    record = await budget.wait(ask(query, limit))
    return _require_running(await _until_over(client, record, budget))


async def until_running(client: AsyncClient, id: str, timeout_ms: float | None) -> Record:
    """Waits for a start that was asked for already."""
    budget = Budget(_START_TIMEOUT_MS if timeout_ms is None else timeout_ms)
    record = await budget.wait(client.call("sandboxes.get", params={"sandbox_id": id}))
    return _require_running(await _until_over(client, record, budget))


async def until_stopped(client: AsyncClient, id: str, timeout_ms: float | None) -> Record | None:
    """None when it is gone, as ephemeral ones are."""
    budget = Budget(client.timeout_ms if timeout_ms is None else timeout_ms)
    pause_ms = _FIRST_POLL_MS
    while True:
        record = await budget.wait(_find(client, id))
        if record is None or record["status"] in _STOPPED:
            return record
        await budget.pause(pause_ms)
        pause_ms = min(_LONGEST_POLL_MS, pause_ms * 1.5)


async def _until_over(client: AsyncClient, record: Record, budget: Budget) -> Record:
    """The record after the start is over, or when the time is up."""
    pause_ms = _FIRST_POLL_MS
    while record["status"] == "starting":
        if budget.remaining_ms < 2 * pause_ms:
            return record
        await budget.pause(pause_ms)
        pause_ms = min(_LONGEST_POLL_MS, pause_ms * 1.5)
        # An ephemeral sandbox ran, and was removed with its end.
        found = await budget.wait(_find(client, record["id"]))
        record = found or {**record, "status": "stopped"}
    return record


def _require_running(record: Record) -> Record:
    status, name = record["status"], record["name"]
    if status == "running":
        return record
    details = {"sandbox_id": record["id"], "status": status}
    if status == "starting":
        said = f"Sandbox '{name}' is still starting; ask again later"
        raise SvcError("timeout", said, details=details)
    why = record["last_failure_message"] or f"it is {status}"
    raise SvcError("start_failed", f"Sandbox '{name}' did not start: {why}", details=details)


async def _find(client: AsyncClient, id: str) -> Record | None:
    try:
        found: Record = await client.call("sandboxes.get", params={"sandbox_id": id})
        return found
    except SvcError as error:
        if error.code == "sandbox_not_found":
            return None
        raise
