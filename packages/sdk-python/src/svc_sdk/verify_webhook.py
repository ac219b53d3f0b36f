"""Verifies messages of webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import SvcError

_SECRET_PREFIX = "whsec_"
_VERSION_PREFIX = "v1,"
_DEFAULT_TOLERANCE_SECS = 5 * 60


def verify_webhook(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: str | bytes,
    *,
    tolerance_secs: float = _DEFAULT_TOLERANCE_SECS,
    now: float | None = None,
) -> Mapping[str, Any]:
    """The message, whose `type` is that of its event, or `webhook_test`.

    Verifies that it was signed with the secret (or with one of several, during a rotation) and that it
    is recent, which prevents replays. `body` is the raw body, not a parsed one; `now` is seconds since
    1970 instead of the clock. Raises `forbidden`: answer 4xx and ignore the message.
    """
    known = {name.lower(): value for name, value in headers.items()}
    id = _require(known, "webhook-id")
    timestamp = _require(known, "webhook-timestamp")
    signatures = _require(known, "webhook-signature").split(" ")
    age = _age(timestamp, time.time() if now is None else now)
    if age is None or abs(age) > tolerance_secs:
        raise _refused(f"its time is not within {tolerance_secs:g} s of the clock here")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{id}.{timestamp}.".encode() + content
    for each in [secret] if isinstance(secret, str) else secret:
        wanted = hmac.new(_key_of(each), signed, hashlib.sha256).digest()
        if any(_is_signature(signature, wanted) for signature in signatures):
            # The signature proves that the server wrote it, so it has the documented shape.
            message: Mapping[str, Any] = json.loads(content)
            return message
    raise _refused("no signature of it was made with the secret")


def _age(timestamp: str, now: float) -> float | None:
    is_number = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15
    return now - int(timestamp) if is_number else None


def _is_signature(signature: str, wanted: bytes) -> bool:
    if not signature.startswith(_VERSION_PREFIX):
        return False
    given = _from_base64(signature.removeprefix(_VERSION_PREFIX))
    return given is not None and hmac.compare_digest(given, wanted)


def _key_of(secret: str) -> bytes:
    key = _from_base64(secret.removeprefix(_SECRET_PREFIX))
    if not key:
        said = "the secret of a webhook begins with whsec_, as it was shown"
        raise SvcError("invalid_request", said)
    return key


def _require(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise _refused(f"it has no header {name}")
    return value


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _refused(why: str) -> SvcError:
    return SvcError("forbidden", f"This is no message of the webhook: {why}")
