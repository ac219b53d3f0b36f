"""What the sandbox of a session is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agents.sandbox.session import BaseSandboxClientOptions
from pydantic import ConfigDict
from svc_sdk import CreateOptions, SecretOption

DEFAULT_IMAGE = "python"
#: By which sandboxes of agents are told from others.
LABELS = {"made-by": "openai-agents"}


class SvcSandboxClientOptions(BaseSandboxClientOptions):
    """The options of `Sandbox.create`; None is the default of the server.

    Secrets are given to the client, because options are written down by the SDK.
    """

    # A misspelt option would be ignored, and the sandbox have other limits.
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["svc"] = "svc"
    image: str = DEFAULT_IMAGE
    #: A snapshot of svc that it begins with, in place of the image.
    snapshot_id: str | None = None
    vcpus: float | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None
    #: Of commands and files, unless the agent has another.
    user: str | None = None
    isolation: str | None = None
    #: As in the REST API.
    network: dict[str, Any] | None = None
    #: Volumes, as in the REST API.
    mounts: list[dict[str, Any]] | None = None
    labels: dict[str, str] | None = None
    idle_timeout_seconds: int | None = None
    max_duration_seconds: int | None = None
    #: Those that `resolve_exposed_port` gives addresses of.
    exposed_ports: tuple[int, ...] = ()

    def create_options(self, secrets: Mapping[str, SecretOption] | None) -> CreateOptions:
        """It is kept when it stops, so that its session can be resumed."""
        return CreateOptions(
            image=self.image if self.snapshot_id is None else None,
            snapshot_id=self.snapshot_id,
            vcpus=self.vcpus,
            memory_mib=self.memory_mib,
            disk_mib=self.disk_mib,
            user=self.user,
            isolation=self.isolation,
            network=self.network,
            mounts=self.mounts,
            labels={**(self.labels or {}), **LABELS},
            idle_timeout_seconds=self.idle_timeout_seconds,
            max_duration_seconds=self.max_duration_seconds,
            is_ephemeral=False,
            secrets=secrets,
        )
