"""Work that no caller waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

_TASKS: set[asyncio.Future[None]] = set()


def in_background(work: Awaitable[None]) -> None:
    """What it raises is dropped: it is reported where it is noticed."""
    task = asyncio.ensure_future(work)
    # The loop holds its tasks weakly.
    _TASKS.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Future[None]) -> None:
    _TASKS.discard(task)
    if not task.cancelled():
        task.exception()
