"""Calls the functions that callers hand over."""

from __future__ import annotations

import inspect
from typing import Any


async def report(listener: Any, *values: object) -> None:
    """A coroutine function is awaited."""
    said = None if listener is None else listener(*values)
    if inspect.isawaitable(said):
        await said
