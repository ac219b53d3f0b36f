"""Sandboxes of svc for Inspect AI, under the name `svc`."""

from ._config import SvcConfig
from ._environment import SvcSandboxEnvironment

__all__ = ["SvcConfig", "SvcSandboxEnvironment"]
