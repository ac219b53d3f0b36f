"""Generated from ../_async/volume.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Literal
from .._async.volume import AsyncVolume
from .._async.volume import AsyncVolumeFiles
from .._client import portal
from .._client.content import Content
from ..records import VolumeFileInfo, VolumeInfo, VolumeMetrics
from .client import Client


class VolumeFiles:
    """Files of a volume. Paths are relative to it; the empty path is the volume itself."""

    @classmethod
    def _of(cls, inner: AsyncVolumeFiles) -> VolumeFiles:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncVolumeFiles) -> None:
        self._inner = inner

    def list(self, path: str = '', *, timeout_ms: float | None = None) -> tuple[VolumeFileInfo, ...]:
        """The direct children of a folder."""
        return portal.run(self._inner.list(path, timeout_ms=timeout_ms))

    def stat(self, path: str, *, timeout_ms: float | None = None) -> VolumeFileInfo:
        return portal.run(self._inner.stat(path, timeout_ms=timeout_ms))

    def exists(self, path: str, *, timeout_ms: float | None = None) -> bool:
        return portal.run(self._inner.exists(path, timeout_ms=timeout_ms))

    def read(self, path: str, *, timeout_ms: float | None = None) -> bytes:
        """Whole, into memory."""
        return portal.run(self._inner.read(path, timeout_ms=timeout_ms))

    def read_text(self, path: str, *, timeout_ms: float | None = None) -> str:
        """As UTF-8."""
        return portal.run(self._inner.read_text(path, timeout_ms=timeout_ms))

    def read_stream(self, path: str, *, timeout_ms: float | None = None) -> Iterator[bytes]:
        """Piece by piece; the server waits for a slow reader. The time limit applies until the first byte."""
        return portal.iterate(self._inner.read_stream(path, timeout_ms=timeout_ms))

    def write(
        self,
        path: str,
        content: Content,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Readers see the old file until the new one is complete. Content that comes piece by piece is
        sent once: when the connection breaks, the caller has to begin again."""
        portal.run(self._inner.write(path, portal.content(content), timeout_ms=timeout_ms))

    def mkdir(self, path: str, *, timeout_ms: float | None = None) -> None:
        """With the folders that lead to it."""
        portal.run(self._inner.mkdir(path, timeout_ms=timeout_ms))

    def copy(
        self,
        source: str,
        target: str,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Files and folders."""
        portal.run(self._inner.copy(source, target, timeout_ms=timeout_ms))

    def rename(
        self,
        source: str,
        target: str,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        portal.run(self._inner.rename(source, target, timeout_ms=timeout_ms))

    def remove(
        self,
        path: str,
        *,
        recursive: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Folders that are not empty only with `recursive`."""
        portal.run(self._inner.remove(path, recursive=recursive, timeout_ms=timeout_ms))


class Volume:
    """Its files can be reached with no sandbox at all."""

    client: Client
    files: VolumeFiles

    @classmethod
    def _of(cls, inner: AsyncVolume) -> Volume:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncVolume) -> None:
        self._inner = inner
        self.client = Client._of(inner.client)
        self.files = VolumeFiles._of(inner.files)

    @staticmethod
    def create(
        name: str,
        *,
        capacity_gib: int | None = None,
        labels: Mapping[str, str] | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Volume:
        """The name has lowercase letters, digits and single hyphens between them; `capacity_gib`
        limits the size of its files. Raises `name_already_exists` or `quota_exceeded`."""
        return Volume._of(portal.run(AsyncVolume.create(
            name,
            capacity_gib=capacity_gib,
            labels=labels,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        )))

    @staticmethod
    def list(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[Volume, ...]:
        """All of the organization, its host volume included."""
        return tuple(Volume._of(each) for each in portal.run(AsyncVolume.list(client=portal.inner(client), timeout_ms=timeout_ms)))

    @staticmethod
    def get(
        name_or_id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Volume:
        """Raises `volume_not_found`."""
        return Volume._of(portal.run(AsyncVolume.get(
            name_or_id,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        )))

    @staticmethod
    def get_default(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Volume:
        """The host volume of the organization: where bind mounts and disk images are."""
        return Volume._of(portal.run(AsyncVolume.get_default(client=portal.inner(client), timeout_ms=timeout_ms)))

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def name(self) -> str | None:
        """None: the host volume."""
        return self._inner.name

    @property
    def info(self) -> VolumeInfo:
        """The record of the server as of the last call."""
        return self._inner.info

    def refresh(self, *, timeout_ms: float | None = None) -> VolumeInfo:
        """Fetches the record from the server."""
        return portal.run(self._inner.refresh(timeout_ms=timeout_ms))

    def update(
        self,
        *,
        capacity_gib: int | None | Literal['unchanged'] = 'unchanged',
        labels: Mapping[str, str] | Literal['unchanged'] = 'unchanged',
        timeout_ms: float | None = None,
    ) -> None:
        """`capacity_gib` None: no cap of its own. `labels` replaces all of them."""
        portal.run(self._inner.update(
            capacity_gib=capacity_gib,
            labels=labels,
            timeout_ms=timeout_ms,
        ))

    def remove(self, *, timeout_ms: float | None = None) -> None:
        """With all its files. Raises `volume_in_use`."""
        portal.run(self._inner.remove(timeout_ms=timeout_ms))

    def metrics(
        self,
        *,
        range_seconds: int | None = None,
        step_seconds: int | None = None,
        timeout_ms: float | None = None,
    ) -> VolumeMetrics:
        """Its usage over time."""
        return portal.run(self._inner.metrics(
            range_seconds=range_seconds,
            step_seconds=step_seconds,
            timeout_ms=timeout_ms,
        ))
