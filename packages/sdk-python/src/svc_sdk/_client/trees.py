"""What copying trees in both directions has in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ..errors import SvcError
from .budget import Budget

T = TypeVar("T")

#: Files copied in parallel: enough to hide the latency to the sandbox, few enough for its handles.
_CONCURRENCY = 8


async def within_tree(timeout_ms: float | None, work: Awaitable[T]) -> T:
    """Does the work for a tree within its time limit."""
    try:
        return await Budget(timeout_ms).wait(work)
    except SvcError as error:
        path = str((error.details or {}).get("path"))
        # A listed name with a replacement character that is then not found is really a name that is not UTF-8.
        if error.code == "not_found" and "\ufffd" in path:
            raise not_utf8(path) from error
        raise


def not_utf8(path: str) -> SvcError:
    """Paths are sent as text."""
    said = f"{path}: the name is not UTF-8, which cannot be copied; rename it, or copy a tar"
    return SvcError("invalid_request", said, details={"path": path})


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Processes all items, a few at a time. The first failure cancels the others and is raised when all
    of them have ended."""
    rest = iter(items)

    async def process() -> None:
        for item in rest:
            await work(item)

    workers = [asyncio.ensure_future(process()) for _ in range(_CONCURRENCY)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
