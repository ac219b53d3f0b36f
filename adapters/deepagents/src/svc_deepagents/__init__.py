"""Sandboxes of svc as a backend of deepagents."""

from ._sandbox import SvcSandbox

__all__ = ["SvcSandbox"]
