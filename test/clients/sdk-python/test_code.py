"""Code in interpreters, blocking."""

import unittest

from fixture import shared_sandbox

from svc_sdk import Sandbox, SvcError


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
