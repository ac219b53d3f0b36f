"""Reads a stream of events to its end, over as many connections as it takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ..errors import SvcError
from .budget import Budget, with_retries
from .server_events import StreamEvent

#: Keeps a stream that repeatedly ends without an `end` event from becoming a busy loop.
_RECONNECT_MS = 100.0
#: In addition to the retries of each call: enough for a restart of the server.
_MAX_RECONNECTS = 12


async def follow_events(
    budget: Budget, open: Callable[[str | None], Awaitable[AsyncIterator[StreamEvent]]]
) -> AsyncIterator[StreamEvent]:
    """Up to and including its `end`. When the connection breaks, it is opened again after the last
    event that was received."""
    last_id: str | None = None
    while True:
        after = last_id
        events = budget.each(await with_retries(budget, _MAX_RECONNECTS, lambda: open(after)))
        try:
            async for event in events:
                last_id = event.id or last_id
                yield event
                if event.event == "end":
                    return
        except SvcError as error:
            # Every failure but a broken connection is raised.
            if error.code != "connection_failed":
                raise
        finally:
            await events.aclose()  # type: ignore[attr-defined]
        await budget.pause(_RECONNECT_MS)
