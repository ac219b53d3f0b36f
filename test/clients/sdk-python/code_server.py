"""A server that has nothing but connections for code, and lets a test say what they tell."""

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from websockets import exceptions

from svc_sdk import AsyncClient
from svc_sdk._async.code_runs import CodeRuns
from svc_sdk._async.run_code import CodeRun, code_body
from svc_sdk.values import CodeResult, OnText

END = {"status": "success", "result": None, "exception": None, "truncated": False}


@dataclass
class Asked:
    """A message of the client, on the connection that it came over."""

    message: dict[str, Any]
    socket: Any

    async def tell(self, event: str, data: object = None) -> None:
        line = {"id": self.message["id"], "event": event, "data": {} if data is None else data}
        await self.socket.send(json.dumps(line).encode() + b"\n")

    def cut(self) -> None:
        self.socket.transport.abort()


@dataclass
class CodeServer:
    answer: Callable[[Asked], Awaitable[None]]
    timeout_ms: float = 60_000
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    async def __aenter__(self) -> "CodeServer":
        self._server = await _serve(self._talk, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        self.client = AsyncClient(api_url=url, api_key="svc_key", timeout_ms=self.timeout_ms)
        self.runs = CodeRuns(self.client, "x")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runs.close()
        self._server.close()
        await self._server.wait_closed()

    async def run(self, code: str, *, on_stdout: OnText | None = None) -> CodeResult:
        options: dict[str, Any] = dict.fromkeys(("language", "kernel", "context", "env", "timeout_ms"))
        return await self.runs.run(code_body(code, print_result=True, **options), CodeRun(on_stdout, None, None, None))

    async def until_asked(self, count: int) -> Asked:
        async with asyncio.timeout(10):
            while len(self.asked) < count:
                await asyncio.sleep(0.005)
        return self.asked[count - 1]

    async def _talk(self, socket: Any, _path: object = None) -> None:
        self.connections += 1
        await socket.send(json.dumps({"connection": f"c{self.connections}"}).encode() + b"\n")
        try:
            async for data in socket:
                asked = Asked(json.loads(data), socket)
                self.asked.append(asked)
                if "run" in asked.message:
                    await self.answer(asked)
        except exceptions.ConnectionClosed:
            # It was cut.
            return


def _load() -> Any:
    try:
        return importlib.import_module("websockets.asyncio.server").serve
    except ImportError:
        return importlib.import_module("websockets.legacy.server").serve


_serve = _load()
