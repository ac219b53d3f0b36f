"""CBOR as far as the command channel uses it (RFC 8949). What is decoded may come from a hostile sandbox."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

#: Largest number of values in one frame. A hostile frame of 4 MiB could hold four million.
MAX_VALUES = 512 * 1024
MAX_DEPTH = 32

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _SIMPLE = range(8)
_INDEFINITE = 31
_BREAK = 0xFF


class CborError(ValueError):
    """The bytes are not CBOR, or are more than is accepted."""


def encode(value: object) -> bytes:
    out = bytearray()
    _encode(value, out)
    return bytes(out)


def encode_head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes((major << 5 | number,))
    for size, code, form in ((1, 24, ">B"), (2, 25, ">H"), (4, 26, ">I"), (8, 27, ">Q")):
        if number < 1 << 8 * size:
            return bytes((major << 5 | code,)) + struct.pack(form, number)
    raise CborError(f"{number} is too large")


def bytes_head(length: int) -> bytes:
    return encode_head(_BYTES, length)


def _encode(value: object, out: bytearray) -> None:
    if value is None:
        out.append(0xF6)
    elif isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        out += encode_head(_UNSIGNED, value) if value >= 0 else encode_head(_NEGATIVE, -1 - value)
    elif isinstance(value, str):
        data = value.encode("utf-8")
        out += encode_head(_TEXT, len(data)) + data
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out += encode_head(_BYTES, len(value))
        out += value
    elif isinstance(value, Mapping):
        out += encode_head(_MAP, len(value))
        for key, each in value.items():
            _encode(key, out)
            _encode(each, out)
    elif isinstance(value, Sequence):
        out += encode_head(_ARRAY, len(value))
        for each in value:
            _encode(each, out)
    else:
        raise CborError(f"a {type(value).__name__} cannot be sent")


def decode(data: bytes | memoryview) -> object:
    """One item that fills all of the bytes. Raises CborError."""
    reader = _Reader(data)
    try:
        value = reader.item(0)
    except (IndexError, struct.error, UnicodeDecodeError, OverflowError) as error:
        raise CborError(str(error)) from error
    if reader.at != len(reader.data):
        raise CborError("bytes follow the item")
    return value


class _Reader:
    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)
        self.at = 0
        self._values = 0

    def item(self, depth: int) -> object:
        self._values += 1
        if self._values > MAX_VALUES or depth > MAX_DEPTH:
            raise CborError("the item has too many values")
        first = self.data[self.at]
        self.at += 1
        major, short = first >> 5, first & 31
        if major == _SIMPLE:
            return self._simple(short)
        if short == _INDEFINITE and major in (_BYTES, _TEXT, _ARRAY, _MAP):
            return self._indefinite(major, depth)
        return self._definite(major, self._number(short), depth)

    def _definite(self, major: int, number: int, depth: int) -> object:
        if major == _UNSIGNED:
            return number
        if major == _NEGATIVE:
            return -1 - number
        if major == _BYTES:
            return bytes(self._take(number))
        if major == _TEXT:
            return str(self._take(number), "utf-8")
        if major == _ARRAY:
            self._require_values(number)
            return [self.item(depth + 1) for _ in range(number)]
        if major == _MAP:
            self._require_values(2 * number)
            return self._map((self.item(depth + 1), self.item(depth + 1)) for _ in range(number))
        raise CborError("tags are not accepted")

    def _indefinite(self, major: int, depth: int) -> object:
        parts: list[object] = []
        while self.data[self.at] != _BREAK:
            parts.append(self.item(depth + 1))
        self.at += 1
        if major == _ARRAY:
            return parts
        if major == _MAP:
            if len(parts) % 2:
                raise CborError("a key has no value")
            return self._map(zip(parts[::2], parts[1::2], strict=True))
        kind = bytes if major == _BYTES else str
        if not all(isinstance(part, kind) for part in parts):
            raise CborError("a string has parts of another type")
        return kind().join(parts)  # type: ignore[arg-type]

    def _map(self, pairs: object) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:  # type: ignore[attr-defined]
            if not isinstance(key, str) or key in found:
                raise CborError("a key is no text, or occurs twice")
            found[key] = value
        return found

    def _simple(self, short: int) -> object:
        if short in (20, 21):
            return short == 21
        if short in (22, 23):
            return None
        sizes = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}
        if short in sizes:
            form, size = sizes[short]
            number: float = struct.unpack(form, self._take(size))[0]
            return number
        raise CborError("a simple value is not accepted")

    def _number(self, short: int) -> int:
        if short < 24:
            return short
        if short > 27:
            raise CborError("a length is not accepted")
        size = 1 << (short - 24)
        return int.from_bytes(self._take(size), "big")

    def _take(self, length: int) -> memoryview:
        end = self.at + length
        if end > len(self.data):
            raise CborError("the item is cut off")
        part = self.data[self.at : end]
        self.at = end
        return part

    def _require_values(self, count: int) -> None:
        if count > len(self.data) - self.at:
            raise CborError("the item is cut off")
