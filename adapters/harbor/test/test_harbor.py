"""The environment as Harbor's trials use it, on a real server."""

import typing
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harbor.environments.base import BaseEnvironment
from harbor.models.task.config import EnvironmentConfig, HealthcheckConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from harbor.utils.import_path import import_symbol
from svc_sdk import AsyncSandbox, SvcError

pytestmark = pytest.mark.asyncio(loop_scope="module")


def environment(folder: Path, **options: typing.Any) -> BaseEnvironment:
    definition = folder / "environment"
    definition.mkdir(parents=True, exist_ok=True)
    (definition / "given").write_text("of the task")
    config = options.pop("config", {"docker_image": "python", "workdir": "/app"})
    made = import_symbol("svc_harbor:SvcEnvironment")(
        environment_dir=definition,
        environment_name="task",
        session_id="task__1__env",
        trial_paths=TrialPaths(folder / "trial"),
        task_env_config=EnvironmentConfig(**config),
        **options,
    )
    assert isinstance(made, BaseEnvironment)
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trial(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BaseEnvironment]:
    made = environment(
        tmp_path_factory.mktemp("task"),
        persistent_env={"MODE": "fast"},
        network_policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
        override_memory_mb=256,
        override_cpus=1,
        auto_mounts=[{"type": "bind", "source": "/nowhere", "target": "/logs/agent"}],
    )
    await made.start(force_build=False)
    yield made
    await made.stop(delete=True)
    await made.stop(delete=True)


async def test_a_command_gives_both_streams_and_its_exit_code(trial: BaseEnvironment) -> None:
    ran = await trial.exec("echo $MODE $SPEED; pwd; echo wrong >&2; exit 3", env={"SPEED": "high"})
    assert (ran.stdout, ran.stderr, ran.return_code) == ("fast high\n/app\n", "wrong\n", 3)
    assert (await trial.exec("pwd", cwd="/usr")).stdout == "/usr\n"
    assert (await trial.exec("kill -9 $$")).return_code == 137
    assert (await trial.exec("true", cwd="/nowhere")).return_code == 127
    assert (await trial.exec("id -un", user="user")).stdout == "user\n"
    with trial.with_default_user("user"):
        assert (await trial.exec("id -un")).stdout == "user\n"
        assert (await trial.exec("id -u", user=0)).stdout == "0\n"
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        await trial.exec("sleep 1000", timeout_sec=1)


async def test_output_comes_while_a_command_runs(trial: BaseEnvironment) -> None:
    heard: list[tuple[str, str]] = []

    async def hear(text: str, stream: str) -> None:
        heard.append((text, stream))

    with trial.scoped_output_callback(hear):
        await trial.exec("echo out; echo err >&2")
    assert sorted(heard) == [("err\n", "stderr"), ("out\n", "stdout")]


async def test_files_and_folders_are_carried(trial: BaseEnvironment, tmp_path: Path) -> None:
    assert (await trial.exec("cat given")).stdout == "of the task"
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "run").write_text("echo ran")
    (source / "below" / "run").chmod(0o755)
    await trial.upload_dir(source, "/tests/a")
    assert (await trial.exec("/tests/a/below/run")).stdout == "ran\n"
    await trial.upload_file(source / "below" / "run", "/tests/b/run")
    await trial.download_file("/tests/b/run", tmp_path / "made" / "run")
    assert (tmp_path / "made" / "run").read_text() == "echo ran"
    await trial.exec("mkfifo /tests/a/pipe; chmod 600 /tests/a/below/run")
    await trial.download_dir("/tests/a", tmp_path / "back")
    assert (tmp_path / "back" / "below" / "run").read_text() == "echo ran"
    assert not (tmp_path / "back" / "pipe").exists()
    assert await trial.is_dir("/tests/a") and await trial.is_file("/tests/b/run")
    with pytest.raises(RuntimeError, match="was not transferred"):
        await trial.download_dir("/nowhere", tmp_path / "none")
    assert (await trial.exec("test -w /logs/agent", user="user")).return_code == 0
    await trial.run_healthcheck(HealthcheckConfig(command="test -e given"))


async def test_the_network_policy_is_mapped_and_changed(trial: BaseEnvironment) -> None:
    (sandbox,) = [each async for each in AsyncSandbox.list(labels={"session": "task__1__env"})]

    async def verdicts(*hosts: str) -> list[str]:
        return [(await sandbox.network.explain({"host": host, "port": 443})).action for host in hosts]

    hosts = ("api.example.org", "www.example.com", "93.184.1.1", "10.1.2.3")
    assert await verdicts(*hosts) == ["deny"] * 4
    allowed = ["api.example.org", "*.example.com", "93.184.0.0/16"]
    policy = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=allowed)
    await trial.set_network_policy(policy)
    assert await verdicts(*hosts) == ["allow", "allow", "allow", "deny"]
    await trial.set_network_policy(NetworkPolicy())
    assert await verdicts(*hosts[2:]) == ["allow", "deny"]
    spec = sandbox.info.spec
    assert spec is not None
    assert (spec.resources["memory_mib"], spec.resources["vcpus"]) == (256, 1)


async def test_a_stopped_environment_is_kept_unless_it_is_deleted(tmp_path: Path) -> None:
    other = environment(tmp_path)
    await other.start(force_build=True)
    sandbox = getattr(other, "sandbox")
    await other.stop(delete=False)
    await sandbox.refresh()
    assert sandbox.status == "stopped"
    with pytest.raises(RuntimeError, match="not started"):
        await other.exec("true")
    await sandbox.remove()


async def test_what_svc_cannot_do_is_refused(tmp_path: Path) -> None:
    before = len([each async for each in AsyncSandbox.list()])
    with pytest.raises(ValueError, match="docker_image"):
        environment(tmp_path, config={})
    with pytest.raises(RuntimeError, match="GPU"):
        environment(tmp_path, override_gpus=1)
    with pytest.raises(ValueError, match="cpus"):
        environment(tmp_path, override_cpus=0.5)
    with pytest.raises(ValueError, match="mounts"):
        environment(tmp_path, auto_mounting=True)
    with pytest.raises(SvcError):
        await environment(tmp_path, config={"docker_image": "absent"}).start(force_build=False)
    assert len([each async for each in AsyncSandbox.list()]) == before
