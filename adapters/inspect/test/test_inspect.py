"""Inspect's own checks of a sandbox, unchanged, on a real server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403
from svc_inspect import SvcConfig


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment() -> AsyncIterator[SandboxEnvironment]:
    found = registry_find_sandboxenv("svc")
    config = SvcConfig(user="user", memory_mib=1024)
    environments = await found.sample_init("self-check", config, {})
    yield environments["default"]
    await found.sample_cleanup("self-check", config, environments, False)


@pytest.fixture
def sandbox_env(environment: SandboxEnvironment) -> SandboxEnvironment:
    return environment


async def test_files_of_configuration_are_refused() -> None:
    with pytest.raises(TypeError, match="SvcConfig"):
        await registry_find_sandboxenv("svc").sample_init("task", "/etc/compose.yaml", {})


async def test_a_shell_command_connects(sandbox_env: SandboxEnvironment) -> None:
    connection = await sandbox_env.connection(user="root")
    assert connection.command.startswith("svc exec -it -w /home/user --user root ")
