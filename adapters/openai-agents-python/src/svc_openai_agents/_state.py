"""What a session is found again by."""

from __future__ import annotations

from typing import Literal

from agents.sandbox.session import SandboxSessionState


class SvcSandboxSessionState(SandboxSessionState):
    type: Literal["svc"] = "svc"
    sandbox_id: str
