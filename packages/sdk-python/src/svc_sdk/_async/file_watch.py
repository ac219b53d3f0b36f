"""The changes of a file or directory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Literal

from .._channel.channel_errors import ChannelError
from .._channel.watch import ChannelWatch
from .._client.budget import Budget, to_svc_error, with_retries
from ..errors import SvcError
from ..values import FileChange
from .shared_channel import Channel, SharedChannel

#: Enough for a restart of the server.
_MAX_RECONNECTS = 6


class AsyncFileWatch:
    """The changes from now on, over a connection of their own; iterate once. The iteration ends after
    `close`, and when what is watched was removed, moved or unmounted, which a `removed` of '' says.
    When the connection breaks it is opened again, and an `overflow` says so."""

    def __init__(self, shared: SharedChannel, path: str, recursive: bool) -> None:
        self._shared = shared
        self._asked = path
        self._recursive = recursive
        self._path = path
        self._channel: Channel | None = None
        self._watch: ChannelWatch | None = None
        self._is_closed = False

    @classmethod
    async def _start(
        cls, shared: SharedChannel, path: str, recursive: bool, timeout_ms: float | None
    ) -> AsyncFileWatch:
        watch = cls(shared, path, recursive)
        await Budget(timeout_ms).wait(watch._open())
        return watch

    @property
    def path(self) -> str:
        """The watched path, with symbolic links resolved."""
        return self._path

    async def changes(self) -> AsyncIterator[FileChange]:
        """As they happen. A program that reads a file because of one finds it as it is by then."""
        try:
            while self._watch is not None:
                try:
                    async for change in self._watch.changes():
                        yield change
                    return
                except (ChannelError, SvcError) as error:
                    known = to_svc_error(error)
                    if self._is_closed:
                        return
                    # Every failure but a broken connection is raised.
                    if known.code != "connection_failed":
                        raise known from error
                await with_retries(Budget(None), _MAX_RECONNECTS, self._open)
                yield FileChange("overflow")
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends the iteration at once; changes that have arrived already are dropped."""
        self._is_closed = True
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.connection.closed()

    async def __aenter__(self) -> AsyncFileWatch:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        await self.close()
        return False

    async def _open(self) -> None:
        channel = await self._shared.open_own()
        try:
            watch = ChannelWatch(channel.connection, channel.agent)
            self._path = await watch.start(self._asked, self._recursive)
        except BaseException:
            channel.close()
            raise
        self._channel, self._watch = channel, watch
