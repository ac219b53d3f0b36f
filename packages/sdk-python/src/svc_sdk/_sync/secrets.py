"""Generated from ../_async/secrets.py by `make generate`."""

from __future__ import annotations

from collections.abc import Sequence
from .._async.secrets import AsyncSecrets
from .._async.secrets import AsyncSshKeys
from .._client import portal
from ..records import Secret, SshKey
from .client import Client


class Secrets:
    """Managing secrets needs a user's token: API keys can only use them. `organization` is a slug: that
    of the client unless given."""

    @staticmethod
    def list(
        *,
        organization: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[Secret, ...]:
        """By name, without their values."""
        return portal.run(AsyncSecrets.list(
            organization=organization,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def set(
        name: str,
        *,
        value: str,
        hosts: Sequence[str],
        authorities: Sequence[str] | None = None,
        organization: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Secret:
        """Sandboxes that use it have the new value and hosts within seconds. `hosts`: to which the
        value may be sent, `api.example.com` or `*.example.com`. `authorities` (PEM): that sandboxes
        which use it may trust, beside those that the server's host trusts."""
        return portal.run(AsyncSecrets.set(
            name,
            value=value,
            hosts=hosts,
            authorities=authorities,
            organization=organization,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def remove(
        name: str,
        *,
        organization: str | None = None,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Raises `invalid_state_transition` as long as a sandbox refers to it."""
        portal.run(AsyncSecrets.remove(
            name,
            organization=organization,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))


class SshKeys:
    """Public keys that open the sandboxes of the user whose token the client has. API keys belong to
    no user, and have none."""

    @staticmethod
    def list(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[SshKey, ...]:
        """Newest first."""
        return portal.run(AsyncSshKeys.list(client=portal.inner(client), timeout_ms=timeout_ms))

    @staticmethod
    def add(
        name: str,
        public_key: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> SshKey:
        """`public_key`: a line of an OpenSSH .pub file."""
        return portal.run(AsyncSshKeys.add(
            name,
            public_key,
            client=portal.inner(client),
            timeout_ms=timeout_ms,
        ))

    @staticmethod
    def remove(
        id: str,
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Sessions that it opened end within a minute."""
        portal.run(AsyncSshKeys.remove(id, client=portal.inner(client), timeout_ms=timeout_ms))
