"""What the sandboxes of a task are made of."""

from __future__ import annotations

from typing import Any

from inspect_ai.util import SandboxEnvironmentConfigType
from pydantic import BaseModel, ConfigDict
from svc_sdk import CreateOptions

DEFAULT_IMAGE = "python"


class SvcConfig(BaseModel):
    """The options of `Sandbox.create`; None is the default of the server."""

    # A misspelt option would be ignored, and the sandbox have other limits.
    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str = DEFAULT_IMAGE
    vcpus: float | None = None
    memory_mib: int | None = None
    disk_mib: int | None = None
    #: Of commands and files, unless a command names another.
    user: str | None = None
    #: Where commands begin and relative paths lead; the home of the user unless given. Made when missing.
    workdir: str | None = None
    env: dict[str, str] | None = None
    isolation: str | None = None
    #: As in the REST API.
    network: dict[str, Any] | None = None
    #: Also of a sample whose evaluation ended without cleaning up.
    max_duration_seconds: int | None = None

    def options(self) -> CreateOptions:
        return CreateOptions(
            image=self.image,
            vcpus=self.vcpus,
            memory_mib=self.memory_mib,
            disk_mib=self.disk_mib,
            user=self.user,
            env=self.env,
            isolation=self.isolation,
            network=self.network,
            max_duration_seconds=self.max_duration_seconds,
            labels=LABELS,
        )


#: By which sandboxes of evaluations are found again.
LABELS = {"made-by": "inspect"}


def read_config(config: SandboxEnvironmentConfigType | None) -> SvcConfig:
    """A text is refused: Inspect has made the path of a file of it."""
    if config is None:
        return SvcConfig()
    if isinstance(config, SvcConfig):
        return config
    said = "The sandbox svc has no configuration files: use SandboxEnvironmentSpec('svc', SvcConfig(...))"
    raise TypeError(said)
