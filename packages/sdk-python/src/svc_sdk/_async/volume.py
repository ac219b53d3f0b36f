"""Storage that outlives sandboxes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Literal

from .._client.content import Content
from .._client.read_record import read_record
from ..errors import SvcError
from ..records import VolumeFileInfo, VolumeInfo, VolumeMetrics
from .client import AsyncClient


class AsyncVolumeFiles:
    """Files of a volume. Paths are relative to it; the empty path is the volume itself."""

    def __init__(self, client: AsyncClient, volume_id: str) -> None:
        self._client = client
        self._params = {"id": volume_id}

    async def list(
        self, path: str = "", *, timeout_ms: float | None = None
    ) -> tuple[VolumeFileInfo, ...]:
        """The direct children of a folder."""
        found = await self._client.call(
            "volumeFiles.list", params=self._params, headers=_at(path), timeout_ms=timeout_ms
        )
        return tuple(read_record(VolumeFileInfo, each) for each in found["entries"])

    async def stat(self, path: str, *, timeout_ms: float | None = None) -> VolumeFileInfo:
        found = await self._client.call(
            "volumeFiles.stat", params=self._params, headers=_at(path), timeout_ms=timeout_ms
        )
        return read_record(VolumeFileInfo, found["metadata"])

    async def exists(self, path: str, *, timeout_ms: float | None = None) -> bool:
        found = await self._client.call(
            "volumeFiles.exists", params=self._params, headers=_at(path), timeout_ms=timeout_ms
        )
        return bool(found["exists"])

    async def read(self, path: str, *, timeout_ms: float | None = None) -> bytes:
        """Whole, into memory."""
        chunks = self.read_stream(path, timeout_ms=timeout_ms)
        return b"".join([chunk async for chunk in chunks])

    async def read_text(self, path: str, *, timeout_ms: float | None = None) -> str:
        """As UTF-8."""
        return (await self.read(path, timeout_ms=timeout_ms)).decode("utf-8", "replace")

    async def read_stream(
        self, path: str, *, timeout_ms: float | None = None
    ) -> AsyncIterator[bytes]:
        """Piece by piece; the server waits for a slow reader. The time limit applies until the first byte."""
        chunks = await self._client.download(
            "volumeFiles.read", params=self._params, headers=_at(path), timeout_ms=timeout_ms
        )
        async for chunk in chunks:
            yield chunk

    async def write(
        self, path: str, content: Content, *, timeout_ms: float | None = None
    ) -> None:
        """Readers see the old file until the new one is complete. Content that comes piece by piece is
        sent once: when the connection breaks, the caller has to begin again."""
        await self._client.call(
            "volumeFiles.write",
            params=self._params,
            headers=_at(path),
            body=content,
            timeout_ms=timeout_ms,
        )

    async def mkdir(self, path: str, *, timeout_ms: float | None = None) -> None:
        """With the folders that lead to it."""
        await self._change("volumeFiles.mkdir", {"path": path}, timeout_ms)

    async def copy(self, source: str, target: str, *, timeout_ms: float | None = None) -> None:
        """Files and folders."""
        await self._change("volumeFiles.copy", {"from": source, "to": target}, timeout_ms)

    async def rename(self, source: str, target: str, *, timeout_ms: float | None = None) -> None:
        await self._change("volumeFiles.rename", {"from": source, "to": target}, timeout_ms)

    async def remove(
        self, path: str, *, recursive: bool = False, timeout_ms: float | None = None
    ) -> None:
        """Folders that are not empty only with `recursive`."""
        headers = {**_at(path), "x-svc-file-recursive": "true" if recursive else "false"}
        await self._client.call(
            "volumeFiles.remove", params=self._params, headers=headers, timeout_ms=timeout_ms
        )

    async def _change(self, name: str, body: Mapping[str, str], timeout_ms: float | None) -> None:
        await self._client.call(name, params=self._params, body=body, timeout_ms=timeout_ms)


class AsyncVolume:
    """Its files can be reached with no sandbox at all."""

    client: AsyncClient
    files: AsyncVolumeFiles

    def __init__(self, client: AsyncClient, info: VolumeInfo) -> None:
        self.client = client
        self._info = info
        self.files = AsyncVolumeFiles(client, info.id)

    @staticmethod
    async def create(
        name: str,
        *,
        capacity_gib: int | None = None,
        labels: Mapping[str, str] | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> AsyncVolume:
        """The name has lowercase letters, digits and single hyphens between them; `capacity_gib`
        limits the size of its files. Raises `name_already_exists` or `quota_exceeded`."""
        used = client or AsyncClient.of_environment()
        given = {
            "name": name,
            "capacity_gib": capacity_gib,
            "labels": None if labels is None else dict(labels),
        }
        body = {key: value for key, value in given.items() if value is not None}
        data = await used.call("volumes.create", body=body, timeout_ms=timeout_ms)
        return AsyncVolume(used, read_record(VolumeInfo, data))

    @staticmethod
    async def list(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> tuple[AsyncVolume, ...]:
        """All of the organization, its host volume included."""
        used = client or AsyncClient.of_environment()
        found = await used.call("volumes.list", timeout_ms=timeout_ms)
        return tuple(AsyncVolume(used, read_record(VolumeInfo, each)) for each in found)

    @staticmethod
    async def get(
        name_or_id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AsyncVolume:
        """Raises `volume_not_found`."""
        for each in await AsyncVolume.list(client=client, timeout_ms=timeout_ms):
            if name_or_id in (each.name, each.id):
                return each
        said = f"There is no volume '{name_or_id}'"
        raise SvcError("volume_not_found", said, details={"name_or_id": name_or_id})

    @staticmethod
    async def get_default(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AsyncVolume:
        """The host volume of the organization: where bind mounts and disk images are."""
        used = client or AsyncClient.of_environment()
        data = await used.call("volumes.getDefault", timeout_ms=timeout_ms)
        return AsyncVolume(used, read_record(VolumeInfo, data))

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def name(self) -> str | None:
        """None: the host volume."""
        return self._info.name

    @property
    def info(self) -> VolumeInfo:
        """The record of the server as of the last call."""
        return self._info

    async def refresh(self, *, timeout_ms: float | None = None) -> VolumeInfo:
        """Fetches the record from the server."""
        params = {"id": self.id}
        data = await self.client.call("volumes.get", params=params, timeout_ms=timeout_ms)
        self._info = read_record(VolumeInfo, data)
        return self._info

    async def update(
        self,
        *,
        capacity_gib: int | None | Literal["unchanged"] = "unchanged",
        labels: Mapping[str, str] | Literal["unchanged"] = "unchanged",
        timeout_ms: float | None = None,
    ) -> None:
        """`capacity_gib` None: no cap of its own. `labels` replaces all of them."""
        given = {"capacity_gib": capacity_gib, "labels": labels}
        body = {key: value for key, value in given.items() if value != "unchanged"}
        params = {"id": self.id}
        data = await self.client.call(
            "volumes.update", params=params, body=body, timeout_ms=timeout_ms
        )
        self._info = read_record(VolumeInfo, data)

    async def remove(self, *, timeout_ms: float | None = None) -> None:
        """With all its files. Raises `volume_in_use`."""
        await self.client.call("volumes.remove", params={"id": self.id}, timeout_ms=timeout_ms)

    async def metrics(
        self,
        *,
        range_seconds: int | None = None,
        step_seconds: int | None = None,
        timeout_ms: float | None = None,
    ) -> VolumeMetrics:
        """Its usage over time."""
        query = {"range_secs": range_seconds, "step_secs": step_seconds}
        data = await self.client.call(
            "volumes.metrics", params={"id": self.id}, query=query, timeout_ms=timeout_ms
        )
        return read_record(VolumeMetrics, data)


def _at(path: str) -> dict[str, str]:
    """A header holds ASCII only."""
    text = base64.urlsafe_b64encode(path.encode()).decode().rstrip("=")
    return {"x-svc-file-path": text}
