"""Makes the dataclass of a record that the server sent."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


def read_record(kind: type[R], data: Any) -> R:
    """Fields that this version does not know are left out, those that an older server lacks are None."""
    readers = _readers_of(kind)  # type: ignore[arg-type]
    return kind(**{name: reader(data.get(name)) for name, reader in readers})


@functools.cache
def _readers_of(kind: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return tuple((field.name, _reader_of(hints[field.name])) for field in fields)


def _reader_of(hint: Any) -> Callable[[Any], Any]:
    if dataclasses.is_dataclass(hint):
        return lambda data: None if data is None else read_record(hint, data)  # type: ignore[arg-type]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        each = _reader_of(arguments[0])
        return lambda data: None if data is None else tuple(map(each, data))
    if origin in (typing.Union, types.UnionType):
        some = [argument for argument in arguments if argument is not type(None)]
        if len(some) == 1:
            return _reader_of(some[0])
    return _as_it_is


def _as_it_is(data: Any) -> Any:
    return data
