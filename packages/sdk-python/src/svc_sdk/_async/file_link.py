"""Links to files of a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ..values import FileLink
from .client import AsyncClient


async def make_file_link(
    client: AsyncClient, sandbox_id: str, body: Mapping[str, object], timeout_ms: float | None
) -> FileLink:
    # The retry of a call whose answer was lost returns everything but the secret; a new call makes a new link.
    while True:
        made = await client.call(
            "files.createLink", params={"sandbox_id": sandbox_id}, body=body, timeout_ms=timeout_ms
        )
        if made["address"] is not None:
            return FileLink(
                url=f"{client.api_url}{made['address']}",
                method=made["method"],
                path=made["path"],
                expires_at=datetime.fromisoformat(made["expires_at"]),
            )
