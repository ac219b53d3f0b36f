"""Failures as Inspect expects them."""

from __future__ import annotations

import errno
import os

from inspect_ai.util import ExecResult, SandboxUnavailableError
from svc_sdk import ExecResult as ProcessResult
from svc_sdk import SvcError

from ._scripts import ERRNO_OF_CODE

_NOT_FOUND = 127
_NOT_STARTED = 126
_UNAVAILABLE = ("connection_failed", "sandbox_not_running", "sandbox_not_found", "unavailable")


def explain_file(ended: ProcessResult, path: str) -> Exception:
    """OSError makes of an errno the class that belongs to it, FileNotFoundError say."""
    number = ERRNO_OF_CODE.get(ended.code)
    if number is None:
        return RuntimeError(f"{path}: {ended.error_text().strip() or f'ended with {ended.code}'}")
    return OSError(number, os.strerror(number), path)


def explain_sandbox(error: SvcError) -> Exception:
    if error.code == "timeout":
        return TimeoutError(error.message)
    if error.code in _UNAVAILABLE:
        return SandboxUnavailableError(str(error))
    return error


def explain_start(error: SvcError, program: str) -> ExecResult[str]:
    """A program that is missing is an answer, as it is in a shell."""
    if error.code == "exec_timeout":
        raise TimeoutError(error.message) from error
    if error.code != "exec_failed":
        raise explain_sandbox(error) from error
    name = (error.details or {}).get("errno")
    if name == "EACCES":
        raise PermissionError(errno.EACCES, error.message, program) from error
    code = _NOT_FOUND if name == "ENOENT" else _NOT_STARTED
    return ExecResult(False, code, "", f"{error.message}\n")
