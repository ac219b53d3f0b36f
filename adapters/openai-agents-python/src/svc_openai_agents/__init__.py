"""Sandboxes of svc for agents of the OpenAI Agents SDK."""

from ._client import SvcSandboxClient
from ._options import SvcSandboxClientOptions
from ._session import SvcSandboxSession
from ._state import SvcSandboxSessionState

__all__ = [
    "SvcSandboxClient",
    "SvcSandboxClientOptions",
    "SvcSandboxSession",
    "SvcSandboxSessionState",
]
