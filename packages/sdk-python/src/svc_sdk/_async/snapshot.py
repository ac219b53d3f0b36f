"""Makes snapshots."""

from __future__ import annotations

from collections.abc import Mapping

from .._client.budget import Budget
from .._client.read_record import read_record
from .._error_codes import CODES
from ..errors import SvcError
from ..records import Snapshot
from .client import AsyncClient

#: Most snapshots are made at once, slow ones are polled less often.
_FIRST_POLL_MS = 10.0
_MOST_POLL_MS = 200.0


async def make_snapshot(
    client: AsyncClient,
    sandbox_id: str,
    name: str,
    force: bool,
    labels: Mapping[str, str] | None,
    timeout_ms: float | None,
) -> Snapshot:
    """Waits until it is made."""
    body = {
        "kind": "disk",
        "sandbox_id": sandbox_id,
        "name": name,
        "force": force,
        "labels": dict(labels or {}),
    }
    budget = Budget(timeout_ms)
    operation = await budget.wait(client.call("snapshots.create", body=body))
    pause_ms = _FIRST_POLL_MS
    while operation["status"] in ("queued", "in_progress"):
        await budget.pause(pause_ms)
        pause_ms = min(2 * pause_ms, _MOST_POLL_MS)
        params = {"operation_id": operation["id"]}
        operation = await budget.wait(client.call("snapshots.getOperation", params=params))
    if operation["result"] is not None:
        return read_record(Snapshot, operation["result"])
    error = operation["error"] or {"code": "internal", "message": f"Snapshot {name} failed"}
    code = error["code"] if error["code"] in CODES else "internal"
    raise SvcError(code, error["message"])
