"""The time limit of a call."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from .._channel.channel_errors import ChannelError, ExecFailed, FileFailed
from .._error_codes import CODES
from ..errors import SvcError

T = TypeVar("T")

_FIRST_PAUSE_MS = 200.0
_LONGEST_PAUSE_MS = 5000.0
#: A request that a busy server did not read in time: it had no effect.
_NOT_READ = 408


class Budget:
    """`timeout_ms` None: no limit. What is cancelled by the caller is not explained here: Python does."""

    def __init__(self, timeout_ms: float | None) -> None:
        self._timeout_ms = timeout_ms
        self._deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        self._scopes: set[asyncio.Timeout] = set()

    @property
    def remaining_ms(self) -> float:
        if self._deadline is None:
            return float("inf")
        return max(0.0, (self._deadline - time.monotonic()) * 1000)

    async def wait(self, work: Awaitable[T]) -> T:
        """Raises SvcError `timeout`, and for the failures of the channel."""
        left = None if self._deadline is None else self.remaining_ms / 1000
        try:
            async with asyncio.timeout(left) as scope:
                self._scopes.add(scope)
                try:
                    return await work
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._expired() from None
        except (ChannelError, FileFailed, ExecFailed) as error:
            raise to_svc_error(error) from error

    def stop_clock(self) -> None:
        """Removes the time limit for the rest of the work, of waits that are under way too."""
        self._deadline = None
        for scope in self._scopes:
            if not scope.expired():
                scope.reschedule(None)

    async def each(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """Each step of an iteration within the time that is left."""
        try:
            while True:
                # Its own error class, since a coroutine may not raise StopAsyncIteration.
                item = await self.wait(_next_of(items))
                if item is _END:
                    return
                yield item  # type: ignore[misc]
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

    async def pause(self, milliseconds: float) -> None:
        await self.wait(asyncio.sleep(milliseconds / 1000))

    def _expired(self) -> SvcError:
        said = f"The call took longer than the {self._timeout_ms:g} ms that it was given"
        return SvcError("timeout", said, details={"timeout_ms": self._timeout_ms})


_END = object()


async def _next_of(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)


async def with_retries(
    budget: Budget, max_retries: int, attempt: Callable[[], Awaitable[T]]
) -> T:
    """Repeats work after transient failures, with exponential back-off. Only for idempotent work, or
    work with an idempotency key."""
    retries = 0
    while True:
        try:
            return await budget.wait(attempt())
        except SvcError as error:
            pause_ms = error.retry_after_ms
            if pause_ms is None:
                pause_ms = _back_off_ms(retries)
            # A pause beyond the time limit of the call would only replace the error by a timeout.
            if retries >= max_retries or not _may_pass(error) or pause_ms >= budget.remaining_ms:
                raise
        await budget.pause(pause_ms)
        retries += 1


def _may_pass(error: SvcError) -> bool:
    is_transient = CODES.get(error.code, False)
    return error.code == "connection_failed" or error.status == _NOT_READ or is_transient


def _back_off_ms(retries: int) -> float:
    """With jitter, so that clients that failed together do not retry together."""
    longest = min(_LONGEST_PAUSE_MS, _FIRST_PAUSE_MS * 2.0**retries)
    return longest * (0.5 + random.random() / 2)


_CODE_OF_KIND = {
    "closed": "connection_failed",
    "timeout": "timeout",
    "protocol": "internal",
    "refused": "invalid_request",
    "unsupported": "invalid_request",
}


def to_svc_error(error: Exception) -> SvcError:
    """The only error class that callers see."""
    if isinstance(error, SvcError):
        return error
    if isinstance(error, FileFailed):
        return SvcError(error.code, str(error), details={"errno": error.errno_name})
    if isinstance(error, ExecFailed):
        details = {"kind": error.kind, "errno": error.errno_name}
        return SvcError("exec_failed", str(error), details=details)
    if isinstance(error, ChannelError):
        # The cause of a closed connection may be a SvcError: a refusal.
        if isinstance(error.__cause__, SvcError):
            return error.__cause__
        return SvcError(_CODE_OF_KIND[error.kind], str(error))
    return SvcError("connection_failed", str(error))
