"""The signals of Linux that programs are sent."""

from __future__ import annotations

from typing import Literal, Union

from .errors import SvcError

SignalName = Literal[
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGKILL",
    "SIGUSR1",
    "SIGUSR2",
    "SIGTERM",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGWINCH",
]
#: A name, or a number for the others; `signal.SIGTERM` is one.
Signal = Union[SignalName, int]

_NUMBERS = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGUSR2": 12,
    "SIGTERM": 15,
    "SIGCONT": 18,
    "SIGSTOP": 19,
    "SIGTSTP": 20,
    "SIGWINCH": 28,
}
_MAX_SIGNAL = 64


def signal_number(signal: Signal) -> int:
    """Raises `invalid_request`."""
    number = _NUMBERS.get(signal, 0) if isinstance(signal, str) else int(signal)
    if 1 <= number <= _MAX_SIGNAL:
        return number
    raise SvcError(
        "invalid_request", f"There is no signal {signal}", details={"field": "signal"}
    )
