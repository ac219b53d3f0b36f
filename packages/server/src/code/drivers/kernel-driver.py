"""Runs units of code in a Jupyter kernel, for a server outside of the sandbox that knows nothing of kernels.

Run like python-driver.py, and speaks the same with the server, after python-wire.py and python-results.py, which share its
names; the last argument is the name of the kernel. It starts the kernel and speaks Jupyter's protocol with it, by the
jupyter_client of the image: over sockets of the sandbox's own loopback, signed with a key that is made for this kernel and is
in a file, until the kernel has read it, that only this user can read.
"""

import _thread
import os
import re
import shutil
import signal
import sys
import tempfile

READY_SECONDS = 50
MAX_LAST_WORDS = 1500
POLL_SECONDS = 0.2
REPLY_SECONDS = 2
ESCAPES = re.compile("\x1b\\[[0-9;]*[A-Za-z]")
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
IMAGES = ("image/png", "image/jpeg", "image/svg+xml")


class Kernel:
    """`was_interrupted`: an interrupt was requested."""

    def __init__(self, name):
        self.name = name
        self.was_interrupted = False
        self.is_ready = False
        self.last_words = b""
        # Of this kernel alone: the key of its connection is in here.
        self.folder = tempfile.mkdtemp(prefix="svc-kernel-")
        os.environ["JUPYTER_RUNTIME_DIR"] = self.folder
        # A debugger comes with the kernel of Python, and would warn about itself on stderr.
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

    def start(self):
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager(kernel_name=self.name)
        printed, end = os.pipe()
        _thread.start_new_thread(self.read_printed, (printed,))
        self.manager.start_kernel(stdout=end, stderr=end, preexec_fn=die_with_parent)
        os.close(end)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=READY_SECONDS)
        # Both sides have read it.
        shutil.rmtree(self.folder, ignore_errors=True)
        self.is_ready = True

    def read_printed(self, printed):
        """What the kernel prints past its protocol: while it starts, that is of interest only if it fails."""
        while True:
            data = os.read(printed, 65536)
            if not data:
                return
            if self.is_ready:
                streams.write(2, data)
            else:
                self.last_words = (self.last_words + data)[-MAX_LAST_WORDS:]

    def interrupt(self, _number, _frame):
        self.was_interrupted = True

    def run(self, source, is_quiet):
        """Status, text of the last value, the exception as an answer has it, and the number of the code."""
        self.was_interrupted = is_told = False
        asked = self.client.execute(source, allow_stdin=False, stop_on_error=False)
        unit = Unit(is_quiet)
        while not unit.is_idle:
            if self.was_interrupted and not is_told:
                is_told = True
                self.manager.interrupt_kernel()
            message = self.next_message()
            if message is None:
                # Not every kernel respects `allow_stdin: False`.
                if unit.exception is NO_EXCEPTION and self.asks_for_input():
                    unit.fail({"ename": "InputRefused", "evalue": "the code asks for input, which is not available here"})
                    self.manager.interrupt_kernel()
                continue
            about = message["parent_header"]
            # What it says while it starts is about no code.
            if about.get("msg_type") != "execute_request":
                continue
            is_ours = about.get("msg_id") == asked
            unit.take(message["header"]["msg_type"], message["content"], is_ours)
        unit.take_reply(self.reply_to(asked), is_told)
        if unit.is_success:
            return b"s", unit.shown, unit.exception, unit.number
        is_end = is_told or unit.exception[0] == "KeyboardInterrupt"
        return (b"i" if is_end else b"e"), unit.shown, unit.exception, unit.number

    def asks_for_input(self):
        from queue import Empty

        try:
            return self.client.get_stdin_msg(timeout=0)["header"]["msg_type"] == "input_request"
        except Empty:
            return False

    def reply_to(self, asked):
        """None: there is none. It is sent before the kernel says that it is idle, but over another socket."""
        from queue import Empty

        try:
            while True:
                message = self.client.get_shell_msg(timeout=REPLY_SECONDS)
                if message["parent_header"].get("msg_id") == asked:
                    return message["content"]
        except Empty:
            return None

    def next_message(self):
        from queue import Empty

        try:
            return self.client.get_iopub_msg(timeout=POLL_SECONDS)
        except Empty:
            if self.manager.is_alive():
                return None
            # What it said before it died is here already.
            leave("The kernel '%s' has ended.\n" % self.name)


class Unit:
    """What a kernel says about one piece of code. Messages of earlier pieces, whose threads go on, are output too."""

    def __init__(self, is_quiet):
        # The last value is not printed.
        self.is_quiet = is_quiet
        self.is_idle = False
        self.is_success = True
        self.shown = None
        self.exception = NO_EXCEPTION
        self.number = None

    def take_reply(self, reply, is_told):
        """Interrupted kernels report the end only in their reply, and some not even there."""
        if self.exception is not NO_EXCEPTION:
            self.is_success = False
        elif reply is None:
            self.is_success = not is_told
        elif reply.get("status") != "ok":
            self.is_success = False
            if reply.get("status") == "error":
                self.fail(reply)

    def fail(self, content):
        trace = ESCAPES.sub("", "\n".join(content.get("traceback") or [])) or "%s: %s" % (
            content.get("ename"),
            content.get("evalue"),
        )
        streams.write(2, encode(trace + "\n"))
        self.exception = (content.get("ename") or "Error", content.get("evalue") or "", trace + "\n", None)

    def take(self, kind, content, is_ours):
        if kind == "stream":
            streams.write(2 if content["name"] == "stderr" else 1, encode(content["text"]))
        elif kind in ("display_data", "execute_result", "update_display_data"):
            self.show(content, is_ours and kind == "execute_result")
        elif kind == "error" and is_ours:
            self.fail(content)
        elif kind == "execute_input" and is_ours and content.get("execution_count") is not None:
            self.number = str(content["execution_count"])
        elif kind == "status" and is_ours:
            self.is_idle = content["execution_state"] == "idle"

    def show(self, content, is_main):
        data = dict(content["data"])
        text = data.setdefault("text/plain", "")
        # Of a picture the text says nothing.
        is_printed = not self.is_quiet if is_main else not any(kind in data for kind in IMAGES)
        if is_printed:
            streams.write(1, encode(text + "\n"))
        if is_main:
            self.shown = text
        bundle = Bundle(text)
        bundle.data.update(data)
        bundle.metadata = content.get("metadata") or {}
        results.send(bundle, is_main)


def die_with_parent():
    """A kernel whose driver is gone cannot be reached, so it ends with it."""
    from ctypes import CDLL

    CDLL(None).prctl(DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def leave(reason):
    streams.write(2, encode(reason))
    if kernel is not None:
        shutil.rmtree(kernel.folder, ignore_errors=True)
    os._exit(1)


def explain(name, error):
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

        known = ", ".join(sorted(KernelSpecManager().find_kernel_specs())) or "none"
        if isinstance(error, NoSuchKernel):
            return "there is no Jupyter kernel '%s' in this image; there are: %s\n" % (name, known)
    except ImportError:
        return "the image has no Jupyter client: install python3-jupyter-client (Debian) or jupyter_client (pip)\n"
    words = kernel.last_words.decode("utf-8", "replace") if kernel is not None else ""
    return "%s: %s\n%s" % (type(error).__name__, message_of(error), words)


def run_unit(source, options):
    status, shown, exception, number = kernel.run(source, options.get("quiet") is True)
    return status, (shown,) + exception + (number,)


NO_EXCEPTION = (None, None, None, None)
kernel = None
kernel_name = sys.argv.pop()
signal.signal(signal.SIGINT, signal.SIG_IGN)
private_control = private_copy(CONTROL_FD)
os.close(CONTROL_FD)
streams = Streams()
results = Results()
try:
    kernel = Kernel(kernel_name)
    kernel.start()
except BaseException as error:
    leave(explain(kernel_name, error))
signal.signal(signal.SIGINT, kernel.interrupt)
streams.write(1, b"ready\n")
try:
    serve(private_control, run_unit)
finally:
    leave("")
