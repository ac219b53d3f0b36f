"""Network policies of Harbor as svc has them."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from harbor.models.task.config import NetworkMode, NetworkPolicy


def to_policy(policy: NetworkPolicy) -> dict[str, Any] | None:
    """None: what sandboxes without a policy reach, which is every public address."""
    if policy.network_mode == NetworkMode.PUBLIC:
        return None
    rules = [
        {"direction": "egress", "action": "allow", "destination": _destination(host)}
        for host in policy.allowed_hosts
    ]
    return {"default_egress": "deny", "rules": rules}


def _destination(host: str) -> dict[str, str]:
    try:
        return {"cidr": str(ip_network(host))}
    except ValueError:
        pass
    return {"domain_suffix": host[2:]} if host.startswith("*.") else {"domain": host}
