"""How synchronous code uses the asynchronous source: one event loop in a thread of its own.

What the caller hands over (listeners, iterators of content) runs in the caller's thread, while it
waits: a listener may therefore call this library too, and what it raises reaches its caller.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_END: Any = object()
#: How long the end of the program waits for connections to be closed.
_SHUTDOWN_S = 2.0


class _Call:
    """A call under way, whose thread works for it while it waits."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    async def invoke(self, function: Callable[..., Any], *args: Any) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self.work.put(partial(_invoke, loop, done, function, args))
        return await done


def _invoke(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    try:
        result = function(*args)
    except Exception as error:
        # A future takes no StopIteration.
        settle = partial(_settle, done, None, error)
    else:
        settle = partial(_settle, done, result, None)
    loop.call_soon_threadsafe(settle)


def _settle(done: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


_CALL: ContextVar[_Call] = ContextVar("_CALL")


class _Portal:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._main, name="svc-sdk", daemon=True)
        self.thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def shut_down(self) -> None:
        """Ends what is open; called at the end of the program."""
        future = asyncio.run_coroutine_threadsafe(_cancel_all(), self.loop)
        try:
            future.result(_SHUTDOWN_S)
        except TimeoutError:
            # The connections end with the program.
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_SHUTDOWN_S)


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


_lock = threading.Lock()
_portal: _Portal | None = None


def _take_portal() -> _Portal:
    global _portal
    with _lock:
        if _portal is None:
            _portal = _Portal()
        return _portal


def _forget_portal() -> None:
    """In the child of a fork there is no such thread: connections are opened anew."""
    global _portal, _lock
    _portal = None
    _lock = threading.Lock()


def _at_exit() -> None:
    if _portal is not None:
        _portal.shut_down()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_forget_portal)


def run(work: Awaitable[T]) -> T:
    """Waits for the work. An interruption of this thread, such as Ctrl-C, cancels it."""
    portal = _take_portal()
    if threading.current_thread() is portal.thread:
        raise RuntimeError("A synchronous call was made from within asynchronous code of this library")
    call = _Call()
    future = asyncio.run_coroutine_threadsafe(_main(call, work), portal.loop)
    future.add_done_callback(lambda _: call.work.put(None))
    try:
        while (each := call.work.get()) is not None:
            each()
    except BaseException:
        future.cancel()
        raise
    return future.result()


async def _main(call: _Call, work: Awaitable[T]) -> T:
    _CALL.set(call)
    return await work


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Leaving the iteration early ends it."""
    try:
        while (item := run(_next_of(items))) is not _END:
            yield item
    finally:
        run(_close(items))


async def _next_of(items: AsyncIterator[T]) -> T:
    return await anext(items, _END)


async def _close(items: Any) -> None:
    if hasattr(items, "aclose"):
        await items.aclose()


def listener(function: Callable[..., object] | None) -> Any:
    """A function that calls the caller's one in the caller's thread."""
    if function is None:
        return None

    async def invoke(*args: Any) -> None:
        await _CALL.get().invoke(function, *args)

    return invoke


def content(value: Any) -> Any:
    """Content whose pieces are made in the caller's thread."""
    if value is None or isinstance(value, (str, bytes, bytearray, memoryview, AsyncIterable)):
        return value
    return _pieces(value.__iter__()) if isinstance(value, Iterable) and not hasattr(value, "read") else value


async def _pieces(items: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await _CALL.get().invoke(next, items, _END)) is not _END:
        yield piece


def inner(value: Any) -> Any:
    """The asynchronous object behind a synchronous one; anything else as it is."""
    return getattr(value, "_inner", value)
