"""The one error class of this library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._error_codes import CODES

Details = Mapping[str, Any]


class SvcError(Exception):
    """Every failure. Act on `code`; the message is for people and says what to do.

    Codes are those of the server, and these of the client itself:
    `connection_failed` (no answer came, so whether the call took effect is unknown),
    `timeout` (the time limit of the call is over), and those of `sandbox.git`: `git_missing` (the
    image has no git), `git_authentication_failed` (a remote refused the credentials, or there were
    none), `not_a_repository`, and `git_failed` (another reason; `details["stderr"]` has it).
    """

    code: str
    message: str
    #: Of the HTTP answer; None when there was none.
    status: int | None
    details: Details | None
    #: The id of the request in the log of the server; None when there was no answer.
    request_id: str | None
    #: How long the server asks to wait before the call is repeated.
    retry_after_ms: float | None

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        details: Details | None = None,
        request_id: str | None = None,
        retry_after_ms: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.details = details
        self.request_id = request_id
        self.retry_after_ms = retry_after_ms

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __repr__(self) -> str:
        return f"SvcError({self.code!r}, {self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.code, self.message, dict(self.__dict__))


def _restore(code: str, message: str, fields: dict[str, Any]) -> SvcError:
    error = SvcError(code, message)
    error.__dict__.update(fields)
    return error


def error_of_answer(status: int, headers: Mapping[str, str], text: str) -> SvcError:
    """The error of an answer that is no success. The body may be anything: a proxy may have written it."""
    code, message, details = _read_envelope(text)
    known = code if code in CODES else _code_of_status(status)
    if code is not None and code not in CODES:
        details = {**(details or {}), "code": code}
    return SvcError(
        known,
        message or f"The server answered with status {status}",
        status=status,
        details=details,
        request_id=headers.get("x-request-id"),
        retry_after_ms=_retry_after(headers.get("retry-after")),
    )


def error_of_envelope(envelope: object) -> SvcError:
    """The error of an `error` event, which has the same envelope as an answer."""
    code, message, details = _read_envelope(json.dumps(envelope))
    known = code if code in CODES else "internal"
    return SvcError(
        known, message or "The server met a failure that it did not explain", details=details
    )


def _retry_after(seconds: str | None) -> float | None:
    try:
        return max(0.0, float(seconds)) * 1000 if seconds is not None else None
    except ValueError:
        # A date, which only proxies send: the usual pause is waited for.
        return None


def _read_envelope(text: str) -> tuple[str | None, str | None, Details | None]:
    try:
        error = json.loads(text)["error"]
        code, message, details = error.get("code"), error.get("message"), error.get("details")
    except (ValueError, KeyError, TypeError, AttributeError):
        # The body has no envelope, so the status decides.
        return None, None, None
    known = details if isinstance(details, dict) else None
    said = _with_reason(message, known) if isinstance(message, str) else None
    return code if isinstance(code, str) else None, said, known


def _with_reason(message: str, details: Details | None) -> str:
    """Where the specification gives the server a fixed message, the cause is in the details."""
    reason = (details or {}).get("reason")
    is_fixed = message in ("unauthorized", "orchestrator unreachable")
    return f"{message}: {reason}" if is_fixed and isinstance(reason, str) else message


def _code_of_status(status: int) -> str:
    """For a code that this version does not know, or an answer of a proxy."""
    known = {401: "invalid_api_key", 403: "forbidden", 404: "not_found", 429: "rate_limited"}
    if status in known:
        return known[status]
    if status in (502, 503, 504):
        return "unavailable"
    return "invalid_request" if status < 500 else "internal"
