"""What the test files share: one sandbox of the server that SVC_API_URL names."""

import os
from collections.abc import Iterator

from svc_sdk import Sandbox

ISOLATION = os.environ.get("SVC_TEST_ISOLATION", "container")
_made: list[Sandbox] = []


def shared_sandbox() -> Sandbox:
    """The sandbox of all test files, made for the first one and removed by `remove_shared`."""
    if not _made:
        _made.append(Sandbox.create(image="python", isolation=ISOLATION, memory_mib=512))
    return _made[0]


def remove_shared() -> None:
    while _made:
        _made.pop().remove()


def numbered(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield f"{number}\n".encode()
