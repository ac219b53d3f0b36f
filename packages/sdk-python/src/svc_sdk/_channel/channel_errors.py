"""What can go wrong on the command channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: `closed`: the connection ended, so the outcome of calls under way is unknown. `protocol`: the peer
#: broke the protocol. `unsupported`: the peer lacks this.
ChannelErrorKind = Literal["closed", "timeout", "protocol", "refused", "unsupported"]


@dataclass(frozen=True)
class RunOutput:
    """The output of a process until its connection ended."""

    stdout: bytes
    stderr: bytes
    truncated: tuple[str, ...] = field(default=())


class ChannelError(Exception):
    """A call over the channel that failed for a reason of the channel."""

    def __init__(
        self, kind: ChannelErrorKind, message: str, *, output: RunOutput | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        #: Of the process that was being run.
        self.output = output


class ExecFailed(Exception):
    """A process that could not be started."""

    def __init__(self, kind: str, message: str, errno_name: str | None) -> None:
        super().__init__(message)
        self.kind = kind
        self.errno_name = errno_name


class FileFailed(Exception):
    """A file operation that the sandbox answered with an error."""

    def __init__(self, message: str, errno_name: str | None) -> None:
        super().__init__(message)
        self.errno_name = errno_name or _errno_name_in(message)

    @property
    def code(self) -> str:
        return _CODE_OF_ERRNO.get(self.errno_name or "", "invalid_request")


_CODE_OF_ERRNO = {
    "ENOENT": "not_found",
    "ENOTDIR": "not_found",
    "EEXIST": "name_already_exists",
    "EACCES": "forbidden",
    "EPERM": "forbidden",
    "EROFS": "forbidden",
    "ENOSPC": "disk_full",
    "EDQUOT": "disk_full",
    "EFBIG": "payload_too_large",
}

# The protocol has free text only, so agents other than ours are understood by the words of their C library.
_ERRNO_WORDS = (
    ("no such file or directory", "ENOENT"),
    ("not a directory", "ENOTDIR"),
    ("is a directory", "EISDIR"),
    ("file exists", "EEXIST"),
    ("directory not empty", "ENOTEMPTY"),
    ("permission denied", "EACCES"),
    ("operation not permitted", "EPERM"),
    ("no space left on device", "ENOSPC"),
    ("disk quota exceeded", "EDQUOT"),
    ("too many levels of symbolic links", "ELOOP"),
    ("file name too long", "ENAMETOOLONG"),
    ("read-only file system", "EROFS"),
    ("file too large", "EFBIG"),
    ("invalid argument", "EINVAL"),
)


def _errno_name_in(message: str) -> str | None:
    text = message.lower()
    return next((name for words, name in _ERRNO_WORDS if words in text), None)
