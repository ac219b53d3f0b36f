"""Makes, resumes and removes the sandboxes of sessions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from agents.sandbox.errors import MountConfigError
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import (
    BaseSandboxClient,
    Dependencies,
    Instrumentation,
    SandboxSession,
    SandboxSessionState,
)
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from svc_sdk import AsyncClient, AsyncSandbox, SecretOption, SvcError
from typing_extensions import override

from ._options import LABELS, SvcSandboxClientOptions
from ._session import SvcSandboxSession
from ._state import SvcSandboxSessionState


class SvcSandboxClient(BaseSandboxClient[SvcSandboxClientOptions | None]):
    """A sandbox of its own for each session of an agent.

    - Closing a session stops its sandbox, whose files are kept; `delete` removes it.
    - `resume` finds it again, from another program too. A sandbox that is gone is not replaced.
    """

    backend_id = "svc"
    supports_default_options = True

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        secrets: Mapping[str, SecretOption] | None = None,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        """`client`: the one of `SVC_API_URL` and `SVC_API_KEY` unless given."""
        self._client = client
        self._secrets = secrets
        self._instrumentation = instrumentation
        self._dependencies = dependencies

    @override
    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: SvcSandboxClientOptions | None = None,
    ) -> SandboxSession:
        wanted = options or SvcSandboxClientOptions()
        listed = self._validate_manifest_for_create(manifest or Manifest())
        _require_no_mounts(listed)
        sandbox = await self._create_running(wanted)
        session_id = uuid.uuid4()
        state = SvcSandboxSessionState(
            session_id=session_id,
            manifest=listed,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            exposed_ports=wanted.exposed_ports,
            sandbox_id=sandbox.id,
        )
        return self._open(sandbox, state)

    @override
    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """Raises `sandbox_not_found`, and PermissionError for a sandbox that was not made for an agent."""
        if not isinstance(state, SvcSandboxSessionState):
            raise TypeError("SvcSandboxClient.resume expects a SvcSandboxSessionState")
        state.assert_path_grants_rebound()
        sandbox = await AsyncSandbox.connect(state.sandbox_id, client=self._client)
        # A state may come from where it could have been changed.
        if _made_by(sandbox) != LABELS["made-by"]:
            said = f"The sandbox {state.sandbox_id} was not made for a session of an agent"
            raise PermissionError(said)
        session = self._open(sandbox, state)
        session._inner._set_start_state_preserved(True)
        return session

    @override
    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, SvcSandboxSession):
            raise TypeError("SvcSandboxClient.delete expects a session of SvcSandboxClient")
        await inner.remove()
        return session

    @override
    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, SvcSandboxSessionState)

    def _open(self, sandbox: AsyncSandbox, state: SvcSandboxSessionState) -> SandboxSession:
        inner = SvcSandboxSession(sandbox, state)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    async def _create_running(self, options: SvcSandboxClientOptions) -> AsyncSandbox:
        """Of one that was made and does not start nothing is left."""
        try:
            return await AsyncSandbox.create(
                client=self._client, **options.create_options(self._secrets)
            )
        except SvcError as error:
            made = (error.details or {}).get("sandbox_id")
            if isinstance(made, str):
                await (await AsyncSandbox.connect(made, client=self._client)).remove()
            raise


def _made_by(sandbox: AsyncSandbox) -> str | None:
    spec = sandbox.info.spec
    return None if spec is None else spec.labels.get("made-by")


def _require_no_mounts(manifest: Manifest) -> None:
    for _entry, path in manifest.mount_targets():
        said = f"svc mounts no storage at {path}: give a volume as 'mounts' of SvcSandboxClientOptions"
        raise MountConfigError(message=said, context={"path": str(path)})
