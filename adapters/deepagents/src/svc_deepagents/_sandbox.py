"""The backend: one sandbox, its shell and its files."""

from __future__ import annotations

import posixpath

from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox
from svc_sdk import Sandbox, SvcError

from ._scripts import READ, WRITE, explain

#: Unless the agent asks for another limit of a command.
_DEFAULT_TIMEOUT_SECONDS = 30 * 60
_OUT_OF_TIME = 124
_KILLED_BY_SIGNAL = 128
#: One shell writes both streams into one, in their order.
_SCRIPT = 'exec /bin/sh -c "$1" 2>&1'
_INVALID_PATH = "invalid_path"
_MOST_FILE_BYTES = 64 * 1024 * 1024


class SvcSandbox(BaseSandbox):
    """A running sandbox, for `create_deep_agent(backend=...)`.

    - The image needs `/bin/sh`, and `python3` and GNU grep, which deepagents reads and searches with.
    - The sandbox stays the caller's, who stops or removes it.
    - Files are read and written by the user of the sandbox, with the rights of that user.
    - A command that runs out of time is killed with all that it started, and has exit code 124;
      one that signal n ended has 128+n, as in a shell.
    """

    def __init__(self, sandbox: Sandbox, *, timeout: int = _DEFAULT_TIMEOUT_SECONDS) -> None:
        """`timeout`: seconds that a command may take when the agent sets no limit."""
        self._sandbox = sandbox
        self._timeout = timeout

    @property
    def id(self) -> str:
        return self._sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        seconds = self._timeout if timeout is None else timeout
        try:
            result = self._sandbox.exec(
                "/bin/sh", ["-c", _SCRIPT, "sh", command], timeout_ms=seconds * 1000
            )
        except SvcError as error:
            if error.code != "exec_timeout":
                raise
            said = f"The command took longer than {seconds} s and was killed"
            return ExecuteResponse(output=said, exit_code=_OUT_OF_TIME)
        code = result.code if result.signal is None else _KILLED_BY_SIGNAL + result.signal
        return ExecuteResponse(
            output=result.text(), exit_code=code, truncated=len(result.truncated) > 0
        )

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [
            FileUploadResponse(path=path, error=self._upload(path, content))
            for path, content in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _upload(self, path: str, content: bytes) -> str | None:
        """Why it failed."""
        if not posixpath.isabs(path):
            return _INVALID_PATH
        written = self._sandbox.exec("/bin/sh", ["-c", WRITE, "sh", path], stdin=content)
        return explain(written)

    def _download(self, path: str) -> FileDownloadResponse:
        if not posixpath.isabs(path):
            return FileDownloadResponse(path=path, error=_INVALID_PATH)
        read = self._sandbox.exec(
            "/bin/sh", ["-c", READ, "sh", path], max_output_bytes=_MOST_FILE_BYTES
        )
        if read.truncated:
            said = f"{path} has more than {_MOST_FILE_BYTES} bytes"
            return FileDownloadResponse(path=path, error=said)
        error = explain(read)
        content = read.stdout if error is None else None
        return FileDownloadResponse(path=path, content=content, error=error)
