"""An organization, its members and API keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .._client.pages import each_item
from .._client.read_record import read_record
from ..errors import SvcError
from ..records import ApiKey, Member, OrganizationInfo
from ..values import NewApiKey
from .client import AsyncClient


class AsyncOrganization:
    """Changes need a user's token: API keys cannot create API keys."""

    client: AsyncClient

    def __init__(self, client: AsyncClient, info: OrganizationInfo) -> None:
        self.client = client
        self._info = info

    @staticmethod
    async def me(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> AsyncOrganization:
        """The organization that the client acts in."""
        used = client or AsyncClient.of_environment()
        name = "organizations.own" if used.organization is None else "organizations.get"
        data = await used.call(name, timeout_ms=timeout_ms)
        return AsyncOrganization(used, read_record(OrganizationInfo, data))

    @staticmethod
    async def list(
        *, client: AsyncClient | None = None, timeout_ms: float | None = None
    ) -> tuple[AsyncOrganization, ...]:
        """All that the user of the client's token belongs to."""
        used = client or AsyncClient.of_environment()
        found = await used.call("organizations.list", timeout_ms=timeout_ms)
        return tuple(
            AsyncOrganization(used, read_record(OrganizationInfo, each)) for each in found
        )

    @property
    def info(self) -> OrganizationInfo:
        return self._info

    @property
    def slug(self) -> str:
        return self._info.slug

    async def members(self, *, timeout_ms: float | None = None) -> AsyncIterator[Member]:
        """In the order they joined."""
        async for item in self._pages("members.list", timeout_ms):
            yield read_record(Member, item)

    async def set_role(
        self, user_id: str, role: str, *, timeout_ms: float | None = None
    ) -> Member:
        data = await self._call(
            "members.update", timeout_ms, params={"user_id": user_id}, body={"role": role}
        )
        return read_record(Member, data)

    async def remove_member(self, user_id: str, *, timeout_ms: float | None = None) -> None:
        await self._call("members.remove", timeout_ms, params={"user_id": user_id})

    async def invite(
        self, email: str, role: str = "member", *, timeout_ms: float | None = None
    ) -> str:
        """Returns the token that the invited person accepts with: it is shown once."""
        body = {"email": email, "role": role}
        made = await self._call("invites.create", timeout_ms, body=body)
        return _require_secret(made["token"], made["id"], "invite")

    async def api_keys(self, *, timeout_ms: float | None = None) -> AsyncIterator[ApiKey]:
        """Newest first; their secrets are not shown again."""
        async for item in self._pages("apiKeys.list", timeout_ms):
            yield read_record(ApiKey, item)

    async def create_api_key(
        self, name: str, *, expires_at: str | None = None, timeout_ms: float | None = None
    ) -> NewApiKey:
        """The key, which is shown once, and the id to revoke it by."""
        body = {"name": name, **({} if expires_at is None else {"expires_at": expires_at})}
        made = await self._call("apiKeys.create", timeout_ms, body=body)
        return NewApiKey(made["id"], _require_secret(made["key"], made["id"], "API key"))

    async def revoke_api_key(self, id: str, *, timeout_ms: float | None = None) -> None:
        await self._call("apiKeys.revoke", timeout_ms, params={"id": id})

    async def _call(self, name: str, timeout_ms: float | None, **parts: Any) -> Any:
        return await self.client.call(
            name, timeout_ms=timeout_ms, organization=self.slug, **parts
        )

    def _pages(self, name: str, timeout_ms: float | None) -> AsyncIterator[Any]:
        async def page(cursor: str | None) -> Any:
            return await self._call(name, timeout_ms, query={"limit": 100, "cursor": cursor})

        return each_item(page)


def _require_secret(secret: str | None, id: str, what: str) -> str:
    """A call that was repeated after its answer was lost returns no secret."""
    if secret is not None:
        return secret
    said = f"The {what} was made, but its secret was lost on the way; remove {id} and make another"
    raise SvcError("connection_failed", said, details={"id": id})
