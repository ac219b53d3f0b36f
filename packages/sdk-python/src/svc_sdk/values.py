"""What calls take and give, of the server's records apart."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ._channel.process import CommandExit as CommandExit
from ._channel.process import shell_code_of
from .records import CodeException as CodeException

#: Called with text as it is printed; a coroutine function is awaited. An error that it raises ends the call and is raised unchanged.
OnText = Callable[[str], object]
#: Called with the number of denials that are not shown, because the log is bounded.
OnCount = Callable[[int], object]


@dataclass(frozen=True)
class ExecResult:
    """How a process ended, and its output."""

    #: -1 when a signal ended the process.
    code: int
    #: Which signal ended it; None when it exited.
    signal: int | None
    #: `oom`: it was killed because the sandbox ran out of memory.
    reason: Literal["exit", "signal", "oom", "max_duration"]
    stdout: bytes
    stderr: bytes
    #: The streams that were cut after their beginning: see `max_output_bytes`.
    truncated: tuple[str, ...] = ()

    @property
    def is_success(self) -> bool:
        """Whether it exited with 0."""
        return self.code == 0

    @property
    def shell_code(self) -> int:
        """As a shell gives it: the code, or 128 + n when signal n ended the process."""
        return shell_code_of(self.code, self.signal)

    def text(self) -> str:
        """stdout as text."""
        return self.stdout.decode("utf-8", "replace")

    def error_text(self) -> str:
        """stderr as text."""
        return self.stderr.decode("utf-8", "replace")

    def _repr_html_(self) -> str:
        parts = [_block(self.text()), _block(self.error_text(), "#b00020")]
        if not self.is_success:
            parts.append(f"<div>exit code {self.code} ({html.escape(self.reason)})</div>")
        return "".join(parts) or "<div>no output</div>"


@dataclass(frozen=True)
class FileInfo:
    """Metadata of a file in a sandbox."""

    path: str
    #: The last part of the path.
    name: str
    kind: Literal["file", "directory", "symlink", "other"]
    size_bytes: int
    #: Permission bits.
    mode: int
    uid: int
    gid: int
    #: To the second.
    modified_at: datetime | None


#: Called after every file of a tree with its path in the sandbox and its size in bytes.
OnFile = Callable[[str, int], object]


@dataclass(frozen=True)
class FileLink:
    """A link for programs and pages that have no key: to read or to write one file, until it ends."""

    url: str = field(repr=False)
    #: `PUT`: the body of the request becomes the file.
    method: Literal["GET", "PUT"]
    #: Absolute, in the sandbox.
    path: str
    expires_at: datetime


@dataclass(frozen=True)
class FileChange:
    """A change below a watched path.

    `renamed`: within the watched path; a move into or out of it is `created` or `removed`.
    `overflow`: changes before this one may be missing, because they came faster than they were read
    or because the connection broke. List again.
    """

    type: Literal["created", "modified", "removed", "attributes", "renamed", "overflow"]
    #: Relative to the watched path, which itself is ''.
    path: str = ""
    #: `file` is anything but a directory; None for an `overflow`.
    kind: Literal["file", "directory"] | None = None
    #: Of a `renamed`: the path before.
    renamed_from: str | None = None


@dataclass(frozen=True)
class DetachedOutput:
    """A piece of output, or a gap where output was dropped because it was not read in time."""

    kind: Literal["data", "dropped"]
    stream: Literal["stdout", "stderr"]
    #: Of the first byte.
    offset: int
    #: Empty for a gap.
    data: bytes
    #: Behind the last byte: read on from here.
    end: int


@dataclass(frozen=True)
class LogEntry:
    #: `output` is the output of terminals; `system` has events of the sandbox.
    source: Literal["stdout", "stderr", "output", "system"]
    #: RFC 3339.
    time: str
    #: As it was written: not always whole lines.
    text: str
    #: Pass it as `after` to continue after this entry.
    cursor: str


@dataclass(frozen=True)
class FetchProgress:
    """The progress of fetching an image."""

    #: The current step, for people.
    message: str
    #: None: this step is not counted.
    done_bytes: int | None
    total_bytes: int | None


#: Called with the progress of a pull.
OnProgress = Callable[[FetchProgress], object]


@dataclass(frozen=True)
class NewApiKey:
    """An API key with its secret, which is shown once."""

    #: To revoke it by.
    id: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class PulledImage:
    """An image that is ready for sandboxes."""

    reference: str
    #: Of its manifest; None when it came from no registry.
    digest: str | None
    #: Unpacked.
    size_bytes: int


@dataclass(frozen=True)
class CodeRunResult:
    """A value that code showed, in all of its forms. Its content comes from the sandbox and is as untrusted."""

    #: By MIME type: text as it is, images and PDF in base64, JSON types as JSON.
    data: Mapping[str, Any]
    metadata: Mapping[str, Any]
    #: The value of a last bare expression; others were shown on the way.
    is_main_result: bool
    #: Something of it is missing.
    is_truncated: bool
    #: The forms that were left out or cut, and why.
    left_out: tuple[Mapping[str, Any], ...]

    @property
    def text(self) -> str | None:
        return self._text_of("text/plain")

    @property
    def html(self) -> str | None:
        return self._text_of("text/html")

    @property
    def markdown(self) -> str | None:
        return self._text_of("text/markdown")

    @property
    def svg(self) -> str | None:
        return self._text_of("image/svg+xml")

    @property
    def png(self) -> bytes | None:
        """Such as a chart."""
        return self.bytes("image/png")

    @property
    def json(self) -> Any:
        return self.data.get("application/json")

    @property
    def table(self) -> Mapping[str, Any] | None:
        """`columns`, `rows`, `row_count` and `truncated` of a data frame."""
        return self.data.get("application/vnd.svc.table+json")

    @property
    def chart(self) -> Mapping[str, Any] | None:
        """What a figure of matplotlib shows, as data: `type`, `title`, `elements`, and what else the type has."""
        form = self.data.get("application/vnd.svc.chart+json")
        # Code may show anything as a chart.
        if not isinstance(form, dict) or not isinstance(form.get("type"), str):
            return None
        return form if isinstance(form.get("elements"), list) else None

    def bytes(self, type: str) -> bytes | None:
        """The content of a form, such as `image/jpeg`, as bytes for a file."""
        form = self.data.get(type)
        if form is None:
            return None
        if not isinstance(form, str):
            return json.dumps(form, ensure_ascii=False).encode()
        return form.encode() if _is_text(type) else base64.b64decode(form)

    def _text_of(self, type: str) -> str | None:
        form = self.data.get(type)
        return form if isinstance(form, str) else None

    def _repr_html_(self) -> str:
        return _show(self)


@dataclass(frozen=True)
class CodeResult:
    """What code did. An exception in it is a result like any other."""

    #: After `timeout` and `interrupted` the state is kept, unless `error` says otherwise.
    status: Literal["success", "error", "timeout", "interrupted"]
    #: stdout, and the value of a last bare expression.
    output: str
    #: stderr, and the traceback; also says when the state was lost.
    error: str
    #: The value of a last bare expression alone, as the interpreter shows it.
    result: str | None
    #: What ended the code.
    exception: CodeException | None
    #: Output, or something of a result, is missing: there was too much of it.
    is_truncated: bool
    #: What the code showed, in its order.
    results: tuple[CodeRunResult, ...] = field(default=())

    @property
    def stderr(self) -> str:
        """The same as `error`, by the name that the output of a process has."""
        return self.error

    @property
    def is_success(self) -> bool:
        return self.status == "success"

    def _repr_html_(self) -> str:
        parts = [_block(self.output), *map(_show, self.results), _block(self.error, "#b00020")]
        return "".join(parts) or f"<div>{html.escape(self.status)}</div>"


#: Called with what code shows, as soon as it does.
OnResult = Callable[[CodeRunResult], object]
#: Called with what ended the code, if an exception did.
OnError = Callable[[CodeException], object]


def _is_text(type: str) -> bool:
    kinds = ("image/", "audio/", "video/", "application/pdf")
    return type == "image/svg+xml" or not type.startswith(kinds)


def _block(text: str, colour: str | None = None) -> str:
    if text == "":
        return ""
    style = f' style="color:{colour}"' if colour else ""
    return f"<pre{style}>{html.escape(text)}</pre>"


def _show(result: CodeRunResult) -> str:
    """SAFETY: markup from the sandbox runs in a frame without rights, never in the notebook itself."""
    for type in ("image/png", "image/jpeg"):
        form = result.data.get(type)
        if isinstance(form, str):
            return f'<img src="data:{type};base64,{html.escape(form)}">'
    markup = result.html or result.svg
    if markup is not None:
        frame = 'sandbox="" style="border:0;width:100%;height:20em"'
        return f'<iframe {frame} srcdoc="{html.escape(markup)}"></iframe>'
    # What a last expression shows as text is in the output already.
    return "" if result.is_main_result else _block(result.text or "")
