"""Code in interpreters, blocking, and over connections that break."""

import asyncio
import unittest

from breaking_proxy import BreakingProxy
from fixture import shared_sandbox

from svc_sdk import AsyncSandbox, Sandbox, SvcError


class Code(unittest.TestCase):
    def setUp(self) -> None:
        self.sandbox: Sandbox = shared_sandbox()

    def test_state_is_kept_and_results_come_as_data(self) -> None:
        self.sandbox.run_code("total = 40")
        heard: list[str] = []
        shown: list[object] = []
        code = 'print("grüße"); display({"text/html": "<b>6</b>"}, raw=True); total += 2; {"n": total}'
        result = self.sandbox.run_code(
            code, on_stdout=heard.append, on_result=lambda each: shown.append(each.html or each.json)
        )
        self.assertEqual((result.status, result.result), ("success", "{'n': 42}"))
        self.assertEqual("".join(heard), result.output)
        self.assertEqual(shown, ["<b>6</b>", {"n": 42}])
        self.assertTrue(result.results[1].is_main_result)

    def test_one_run_has_an_environment_and_charts_are_data(self) -> None:
        code = "import os; os.environ.get('ONLY')"
        given = self.sandbox.run_code(code, env={"ONLY": "here"}, print_result=False)
        self.assertEqual((given.result, given.output), ("'here'", ""))
        self.assertIsNone(self.sandbox.run_code(code).result)
        context = self.sandbox.contexts.create(language="python")
        self.assertEqual(context.run_code(code, env={"ONLY": "there"}).result, "'there'")
        context.remove()
        shape = '{"type": "line", "title": None, "elements": [[0, 1]]}'
        form = "application/vnd.svc.chart+json"
        shown = self.sandbox.run_code(f'for each in ({shape}, "none"): display({{"{form}": each}}, raw=True)')
        self.assertEqual([(each.chart or {}).get("elements") for each in shown.results], [[[0, 1]], None])

    def test_an_exception_is_a_result(self) -> None:
        named: list[str] = []
        result = self.sandbox.run_code("1/0", on_error=lambda error: named.append(error.name))
        assert result.exception is not None
        self.assertEqual((result.status, result.exception.name, named), ("error", "ZeroDivisionError", ["ZeroDivisionError"]))
        self.assertEqual(result.exception.frames[0].line, 1)

    def test_code_that_takes_too_long_is_interrupted(self) -> None:
        self.sandbox.run_code("kept = 7")
        result = self.sandbox.run_code("import time; time.sleep(1000)", timeout_ms=300)
        self.assertEqual(result.status, "timeout")
        self.assertEqual(self.sandbox.run_code("kept").result, "7")

    def test_code_that_is_too_long_for_a_message_is_a_request(self) -> None:
        result = self.sandbox.run_code(f"{'#' * 600_000}\n6 * 7")
        self.assertEqual((result.status, result.result), ("success", "42"))

    def test_a_context_has_a_state_of_its_own(self) -> None:
        context = self.sandbox.contexts.create(language="python", name="own", env={"MODE": "fast"}, cwd="/tmp")
        self.assertEqual(context.run_code("import os; os.environ['MODE'] + os.getcwd()").result, "'fast/tmp'")
        self.assertEqual(self.sandbox.run_code("os.getcwd()", context="own").result, "'/tmp'")
        self.assertEqual([each.name for each in self.sandbox.contexts.list()], ["own"])
        context.restart()
        failed = self.sandbox.run_code("os", context=context)
        assert failed.exception is not None
        self.assertEqual(failed.exception.name, "NameError")
        context.remove()
        with self.assertRaisesRegex(SvcError, "context_not_found"):
            self.sandbox.contexts.get("own")

    def test_a_notebook_shows_markup_of_the_sandbox_without_rights(self) -> None:
        result = self.sandbox.run_code('display({"text/html": "<script>bad()</script>"}, raw=True); "<i>"')
        shown = result._repr_html_()
        self.assertNotIn("<script>", shown)
        self.assertNotIn("<i>", shown)
        self.assertIn('sandbox=""', shown)
        self.assertIn(self.sandbox.name, self.sandbox._repr_html_())


class LostConnections(unittest.IsolatedAsyncioTestCase):
    async def test_code_whose_answer_is_lost_runs_once_and_gives_its_result(self) -> None:
        async with BreakingProxy() as proxy:
            sandbox = await AsyncSandbox.connect(shared_sandbox().id, client=proxy.client)
            self.addAsyncCleanup(sandbox.close)
            await sandbox.run_code("runs = 0")
            opened = proxy.connections
            proxy.hold()
            running = asyncio.ensure_future(sandbox.run_code("runs += 1; print('once'); runs"))
            # Code of one context queues: behind it, and over a way of its own.
            async with asyncio.timeout(20):
                while (await asyncio.to_thread(shared_sandbox().run_code, "runs")).result != "1":
                    await asyncio.sleep(0.02)
            proxy.cut()
            answer = await running
            self.assertEqual((answer.status, answer.output), ("success", "once\n1\n"))
            self.assertEqual([(await sandbox.run_code("runs")).result for _ in range(3)], ["1"] * 3)
            self.assertEqual(proxy.connections, opened + 1)

    async def test_code_that_runs_when_its_connection_breaks_is_interrupted_and_says_so(self) -> None:
        async with BreakingProxy() as proxy:
            sandbox = await AsyncSandbox.connect(shared_sandbox().id, client=proxy.client)
            self.addAsyncCleanup(sandbox.close)
            mark = "/tmp/runs-now"
            code = f"import time; open('{mark}', 'w').close(); kept = 1; time.sleep(1000)"
            running = asyncio.ensure_future(sandbox.run_code(code))
            async with asyncio.timeout(20):
                while not await asyncio.to_thread(shared_sandbox().files.exists, mark):
                    await asyncio.sleep(0.02)
            proxy.cut()
            result = await running
            assert result.exception is not None
            self.assertEqual((result.status, result.exception.name), ("error", "KeyboardInterrupt"))
            self.assertEqual((await sandbox.run_code("kept")).result, "1")
