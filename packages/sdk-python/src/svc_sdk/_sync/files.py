"""Generated from ../_async/files.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Literal
from .._async.files import AsyncFiles
from .._client import portal
from .._client.content import Content
from ..values import FileInfo, FileLink, OnFile
from .file_watch import FileWatch


class Files:
    """Paths are absolute. Failures are `not_found`, `name_already_exists`, `forbidden`, `disk_full` or
    `invalid_request`, with the errno and the path in `details`. Content of any size goes through the
    streams."""

    @classmethod
    def _of(cls, inner: AsyncFiles) -> Files:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncFiles) -> None:
        self._inner = inner

    def read(
        self,
        path: str,
        *,
        max_bytes: int | None = None,
        timeout_ms: float | None = None,
    ) -> bytes:
        """Whole, up to 64 MiB unless told otherwise. Raises `payload_too_large`."""
        return portal.run(self._inner.read(path, max_bytes=max_bytes, timeout_ms=timeout_ms))

    def read_text(
        self,
        path: str,
        *,
        max_bytes: int | None = None,
        timeout_ms: float | None = None,
    ) -> str:
        """As UTF-8."""
        return portal.run(self._inner.read_text(path, max_bytes=max_bytes, timeout_ms=timeout_ms))

    def read_stream(self, path: str, *, timeout_ms: float | None = None) -> Iterator[bytes]:
        """Piece by piece; the sandbox waits for a slow reader."""
        return portal.iterate(self._inner.read_stream(path, timeout_ms=timeout_ms))

    def write(
        self,
        path: str,
        content: Content,
        *,
        mode: int | None = None,
        atomic: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Creates or replaces a file; `mode` is for a new one.

        Readers may see it half written, unless it is `atomic`: then they see the old one until the
        new one is complete, and nothing is left of a failed write. That needs space for both for a
        moment, the owner of a replaced file stays, and a link is replaced itself. What the content
        raises is raised unchanged.
        """
        portal.run(self._inner.write(
            path,
            portal.content(content),
            mode=mode,
            atomic=atomic,
            timeout_ms=timeout_ms,
        ))

    def list(self, path: str, *, timeout_ms: float | None = None) -> tuple[FileInfo, ...]:
        """The children of a directory, by name."""
        return portal.run(self._inner.list(path, timeout_ms=timeout_ms))

    def stat(
        self,
        path: str,
        *,
        follow_symlink: bool = True,
        timeout_ms: float | None = None,
    ) -> FileInfo:
        """Follows links, unless told otherwise."""
        return portal.run(self._inner.stat(path, follow_symlink=follow_symlink, timeout_ms=timeout_ms))

    def exists(self, path: str, *, timeout_ms: float | None = None) -> bool:
        return portal.run(self._inner.exists(path, timeout_ms=timeout_ms))

    def mkdir(
        self,
        path: str,
        *,
        mode: int | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Creates its parents too; an existing directory is no error."""
        portal.run(self._inner.mkdir(path, mode=mode, timeout_ms=timeout_ms))

    def rename(
        self,
        source: str,
        target: str,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Replaces what is there."""
        portal.run(self._inner.rename(source, target, timeout_ms=timeout_ms))

    def copy(
        self,
        source: str,
        target: str,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """A single file."""
        portal.run(self._inner.copy(source, target, timeout_ms=timeout_ms))

    def remove(
        self,
        path: str,
        *,
        recursive: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Directories that are not empty only with `recursive`."""
        portal.run(self._inner.remove(path, recursive=recursive, timeout_ms=timeout_ms))

    def read_link(self, path: str, *, timeout_ms: float | None = None) -> str:
        """The target of a link."""
        return portal.run(self._inner.read_link(path, timeout_ms=timeout_ms))

    def symlink(
        self,
        target: str,
        path: str,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        portal.run(self._inner.symlink(target, path, timeout_ms=timeout_ms))

    def chmod(
        self,
        path: str,
        mode: int,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Permission bits; follows links."""
        portal.run(self._inner.chmod(path, mode, timeout_ms=timeout_ms))

    def upload_tree(
        self,
        local_path: str | PathLike[str],
        remote_path: str,
        *,
        on_file: OnFile | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Copies a file or a folder of this machine with all that is in it: `remote_path` is what it
        becomes in the sandbox.

        Permission bits and links are kept, owners are not; `local_path` itself may be a link, which is
        followed. Existing files are replaced, existing folders are added to and otherwise stay as they
        are. Sockets and devices are left out. `timeout_ms` is for the whole tree. Errors of local files
        are raised as Python raises them; a name that is not UTF-8 is `invalid_request`.
        """
        portal.run(self._inner.upload_tree(
            local_path,
            remote_path,
            on_file=portal.listener(on_file),
            timeout_ms=timeout_ms,
        ))

    def download_tree(
        self,
        remote_path: str,
        local_path: str | PathLike[str],
        *,
        on_file: OnFile | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[str, ...]:
        """Copies a file or a folder of the sandbox with all that is in it to this machine: `local_path`
        is what it becomes here. Returns the links that were left out, as paths in the sandbox.

        Permission bits and links are kept, owners are not; existing folders stay as they are. The sandbox
        is not trusted: nothing is written outside `local_path`, links that would lead out of it are left
        out, and so are set-user-id bits, sockets and devices. Needs a POSIX system. `timeout_ms` is for
        the whole tree; a name that is not UTF-8 is `invalid_request`.
        """
        return portal.run(self._inner.download_tree(
            remote_path,
            local_path,
            on_file=portal.listener(on_file),
            timeout_ms=timeout_ms,
        ))

    def link(
        self,
        path: str,
        *,
        method: Literal['GET', 'PUT'] = 'GET',
        expires_in_secs: int | None = None,
        owner: str | None = None,
        mode: int | None = None,
        parents: bool | None = None,
        timeout_ms: float | None = None,
    ) -> FileLink:
        """A link to read or write this file without a key: for `curl`, and for pages of any origin.

        It ends after `expires_in_secs` (an hour unless given, a week at most), when the credential of
        this client is revoked, and with the sandbox. For a file that is written: `owner` is `user` or
        `user:group`, `mode` its permission bits, and `parents` makes the folders that lead to it.
        """
        return portal.run(self._inner.link(
            path,
            method=method,
            expires_in_secs=expires_in_secs,
            owner=owner,
            mode=mode,
            parents=parents,
            timeout_ms=timeout_ms,
        ))

    def watch(
        self,
        path: str,
        *,
        recursive: bool = False,
        timeout_ms: float | None = None,
    ) -> FileWatch:
        """Returns when the watch is active. `timeout_ms` is for the start only. With `recursive` it
        watches directories below it too, also new ones; symbolic links are not followed."""
        return FileWatch._of(portal.run(self._inner.watch(path, recursive=recursive, timeout_ms=timeout_ms)))
