"""The body of a request that creates a sandbox."""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SvcError


@dataclass(frozen=True)
class SecretOption:
    """A value that a sandbox uses towards certain hosts and never holds: `value`, which the server
    stores encrypted, or the name of a `stored` secret of the organization."""

    #: `api.example.com`, `*.example.com` for it and all below it, or `*`.
    hosts: Sequence[str]
    value: str | None = None
    stored: str | None = None
    #: What processes see; `$SVC_` and the name of the variable unless given.
    placeholder: str | None = None
    #: As in the REST API.
    injection: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"SecretOption(hosts={list(self.hosts)!r})"


_NO_SOURCE = "A sandbox is made from an image or a snapshot: Sandbox.create(image='python')"


def create_request(
    *,
    name: str | None,
    slug: str | None,
    image: str | None,
    snapshot_id: str | None,
    resources: Mapping[str, Any],
    runtime: Mapping[str, Any],
    env: Mapping[str, str] | None,
    labels: Mapping[str, str] | None,
    lifecycle: Mapping[str, Any],
    isolation: str | None,
    mounts: Sequence[Mapping[str, Any]] | None,
    network: Mapping[str, Any] | None,
    secrets: Mapping[str, SecretOption] | None,
    spec: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Raises `invalid_request` without a source."""
    body = {
        "name": name or f"sandbox-{random.token_hex(4)}",
        "slug": slug,
        **_source_of(image, snapshot_id, spec or {}),
        "resources": _given(resources),
        "runtime": _given(runtime),
        "env": [{"key": key, "value": value} for key, value in (env or {}).items()],
        "labels": dict(labels or {}),
        "lifecycle": _given(lifecycle),
        "isolation": isolation,
        "mounts": None if mounts is None else [dict(each) for each in mounts],
        "network": _network_of(network, secrets),
    }
    return {**_given(body), **(spec or {})}


def host_pattern(host: str) -> dict[str, str]:
    if host == "*":
        return {"type": "any"}
    return {"type": "wildcard" if host.startswith("*.") else "exact", "value": host}


def _source_of(
    image: str | None, snapshot_id: str | None, spec: Mapping[str, Any]
) -> dict[str, Any]:
    if snapshot_id is not None:
        reference = {"type": "managed", "id": snapshot_id}
        return {"source": "disk_snapshot", "disk_snapshot_ref": reference}
    if image is not None:
        return {"image": {"type": "oci", "reference": image}}
    if "image" not in spec and "source" not in spec:
        raise SvcError("invalid_request", _NO_SOURCE, details={"field": "image"})
    return {}


def _network_of(
    network: Mapping[str, Any] | None, secrets: Mapping[str, SecretOption] | None
) -> dict[str, Any] | None:
    if secrets is None:
        return None if network is None else dict(network)
    entries = [_secret_entry(name, secret) for name, secret in secrets.items()]
    given = (network or {}).get("secrets") or {}
    whole = dict(given) if isinstance(given, Mapping) else {"entries": list(given)}
    whole["entries"] = [*whole.get("entries", []), *entries]
    return {**(network or {}), "secrets": whole}


def _secret_entry(name: str, secret: SecretOption) -> dict[str, Any]:
    stored = None if secret.stored is None else {"type": "store", "reference": secret.stored}
    entry = {
        "env_var": name,
        "placeholder": secret.placeholder,
        "allowed_hosts": [host_pattern(host) for host in secret.hosts],
        "value": secret.value,
        "source": stored,
        "injection": None if secret.injection is None else dict(secret.injection),
    }
    return _given(entry)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """To the server null has a meaning of its own."""
    return {name: value for name, value in fields.items() if value is not None}
