"""Sessions as the SDK uses them, on a real server."""

import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import urlopen

import asyncio
import pytest
import pytest_asyncio
from agents import RunConfig, Runner
from agents.run_config import SandboxRunConfig
from agents.sandbox import Manifest, SandboxAgent
from agents.sandbox.capabilities import Shell
from agents.sandbox.entries import Dir, File, S3Mount
from agents.sandbox.errors import (
    ExecTimeoutError,
    ExposedPortUnavailableError,
    MountConfigError,
    PtySessionNotFoundError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.manifest import Environment
from agents.sandbox.session import SandboxSession
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.testing import ScriptedModel, assistant_message, function_call
from svc_openai_agents import SvcSandboxClient, SvcSandboxClientOptions
from svc_sdk import AsyncSandbox, SvcError

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: Says by a file when it listens.
SERVE = b"""
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(('', 8000), SimpleHTTPRequestHandler)
open('/tmp/listens', 'w').close()
server.serve_forever()
"""
client = SvcSandboxClient()
options = SvcSandboxClientOptions(image="python", memory_mib=256, exposed_ports=(8000,))
manifest = Manifest(
    environment=Environment(value={"MODE": "fast"}),
    entries={
        "a": Dir(children={"note": File(content=b"deep\n")}),
        "scratch": Dir(ephemeral=True),
        "serve.py": File(content=SERVE),
    },
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[SandboxSession]:
    made = await client.create(manifest=manifest, options=options)
    async with made:
        yield made
    await client.delete(made)


async def text(session: SandboxSession, path: str) -> str:
    content = (await session.read(Path(path))).read()
    assert isinstance(content, bytes)
    return content.decode()


async def test_a_command_gives_both_streams_and_its_exit_code(session: SandboxSession) -> None:
    ran = await session.exec("echo $MODE; pwd; echo wrong >&2; exit 3")
    assert (ran.stdout, ran.stderr, ran.exit_code) == (b"fast\n/workspace\n", b"wrong\n", 3)
    assert (await session.exec("kill -9 $$")).exit_code == 137
    assert (await session.exec("echo", "a b", shell=False)).stdout == b"a b\n"
    assert (await session.exec("id -un", user="user")).stdout == b"user\n"
    assert (await session.exec("nowhere", shell=False)).exit_code == 127
    with pytest.raises(ExecTimeoutError):
        await session.exec("sleep 1000", timeout=0.2)


async def test_files_are_those_of_the_manifest_and_of_a_user(session: SandboxSession) -> None:
    assert await text(session, "a/note") == "deep\n"
    await session.write(Path("b/c/bytes"), io.BytesIO(b"\x00\xff"))
    assert (await session.read(Path("b/c/bytes"))).read() == b"\x00\xff"
    assert [Path(entry.path).name for entry in await session.ls(Path("b"))] == ["c"]
    with pytest.raises(WorkspaceReadNotFoundError):
        await session.read(Path("nowhere"))
    await session.exec("echo mine > mine; chmod 600 mine")
    with pytest.raises(WorkspaceArchiveReadError):
        await session.read(Path("mine"), user="user")
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.write(Path("mine"), io.BytesIO(b"x"), user="user")
    await session.rm(Path("b"), recursive=True)


async def test_a_command_that_takes_longer_goes_on(session: SandboxSession) -> None:
    assert session.supports_pty()
    begun = await session.pty_exec_start(
        'echo ready; read line; echo "got $line"; exit 5', tty=True, yield_time_s=0.3
    )
    assert begun.process_id is not None and b"ready" in begun.output
    ended = await session.pty_write_stdin(
        session_id=begun.process_id, chars="word\n", yield_time_s=20
    )
    assert (ended.process_id, ended.exit_code) == (None, 5)
    assert b"got word" in ended.output
    with pytest.raises(PtySessionNotFoundError):
        await session.pty_write_stdin(session_id=begun.process_id, chars="")
    piped = await session.pty_exec_start("cat; echo out; echo err >&2; sleep 1000", yield_time_s=0.5)
    assert piped.process_id is not None and sorted(piped.output.split()) == [b"err", b"out"]
    with pytest.raises(RuntimeError, match="tty=True"):
        await session.pty_write_stdin(session_id=piped.process_id, chars="x")
    asleep = await session.pty_exec_start("sleep 1000", tty=True, yield_time_s=0.3)
    stopped = await session.pty_write_stdin(session_id=asleep.process_id or 0, chars="\x03")
    assert stopped.exit_code == 130
    await session.pty_terminate_all()
    assert b"sleep" not in (await session.exec("cat /proc/[0-9]*/comm | grep sleep")).stdout


async def test_a_workspace_is_archived_and_restored(session: SandboxSession) -> None:
    await session.exec("echo kept > kept; echo passing > scratch/x")
    archive = await session.persist_workspace()
    await session.exec("rm -f kept scratch/x")
    await session.hydrate_workspace(archive)
    assert await text(session, "kept") == "kept\n"
    assert (await session.exec("test -e scratch/x")).exit_code == 1
    unsafe = io.BytesIO()
    with tarfile.open(fileobj=unsafe, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../outside"))
    unsafe.seek(0)
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.hydrate_workspace(unsafe)


async def test_ports_that_are_exposed_have_addresses(session: SandboxSession) -> None:
    await session.pty_exec_start("exec python3 serve.py 2> /dev/null", yield_time_s=0)
    await session.exec("until [ -e /tmp/listens ]; do sleep 0.05; done", timeout=60)
    endpoint = await session.resolve_exposed_port(8000)
    answer = await asyncio.to_thread(urlopen, endpoint.url_for("http"))
    assert answer.status == 200
    with pytest.raises(ExposedPortUnavailableError):
        await session.resolve_exposed_port(9000)


async def test_a_session_is_resumed_with_its_files_until_it_is_deleted() -> None:
    first = await client.create(options=options)
    async with first:
        await first.exec("echo kept > kept")
    assert not await first.running()
    kept = json.dumps(client.serialize_session_state(first.state))
    state = client.deserialize_session_state(json.loads(kept))
    again = await client.resume(state)
    async with again:
        assert await text(again, "kept") == "kept\n"
    await client.delete(again)
    await client.delete(first)
    with pytest.raises(SvcError, match="sandbox_not_found|not found|no sandbox"):
        await client.resume(state)


async def test_a_snapshot_of_the_sdk_keeps_the_workspace(tmp_path: Path) -> None:
    made = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path), options=options)
    async with made:
        await made.exec("echo kept > kept")
    await client.delete(made)
    other = await client.create(snapshot=made.state.snapshot, options=options)
    async with other:
        assert await text(other, "kept") == "kept\n"
    await client.delete(other)


async def test_what_svc_cannot_do_is_refused_and_leaves_no_sandbox(
    session: SandboxSession,
) -> None:
    before = [each.id async for each in AsyncSandbox.list()]
    from agents.sandbox.entries.mounts import InContainerMountStrategy, RcloneMountPattern

    strategy = InContainerMountStrategy(pattern=RcloneMountPattern())
    mount = S3Mount(bucket="b", mount_strategy=strategy)
    with pytest.raises(MountConfigError):
        await client.create(manifest=Manifest(entries={"data": mount}), options=options)
    with pytest.raises(ValueError, match="imagine"):
        SvcSandboxClientOptions(imagine="x")
    with pytest.raises(SvcError):
        await client.create(options=SvcSandboxClientOptions(image="absent"))
    assert [each.id async for each in AsyncSandbox.list()] == before
    async with await AsyncSandbox.create(image="python") as other:
        stolen = session.state.model_copy(update={"sandbox_id": other.id})
        with pytest.raises(PermissionError, match="not made for a session"):
            await client.resume(stolen)


async def test_an_agent_of_the_sdk_works_in_a_sandbox_which_is_gone_afterwards(
    session: SandboxSession,
) -> None:
    model = ScriptedModel(
        [
            [function_call("exec_command", {"cmd": "cat a/note"}, call_id="1")],
            [assistant_message("done")],
        ]
    )
    agent = SandboxAgent(name="reader", model=model, default_manifest=manifest, capabilities=[Shell()])
    config = RunConfig(sandbox=SandboxRunConfig(client=client), tracing_disabled=True)
    result = await Runner.run(agent, "Read the note", run_config=config)
    assert result.final_output == "done"
    assert "deep" in str(model.calls[1].input)
    assert [each.id async for each in AsyncSandbox.list()] == [session.state.sandbox_id]
