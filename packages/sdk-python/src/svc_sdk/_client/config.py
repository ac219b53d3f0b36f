"""The server settings of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Environment:
    api_url: str | None
    api_key: str | None
    organization: str | None


def read_environment() -> Environment:
    """An empty variable counts as absent. The second name of the address is its older one."""
    read = os.environ.get
    return Environment(
        api_url=read("SVC_API_URL") or read("SVC_SERVER_URL") or None,
        api_key=read("SVC_API_KEY") or None,
        organization=read("SVC_ORG") or None,
    )
