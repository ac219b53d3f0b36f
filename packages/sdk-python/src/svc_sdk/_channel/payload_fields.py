"""Reads a payload that a hostile sandbox may have made: each function gives a value of the promised
type or raises ChannelError `protocol`."""

from __future__ import annotations

from .channel_errors import ChannelError
from .frame import Message, Payload

#: Longest text that is taken from the sandbox for messages.
_MAX_TEXT = 4096


def read_bytes(payload: Payload, key: str) -> bytes:
    value = payload.get(key)
    if isinstance(value, bytes):
        return value
    raise _wrong(key, "bytes")


def read_text(payload: Payload, key: str) -> str:
    value = payload.get(key)
    if isinstance(value, str):
        return value
    raise _wrong(key, "text")


def read_message(payload: Payload, key: str) -> str:
    """For people to read: cut to a sane length, "" when it is missing."""
    return read_optional_message(payload, key) or ""


def read_optional_message(payload: Payload, key: str) -> str | None:
    value = payload.get(key)
    return value[:_MAX_TEXT] if isinstance(value, str) else None


def read_integer(payload: Payload, key: str) -> int:
    value = payload.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _wrong(key, "an integer")


def read_uint(payload: Payload, key: str) -> int:
    value = read_integer(payload, key)
    if value < 0:
        raise _wrong(key, "not negative")
    return value


def read_optional_integer(payload: Payload, key: str) -> int | None:
    return None if payload.get(key) is None else read_integer(payload, key)


def read_record(value: object, what: str) -> Payload:
    if isinstance(value, dict):
        return value
    raise _wrong(what, "a map")


def read_array(value: object, what: str) -> list[object]:
    if isinstance(value, list):
        return value
    raise _wrong(what, "a list")


def refusal(message: Message) -> ChannelError:
    """What a `core.error` answer means."""
    kind = read_message(message.payload, "kind")
    said = read_message(message.payload, "message")
    return ChannelError("refused", f"The sandbox refused: {said} ({kind})")


def _wrong(key: str, expected: str) -> ChannelError:
    return ChannelError(
        "protocol", f"The sandbox sent an answer whose {key} is not {expected}"
    )
