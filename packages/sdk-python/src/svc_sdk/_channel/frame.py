"""Frames of the command channel: `length | id | flags | CBOR {v, t, p}`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from . import cbor
from .channel_errors import ChannelError

#: The protocol generation that this library speaks.
GENERATION = 7
#: Largest value of the length word: id, flags and body.
MAX_FRAME_BYTES = 4 * 1024 * 1024
_MIN_FRAME_BYTES = 5
_HEAD = struct.Struct(">IIB")

TERMINAL = 1
_SESSION_START = 2
_STARTS = frozenset(
    ("core.exec.request", "core.fs.request", "core.tcp.connect", "svc.watch.start")
)

Payload = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    flags: int
    generation: int
    type: str
    payload: Payload


def encode_message(id: int, type: str, payload: Payload) -> bytes:
    """Raises ValueError when the frame would be too large."""
    content = cbor.encode(payload)
    prefix = (
        b"\xa3\x61v"
        + bytes((GENERATION,))
        + b"\x61t"
        + cbor.encode(type)
        + b"\x61p"
        + cbor.bytes_head(len(content))
    )
    length = _MIN_FRAME_BYTES + len(prefix) + len(content)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame holds at most {MAX_FRAME_BYTES} bytes, this one has {length}")
    flags = _SESSION_START if type in _STARTS else 0
    return _HEAD.pack(length, id, flags) + prefix + content


def read_head(frame: bytes) -> tuple[int, int]:
    """Id and flags of a whole frame."""
    _, id, flags = _HEAD.unpack_from(frame)
    return id, flags


def decode_message(frame: bytes) -> Message:
    """Raises ChannelError `protocol`."""
    id, flags = read_head(frame)
    try:
        envelope = cbor.decode(memoryview(frame)[_HEAD.size :])
        if not isinstance(envelope, dict):
            raise cbor.CborError("the body is no map")
        generation, kind, content = envelope.get("v"), envelope.get("t"), envelope.get("p")
        if not isinstance(generation, int) or not isinstance(kind, str) or not isinstance(content, bytes):
            raise cbor.CborError("the body is not an envelope {v, t, p}")
        payload = cbor.decode(content)
        if not isinstance(payload, dict):
            raise cbor.CborError("the payload is no map")
    except cbor.CborError as error:
        raise ChannelError("protocol", "The sandbox sent bytes that are no frame") from error
    return Message(id, flags, generation, kind, payload)


class FrameSplitter:
    """Cuts a stream of bytes into frames. Holds at most one frame that is not complete."""

    def __init__(self) -> None:
        self._held = bytearray()

    def push(self, data: bytes) -> Iterator[bytes]:
        """Raises ChannelError `protocol` for a length that no frame has."""
        held = self._held
        held += data
        start = 0
        try:
            while len(held) - start >= 4:
                length = int.from_bytes(held[start : start + 4], "big")
                if not _MIN_FRAME_BYTES <= length <= MAX_FRAME_BYTES:
                    raise ChannelError("protocol", "The sandbox sent bytes that are no frame")
                end = start + 4 + length
                if len(held) < end:
                    break
                frame = bytes(held[start:end])
                start = end
                yield frame
        finally:
            del held[:start]
