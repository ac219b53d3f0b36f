"""Paged lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any


async def each_item(
    read_page: Callable[[str | None], Awaitable[Any]],
) -> AsyncIterator[Any]:
    """All items; the next page is fetched when it is needed."""
    cursor: str | None = None
    while True:
        page = await read_page(cursor)
        for item in page["data"]:
            yield item
        cursor = page["next_cursor"]
        if cursor is None:
            return
