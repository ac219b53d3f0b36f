"""Generated from ../_async/organization.py by `make generate`."""

from __future__ import annotations

from collections.abc import Iterator
from .._async.organization import AsyncOrganization
from .._client import portal
from ..records import ApiKey, Member, OrganizationInfo
from ..values import NewApiKey
from .client import Client


class Organization:
    """Changes need a user's token: API keys cannot create API keys."""

    client: Client

    @classmethod
    def _of(cls, inner: AsyncOrganization) -> Organization:
        made = cls.__new__(cls)
        made._attach(inner)
        return made

    def _attach(self, inner: AsyncOrganization) -> None:
        self._inner = inner
        self.client = Client._of(inner.client)

    @staticmethod
    def me(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> Organization:
        """The organization that the client acts in."""
        return Organization._of(portal.run(AsyncOrganization.me(client=portal.inner(client), timeout_ms=timeout_ms)))

    @staticmethod
    def list(
        *,
        client: Client | None = None,
        timeout_ms: float | None = None,
    ) -> tuple[Organization, ...]:
        """All that the user of the client's token belongs to."""
        return tuple(Organization._of(each) for each in portal.run(AsyncOrganization.list(client=portal.inner(client), timeout_ms=timeout_ms)))

    @property
    def info(self) -> OrganizationInfo:
        return self._inner.info

    @property
    def slug(self) -> str:
        return self._inner.slug

    def members(self, *, timeout_ms: float | None = None) -> Iterator[Member]:
        """In the order they joined."""
        return portal.iterate(self._inner.members(timeout_ms=timeout_ms))

    def set_role(
        self,
        user_id: str,
        role: str,
        *,
        timeout_ms: float | None = None,
    ) -> Member:
        return portal.run(self._inner.set_role(user_id, role, timeout_ms=timeout_ms))

    def remove_member(self, user_id: str, *, timeout_ms: float | None = None) -> None:
        portal.run(self._inner.remove_member(user_id, timeout_ms=timeout_ms))

    def invite(
        self,
        email: str,
        role: str = 'member',
        *,
        timeout_ms: float | None = None,
    ) -> str:
        """Returns the token that the invited person accepts with: it is shown once."""
        return portal.run(self._inner.invite(email, role, timeout_ms=timeout_ms))

    def api_keys(self, *, timeout_ms: float | None = None) -> Iterator[ApiKey]:
        """Newest first; their secrets are not shown again."""
        return portal.iterate(self._inner.api_keys(timeout_ms=timeout_ms))

    def create_api_key(
        self,
        name: str,
        *,
        expires_at: str | None = None,
        timeout_ms: float | None = None,
    ) -> NewApiKey:
        """The key, which is shown once, and the id to revoke it by."""
        return portal.run(self._inner.create_api_key(name, expires_at=expires_at, timeout_ms=timeout_ms))

    def revoke_api_key(self, id: str, *, timeout_ms: float | None = None) -> None:
        portal.run(self._inner.revoke_api_key(id, timeout_ms=timeout_ms))
