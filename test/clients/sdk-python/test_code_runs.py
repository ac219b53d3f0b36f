"""Runs of code whose connection breaks, is refused, or is closed."""

import asyncio
import json
import unittest
from unittest import mock

from code_server import END, Asked, CodeServer

from svc_sdk import SvcError


async def nothing(_: Asked) -> None:
    return None


async def end(asked: Asked) -> None:
    await asked.tell("end", END)


class CodeRunsTest(unittest.IsolatedAsyncioTestCase):
    async def test_runs_at_once_share_a_connection_and_each_has_its_own_output(self) -> None:
        async with CodeServer(nothing) as server:
            both = asyncio.gather(server.run("a"), server.run("b"))
            await server.until_asked(2)
            for asked in reversed(server.asked):
                await asked.tell("stdout", {"text": asked.message["run"]["code"]})
                await end(asked)
            self.assertEqual([result.output for result in await both], ["a", "b"])
            self.assertEqual((server.connections, [asked.message["id"] for asked in server.asked]), (1, [1, 2]))

    async def test_messages_are_read_in_pieces_and_together(self) -> None:
        async def answer(asked: Asked) -> None:
            said = {"id": 1, "event": "stdout", "data": {"text": "größer"}}
            lines = [said, {"id": 1, "event": "end", "data": END}]
            text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()
            for at in range(len(text)):
                await asked.socket.send(text[at : at + 1])

        async with CodeServer(answer) as server:
            self.assertEqual((await server.run("x")).output, "größer")

    async def test_a_run_whose_connection_breaks_before_a_word_is_asked_for_again_by_its_first_name(self) -> None:
        async def answer(asked: Asked) -> None:
            if len(server.asked) < 3:
                asked.cut()
            else:
                await end(asked)

        async with CodeServer(answer) as server:
            self.assertEqual((await server.run("x")).status, "success")
            first = {"connection": "c1", "id": 1}
            self.assertEqual([asked.message.get("again") for asked in server.asked], [None, first, first])
            self.assertEqual({json.dumps(asked.message["run"]) for asked in server.asked}, {json.dumps({"code": "x", "language": "python"})})

    async def test_a_run_that_has_begun_and_printed_nothing_is_asked_for_again(self) -> None:
        async def answer(asked: Asked) -> None:
            await asked.tell("begun")
            if "again" in asked.message:
                await end(asked)
            else:
                await asked.socket.close(1001)

        async with CodeServer(answer) as server:
            self.assertEqual((await server.run("x")).status, "success")

    async def test_a_run_that_has_printed_is_not_asked_for_again(self) -> None:
        async def answer(asked: Asked) -> None:
            await asked.tell("stdout", {"text": "half"})
            await asked.socket.close(1001)

        async with CodeServer(answer) as server:
            with self.assertRaisesRegex(SvcError, "connection_failed.*broke while the code ran"):
                await server.run("x")
            self.assertEqual(len(server.asked), 1)

    async def test_a_refusal_that_passes_is_asked_again_as_something_new_and_any_other_fails(self) -> None:
        async def answer(asked: Asked) -> None:
            if len(server.asked) == 2:
                return await end(asked)
            code = "unavailable" if len(server.asked) == 1 else "forbidden"
            details = {"retry_after_seconds": 0}
            error = {"code": code, "message": "no", "details": details}
            await asked.tell("refused", {"status": 503 if code == "unavailable" else 403, "error": error})

        async with CodeServer(answer) as server:
            self.assertEqual((await server.run("x")).status, "success")
            self.assertEqual([asked.message.get("again") for asked in server.asked], [None, None])
            with self.assertRaisesRegex(SvcError, "forbidden"):
                await server.run("x")
            self.assertEqual((len(server.asked), server.connections), (3, 1))

    async def test_a_cancelled_run_is_cancelled_on_the_server_and_others_go_on(self) -> None:
        async with CodeServer(nothing) as server:
            left = asyncio.ensure_future(server.run("a"))
            await server.until_asked(1)
            kept = asyncio.ensure_future(server.run("b"))
            other = await server.until_asked(2)
            left.cancel()
            self.assertEqual((await server.until_asked(3)).message, {"id": 1, "cancel": True})
            await end(other)
            self.assertEqual((await kept).status, "success")

    async def test_the_time_limit_of_the_client_ends_with_the_first_word_of_the_run(self) -> None:
        async def answer(asked: Asked) -> None:
            if asked.message["run"]["code"] == "silent":
                return
            await asked.tell("begun")
            await asyncio.sleep(0.6)
            await end(asked)

        async with CodeServer(answer, timeout_ms=300) as server:
            self.assertEqual((await server.run("slow")).status, "success")
            with self.assertRaisesRegex(SvcError, "timeout"):
                await server.run("silent")
            self.assertEqual((await server.until_asked(3)).message, {"id": 2, "cancel": True})

    async def test_code_that_is_too_long_for_a_message_is_a_request(self) -> None:
        async with CodeServer(end) as server:
            with self.assertRaises(SvcError):
                await server.run("#" * 600_000)
            self.assertEqual(server.asked, [])

    async def test_no_connection_is_opened_where_requests_go_through_a_proxy(self) -> None:
        async with CodeServer(end) as server:
            with mock.patch.dict("os.environ", {"http_proxy": "http://127.0.0.1:9", "no_proxy": ""}):
                self.assertFalse(server.client._is_direct)
                with self.assertRaisesRegex(SvcError, "connection_failed"):
                    await server.run("x")
            self.assertEqual(server.asked, [])
            with mock.patch.dict("os.environ", {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}):
                self.assertEqual((await server.run("x")).status, "success")

    async def test_what_a_listener_raises_reaches_the_caller_and_ends_the_run(self) -> None:
        async def answer(asked: Asked) -> None:
            await asked.tell("stdout", {"text": "x"})

        def listen(_: str) -> None:
            raise SvcError("connection_failed", "mine")

        async with CodeServer(answer) as server:
            with self.assertRaisesRegex(SvcError, "mine"):
                await server.run("x", on_stdout=listen)
            self.assertEqual((await server.until_asked(2)).message, {"id": 1, "cancel": True})

    async def test_a_slow_listener_stalls_no_other_run_and_learns_that_output_is_missing(self) -> None:
        async def answer(asked: Asked) -> None:
            if asked.message["run"]["code"] == "loud":
                for _ in range(20):
                    await asked.tell("stdout", {"text": "x" * 1024 * 1024})
            await end(asked)

        async with CodeServer(answer) as server:
            heard: list[int] = []

            async def listen(text: str) -> None:
                if not heard:
                    self.assertEqual((await server.run("quick")).status, "success")
                heard.append(len(text))

            result = await server.run("loud", on_stdout=listen)
            self.assertTrue(result.is_truncated)
            self.assertLessEqual(sum(heard), 9 * 1024 * 1024)

    async def test_closing_it_fails_what_runs_and_leaving_it_does_not(self) -> None:
        async with CodeServer(nothing) as server:
            kept = [asyncio.ensure_future(server.run(code)) for code in "ab"]
            await server.until_asked(2)
            await server.runs.close_when_idle()
            cut = asyncio.ensure_future(server.run("c"))
            other = await server.until_asked(3)
            for asked, running in zip(server.asked, kept):
                await end(asked)
                self.assertEqual((await running).status, "success")
            await other.tell("stdout", {"text": "half"})
            await server.runs.close()
            with self.assertRaisesRegex(SvcError, "connection_failed"):
                await cut
            silent = asyncio.ensure_future(server.run("d"))
            await server.until_asked(4)
            await server.runs.close()
            with self.assertRaisesRegex(SvcError, "The connection was closed"):
                await silent
            self.assertEqual(server.connections, 3)
