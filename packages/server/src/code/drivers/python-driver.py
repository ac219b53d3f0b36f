"""Runs units of Python code one after the other in one namespace, for a server outside of the sandbox.

Run by a line that gives it a file name of its own, after the other python-….py, which share its names; the first of them says
what it speaks with the server. Works with Python 3.6 and later and needs no file of its own.

User code shares this process, so nothing here can be hidden from code that looks for it. What must hold is that no code
ends a unit, breaks the next one or gets hold of a descriptor of ours by accident.
"""

import builtins
import __future__
# Not `signal`: that one is written in Python and breaks with the builtins.
import _signal
import linecache
import os
import sys
import traceback
import types

OWN_FILE = (lambda: 0).__code__.co_filename
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
# ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
AWAIT_FLAG = 0x2000 if sys.version_info >= (3, 8) else 0
IS_COROUTINE = 0x80  # inspect.CO_COROUTINE
MAX_FRAMES = 50
CELL = "<cell "
FUTURE_FLAGS = 0
for future_name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, future_name).compiler_flag


NO_EXCEPTION = (None, None, None, None)
caller = sys._getframe
# To show such a value runs no code of the user's once its text is made.
PLAIN = (int, float, complex, bool, str, bytes, list, tuple, dict, set)


class Runner:
    """Compiles and runs units. `is_interruptible` is true exactly while user code may run."""

    def __init__(self):
        self.is_interruptible = False
        self.count = 0
        self.flags = 0
        self.shown = None
        self.is_quiet = False
        # The code of a last expression; there is nothing behind it.
        self.last = None
        self.exception = NO_EXCEPTION
        self.loop = None
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.module

    def answer(self, source, options):
        self.is_quiet = options.get("quiet") is True
        before = set_variables(options.get("env", {}))
        status = self.run(source)
        set_variables(before)
        return status, (self.shown,) + self.exception + (str(self.count),)

    def on_interrupt(self, _number, _frame):
        # One that comes too late must not hit anything of ours.
        if self.is_interruptible and not results.hold_interrupt():
            raise KeyboardInterrupt

    def run(self, source):
        self.count += 1
        self.shown = None
        self.exception = NO_EXCEPTION
        try:
            _signal.signal(_signal.SIGINT, self.on_interrupt)
            self.is_interruptible = True
            codes = self.compile(source, "<cell %d>" % self.count)
            if any(code.co_flags & IS_COROUTINE for code in codes):
                self.last = None
                self.run_until_done(codes)
            else:
                for code in codes:
                    exec(code, self.module.__dict__)
            show_figures()
            self.is_interruptible = False
            return b"s"
        except BaseException as error:
            self.is_interruptible = False
            if isinstance(error, SystemExit) and is_success(error.code):
                return b"s"
            self.exception = (type(error).__name__, message_of(error), report(error), frames_of(error))
            return b"i" if isinstance(error, KeyboardInterrupt) else b"e"

    def run_until_done(self, codes):
        """One event loop for all units, so that what one leaves in it goes on while another waits."""
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(await_all(codes, self.module.__dict__))
        try:
            self.loop.run_until_complete(task)
        except BaseException:
            # Interrupted: it is told, and may clean up, until it is interrupted once more.
            if not task.done():
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))
            raise

    def display(self, value):
        """What sys.displayhook does, and keeps what it shows."""
        if value is None:
            return
        builtins._ = None
        text = repr(value)
        if not self.is_quiet:
            is_held = self.is_end(value, caller(1)) and streams.hold(encode(text + "\n"))
            if not is_held:
                print_text(text)
        self.shown = text
        builtins._ = value
        show(value, text, True)

    def is_end(self, value, frame):
        """Whether nothing of the user's runs any more in this unit, but for threads. Figures are drawn at the end."""
        is_last = self.last is not None and frame.f_code is self.last
        return is_last and type(value) in PLAIN and "matplotlib.pyplot" not in sys.modules

    def compile(self, source, name):
        """The whole unit is compiled before any of it runs. A last expression is compiled as the REPL does, to be shown."""
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)

        def parse(text):
            return compile(text, name, "exec", self.flags | ONLY_AST | AWAIT_FLAG, True)

        try:
            tree = parse(source)
        except SyntaxError:
            tree = parse(rewrite_commands(source, parse))
        flags = self.flags | AWAIT_FLAG
        last = tree.body[-1:] if tree.body and type(tree.body[-1]).__name__ == "Expr" else []
        codes = []
        if last:
            tree.body = tree.body[:-1]
        if tree.body or not last:
            codes.append(compile(tree, name, "exec", flags, True))
            self.flags |= codes[0].co_flags & FUTURE_FLAGS
        if last:
            shown = compile("0", name, "single", ONLY_AST, True)
            shown.body = last
            codes.append(compile(shown, name, "single", flags | self.flags, True))
        self.last = codes[-1] if last else None
        return codes


def set_variables(variables):
    """Of the environment; None removes one. Returns what they were. Code may have broken `os.environ`, and loses by it alone."""
    before = {}
    try:
        for name, value in variables.items():
            before[name] = os.environ.get(name)
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    except Exception as error:
        streams.write(2, encode("The environment of this code was not set: %s\n" % message_of(error)))
    return before


async def await_all(codes, names):
    for code in codes:
        # What awaits nothing has no value either.
        coroutine = eval(code, names)
        if coroutine is not None:
            await coroutine


def is_success(exit_code):
    """exit() ends the unit, not the interpreter."""
    return exit_code is None or (type(exit_code) is int and exit_code == 0)


def report(error):
    """Prints what the REPL would, and returns it."""
    text = describe(error)
    streams.flush()
    streams.write(2, encode(text))
    return text


def describe(error):
    try:
        if isinstance(error, SystemExit):
            return "SystemExit: %s\n" % (error.code,)
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        hide_own_frames(shown)
        return "".join(shown.format())
    except BaseException:
        # User code broke what the traceback is made with.
        pass
    try:
        return "%s: %s (its traceback cannot be shown)\n" % (type(error).__name__, error)
    except BaseException:
        return "%s (it cannot be shown)\n" % type(error).__name__


def hide_own_frames(shown):
    while shown is not None:
        shown.stack[:] = user_frames(shown.stack)
        if shown.__cause__ is not None:
            hide_own_frames(shown.__cause__)
        shown = shown.__context__


def user_frames(stack):
    """From the first one of the user's code on: what called that is ours, or the event loop's."""
    stack = [frame for frame in stack if frame.filename != OWN_FILE]
    places = [place for place, frame in enumerate(stack) if frame.filename.startswith(CELL)]
    return stack[places[0] :] if places else stack


def frames_of(error):
    try:
        frames = []
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.startswith(CELL):
                frames.append([frame.filename, frame.lineno, frame.name, frame.line or ""])
        if isinstance(error, SyntaxError) and str(error.filename).startswith(CELL):
            frames.append([error.filename, error.lineno, "<module>", (error.text or "").strip()])
        return json.dumps(frames[-MAX_FRAMES:])
    except BaseException:
        # User code broke what it is made with.
        return None


_signal.signal(_signal.SIGINT, _signal.SIG_IGN)
private_control = private_copy(CONTROL_FD)
os.close(CONTROL_FD)
streams = Streams()
results = Results()
sys.meta_path.insert(0, Patcher())
# There is no screen; in children neither.
os.environ.setdefault("MPLBACKEND", "agg")
runner = Runner()
sys.argv = [""]
sys.displayhook = runner.display
builtins.display = display
builtins.__svc_line__ = run_line
builtins.__svc_cell__ = run_cell
streams.write(1, b"ready\n")
exit_code = 70
try:
    serve(private_control, runner.answer)
except OSError:
    os.write(2, b"The interpreter lost its connection: user code has closed descriptors that it did not open.\n")
finally:
    # Threads of user code must not keep an unreachable interpreter alive.
    os._exit(exit_code)
