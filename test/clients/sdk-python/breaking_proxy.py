"""A way to the server whose answers a test can hold back, and whose connections it can cut."""

import asyncio
import os
from urllib.parse import urlsplit

from svc_sdk import AsyncClient


class BreakingProxy:
    def __init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_open = asyncio.Event()
        self._is_open.set()
        self.connections = 0

    async def __aenter__(self) -> "BreakingProxy":
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.client = AsyncClient(api_url=f"http://127.0.0.1:{port}", api_key=os.environ["SVC_API_KEY"])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        self._server.close()
        self.cut()

    def hold(self) -> None:
        """The server is heard no more until the connections are cut."""
        self._is_open.clear()

    def cut(self) -> None:
        """Resets all connections; new ones are as they should be."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        self._is_open.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        server = urlsplit(os.environ["SVC_API_URL"])
        there, to_there = await asyncio.open_connection(server.hostname, server.port)
        self._writers |= {writer, to_there}
        await asyncio.gather(self._copy(reader, to_there), self._copy(there, writer, is_answer=True))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        try:
            while data := await reader.read(65536):
                if is_answer:
                    await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            # It was cut.
            pass
        writer.close()
