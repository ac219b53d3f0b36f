"""Processes, terminals and ports, blocking."""

import threading
import unittest

from fixture import numbered, shared_sandbox

from svc_sdk import Sandbox, SvcError


class Processes(unittest.TestCase):
    def setUp(self) -> None:
        self.sandbox: Sandbox = shared_sandbox()

    def test_exec_gives_code_and_output(self) -> None:
        result = self.sandbox.exec(
            "sh",
            ["-c", 'echo "$NAME $(pwd) $(id -u)"; echo trouble >&2; exit 3'],
            env={"NAME": "grüße"},
            cwd="/tmp",
            user="1000",
        )
        self.assertEqual((result.code, result.reason, result.is_success), (3, "exit", False))
        self.assertEqual(result.text(), "grüße /tmp 1000\n")
        self.assertEqual(result.error_text(), "trouble\n")
        self.assertIn("exit code 3", result._repr_html_())

    def test_a_signal_is_named(self) -> None:
        result = self.sandbox.shell("kill -TERM $$")
        self.assertEqual((result.code, result.signal, result.reason), (-1, 15, "signal"))
        self.assertEqual((result.shell_code, self.sandbox.shell("exit 3").shell_code), (143, 3))
        with self.sandbox.commands.start("sleep", ["1009"]) as command:
            command.kill()
            self.assertEqual(command.wait().shell_code, 137)

    def test_stdin_is_whole_or_piece_by_piece(self) -> None:
        whole = self.sandbox.exec("wc", ["-c"], stdin=b"x" * 3_000_000)
        pieces = self.sandbox.exec("tail", ["-n", "1"], stdin=numbered(1000))
        self.assertEqual((whole.text().strip(), pieces.text()), ("3000000", "999\n"))

    def test_output_beyond_the_limit_is_dropped_and_noted(self) -> None:
        heard: list[str] = []
        result = self.sandbox.shell("seq 10000", max_output_bytes=100, on_stdout=heard.append)
        self.assertEqual((len(result.stdout), result.truncated), (100, ("stdout",)))
        self.assertTrue("".join(heard).endswith("10000\n"))

    def test_listeners_run_in_the_calling_thread_and_may_use_the_sandbox(self) -> None:
        seen: list[tuple[str, str]] = []

        def listen(text: str) -> None:
            inner = self.sandbox.exec("echo", [f"inner {text.strip()}"])
            seen.append((inner.text().strip(), threading.current_thread().name))

        self.sandbox.shell("echo outer", on_stdout=listen)
        self.assertEqual(seen, [("inner outer", threading.current_thread().name)])

    def test_what_a_listener_raises_ends_the_process_and_is_raised(self) -> None:
        def refuse(text: str) -> None:
            raise KeyError(text)

        with self.assertRaises(KeyError):
            self.sandbox.shell("echo mark-7; exec sleep 1007", on_stdout=refuse)
        self.assert_gone("sleep 1007")

    def test_a_process_that_takes_too_long_is_killed(self) -> None:
        with self.assertRaises(SvcError) as caught:
            self.sandbox.exec("sleep", ["1001"], timeout_ms=200)
        self.assertEqual(caught.exception.code, "exec_timeout")
        self.assert_gone("sleep 1001")

    def test_a_command_line_in_place_of_a_program_is_explained(self) -> None:
        with self.assertRaises(SvcError) as caught:
            self.sandbox.exec("ls -l")
        self.assertEqual(caught.exception.code, "exec_failed")
        self.assertIn("shell('ls -l')", caught.exception.message)
        with self.assertRaisesRegex(SvcError, "args is a list"):
            self.sandbox.exec("ls", "-l")

    def test_a_command_is_talked_to_and_ends_with_its_block(self) -> None:
        with self.sandbox.commands.start("sh", ["-c", "echo ready; exec sleep 1002"]) as command:
            self.assertEqual(next(iter(command.stdout.lines())), "ready")
            self.assertGreater(command.pid, 1)
        self.assert_gone("sleep 1002")
        with self.sandbox.commands.start("cat") as cat:
            cat.write("one\ntwo")
            cat.close_stdin()
            self.assertEqual(list(cat.stdout.lines()), ["one", "two"])
            self.assertEqual(cat.wait().code, 0)

    def test_a_detached_process_is_read_on_from_a_byte(self) -> None:
        commands = self.sandbox.commands
        commands.start_detached("sh", ["-c", "echo one; read line; echo $line"], name="job", has_stdin=True)
        job = commands.connect("job")
        first = next(iter(job.output()))
        self.assertEqual((first.data, first.end), (b"one\n", 4))
        job.write("two\n")
        rest = list(job.output(stdout_offset=first.end))
        self.assertEqual([(piece.offset, piece.data) for piece in rest], [(4, b"two\n")])
        self.assertEqual(job.wait().reason, "exit")
        self.assertIn(job.id, [each.id for each in commands.list(status="exited")])
        job.remove()

    def test_a_terminal_has_a_size(self) -> None:
        with self.sandbox.pty.open(cols=80, rows=24) as terminal:
            terminal.resize(cols=120, rows=40)
            terminal.write("stty size; exit\n")
            self.assertIn("40 120", terminal.output.text())

    def test_a_port_is_waited_for_and_opened(self) -> None:
        with self.assertRaisesRegex(SvcError, "timeout"):
            self.sandbox.wait_for_port(8123, timeout_ms=300)
        server = self.sandbox.commands.start_detached("python3", ["-m", "http.server", "8123"])
        self.sandbox.wait_for_port(8123)
        preview = self.sandbox.ports.preview(8123, expires_in_secs=60)
        self.assertIn(preview.id, [each.id for each in self.sandbox.ports.list()])
        self.sandbox.ports.revoke(preview.id)
        self.assertTrue(self.sandbox.url(8123).startswith("http"))
        server.kill()

    def assert_gone(self, command: str) -> None:
        listing = self.sandbox.shell(
            "for each in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $each; echo; done 2>/dev/null"
        )
        self.assertNotIn(command, [line.strip() for line in listing.text().split("\n")])
