"""The options of a new sandbox."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from .create_request import SecretOption, create_request


class CreateOptions(TypedDict, total=False):
    """Fields of the REST API that have no option here go into `spec`."""

    #: A random one unless given; a sandbox without a name is ephemeral unless told otherwise.
    name: str | None
    #: Unique on the server; made from the name unless given.
    slug: str | None
    #: Reference of an OCI image. Needed unless it is made from a snapshot.
    image: str | None
    #: Id of a snapshot whose disk it begins with.
    snapshot_id: str | None
    #: Limits, not reservations: 1 and 512 MiB unless given.
    vcpus: float | None
    memory_mib: int | None
    disk_mib: int | None
    env: Mapping[str, str] | None
    labels: Mapping[str, str] | None
    workdir: str | None
    user: str | None
    shell: str | None
    #: It is removed when it stops.
    is_ephemeral: bool | None
    #: It stops after this long without activity.
    idle_timeout_seconds: int | None
    max_duration_seconds: int | None
    isolation: str | None
    mounts: Sequence[Mapping[str, Any]] | None
    network: Mapping[str, Any] | None
    #: Keyed by the variable that holds the placeholder inside.
    secrets: Mapping[str, SecretOption] | None
    #: Anything else of the body of `POST /v1/sandboxes`; wins over the fields above.
    spec: Mapping[str, Any] | None
    #: False: it is created and not started.
    start: bool
    #: For calls that may be repeated, after a crash say: the same options under the same key give one
    #: sandbox, and the second call waits for the start that the first began. A random one unless given.
    idempotency_key: str | None


def body_of(options: CreateOptions) -> dict[str, Any]:
    """The body of the request. Raises TypeError for an option that is not known."""
    _require_known(options)
    name = options.get("name")
    is_ephemeral = options.get("is_ephemeral")
    return create_request(
        name=name,
        slug=options.get("slug"),
        image=options.get("image"),
        snapshot_id=options.get("snapshot_id"),
        resources={
            "vcpus": options.get("vcpus"),
            "memory_mib": options.get("memory_mib"),
            "disk_size_mib": options.get("disk_mib"),
        },
        runtime={"workdir": options.get("workdir"), "user": options.get("user"), "shell": options.get("shell")},
        env=options.get("env"),
        labels=options.get("labels"),
        lifecycle={
            "ephemeral": name is None if is_ephemeral is None else is_ephemeral,
            "idle_timeout_secs": options.get("idle_timeout_seconds"),
            "max_duration_secs": options.get("max_duration_seconds"),
        },
        isolation=options.get("isolation"),
        mounts=options.get("mounts"),
        network=options.get("network"),
        secrets=options.get("secrets"),
        spec=options.get("spec"),
    )


def _require_known(options: Mapping[str, object]) -> None:
    """A misspelt option would be ignored, and the sandbox have other limits."""
    known = CreateOptions.__annotations__
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
            raise TypeError(f"There is no option '{name}' here; {hint}")
