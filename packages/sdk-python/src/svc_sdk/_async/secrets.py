"""The secrets of an organization, and the SSH keys of a user."""

from __future__ import annotations

from collections.abc import Sequence

from .._client.read_record import read_record
from ..records import Secret, SshKey
from .client import AsyncClient
from .create_request import host_pattern


class AsyncSecrets:
    """Managing secrets needs a user's token: API keys can only use them. `organization` is a slug: that
    of the client unless given."""

    @staticmethod
    async def list(
        *,
        organization: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[Secret, ...]:
        """By name, without their values."""
        used = client or AsyncClient.of_environment()
        found = await used.call(
            "secrets.list", organization=organization, timeout_ms=timeout_ms
        )
        return tuple(read_record(Secret, each) for each in found)

    @staticmethod
    async def set(
        name: str,
        *,
        value: str,
        hosts: Sequence[str],
        authorities: Sequence[str] | None = None,
        organization: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> Secret:
        """Sandboxes that use it have the new value and hosts within seconds. `hosts`: to which the
        value may be sent, `api.example.com` or `*.example.com`. `authorities` (PEM): that sandboxes
        which use it may trust, beside those that the server's host trusts."""
        used = client or AsyncClient.of_environment()
        body: dict[str, object] = {
            "value": value,
            "allowed_hosts": [host_pattern(host) for host in hosts],
        }
        if authorities is not None:
            body["upstream_ca_cert"] = [*authorities]
        data = await used.call(
            "secrets.put",
            params={"name": name},
            body=body,
            organization=organization,
            timeout_ms=timeout_ms,
        )
        return read_record(Secret, data)

    @staticmethod
    async def remove(
        name: str,
        *,
        organization: str | None = None,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Raises `invalid_state_transition` as long as a sandbox refers to it."""
        used = client or AsyncClient.of_environment()
        await used.call(
            "secrets.remove",
            params={"name": name},
            organization=organization,
            timeout_ms=timeout_ms,
        )


class AsyncSshKeys:
    """Public keys that open the sandboxes of the user whose token the client has. API keys belong to
    no user, and have none."""

    @staticmethod
    async def list(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> tuple[SshKey, ...]:
        """Newest first."""
        used = client or AsyncClient.of_environment()
        found = await used.call("sshKeys.list", timeout_ms=timeout_ms)
        return tuple(read_record(SshKey, each) for each in found)

    @staticmethod
    async def add(
        name: str,
        public_key: str,
        *,
        client: AsyncClient | None = None,
        timeout_ms: float | None = None,
    ) -> SshKey:
        """`public_key`: a line of an OpenSSH .pub file."""
        used = client or AsyncClient.of_environment()
        body = {"name": name, "public_key": public_key}
        data = await used.call("sshKeys.create", body=body, timeout_ms=timeout_ms)
        return read_record(SshKey, data)

    @staticmethod
    async def remove(
        id: str, *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> None:
        """Sessions that it opened end within a minute."""
        used = client or AsyncClient.of_environment()
        await used.call("sshKeys.remove", params={"id": id}, timeout_ms=timeout_ms)
