"""The awaited API: calls that overlap, and calls that are cancelled."""

import asyncio
import unittest

from fixture import shared_sandbox

from svc_sdk import AsyncSandbox, SvcError


class Awaited(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.sandbox = await AsyncSandbox.connect(shared_sandbox().id)
        self.addAsyncCleanup(self.sandbox.client.close)
        self.addAsyncCleanup(self.sandbox.close)

    async def test_calls_overlap_on_one_connection(self) -> None:
        results = await asyncio.gather(*(self.sandbox.exec("echo", [str(number)]) for number in range(20)))
        self.assertEqual([result.text() for result in results], [f"{number}\n" for number in range(20)])

    async def test_a_cancelled_call_ends_its_process(self) -> None:
        started = asyncio.Event()

        async def listen(text: str) -> None:
            started.set()

        running = asyncio.ensure_future(self.sandbox.shell("echo up; exec sleep 1003", on_stdout=listen))
        await started.wait()
        running.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertNotIn(b"sleep\x001003", (await self.sandbox.shell("cat /proc/[0-9]*/cmdline 2>/dev/null")).stdout)

    async def test_a_slow_reader_stalls_no_other_call(self) -> None:
        async with await self.sandbox.commands.start("sh", ["-c", "yes | head -c 8000000; echo end"]) as command:
            # Meanwhile the output of the command fills what is held of it.
            for _ in range(20):
                quick = await self.sandbox.exec("echo", ["quick"], timeout_ms=20_000)
                self.assertEqual(quick.text(), "quick\n")
            total = 0
            async for chunk in command.stdout.chunks():
                total += len(chunk)
            self.assertEqual(total, 8_000_004)

    async def test_an_iteration_that_is_left_early_ends_its_call(self) -> None:
        async for chunk in self.sandbox.files.read_stream("/proc/self/maps"):
            self.assertTrue(chunk)
            break
        self.assertTrue(await self.sandbox.files.exists("/proc"))

    async def test_asynchronous_content_is_sent(self) -> None:
        async def content():
            for number in range(3):
                await asyncio.sleep(0)
                yield str(number).encode()

        await self.sandbox.files.write("/tmp/awaited", content())
        self.assertEqual(await self.sandbox.files.read("/tmp/awaited"), b"012")

    async def test_the_time_limit_of_a_call_is_kept(self) -> None:
        with self.assertRaises(SvcError) as caught:
            async for _ in self.sandbox.logs(follow=True, sources=["system"], timeout_ms=200):
                pass
        self.assertEqual(caught.exception.code, "timeout")


class Loops(unittest.TestCase):
    def test_one_object_serves_several_event_loops(self) -> None:
        sandbox = asyncio.run(AsyncSandbox.connect(shared_sandbox().id))
        for number in range(2):
            result = asyncio.run(sandbox.exec("echo", [str(number)]))
            self.assertEqual(result.text(), f"{number}\n")
