"""What E2B's clients for Python see of our server, as one line of JSON. The test beside it says what they have to see."""

import asyncio
import json

from e2b import AsyncSandbox, FilesystemEventType, PtySize, Sandbox, SandboxQuery, Template, Volume
from e2b_code_interpreter import AsyncSandbox as AsyncInterpreter
from e2b_code_interpreter import Sandbox as Interpreter

seen = {}


def error_of(work):
    try:
        work()
    except Exception as error:
        return type(error).__name__
    return None


def commands(sandbox):
    result = sandbox.commands.run("echo $A; whoami; pwd", envs={"A": "1"}, cwd="/tmp")
    process = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(process.pid, "typed\n")
    for out, _err, _pty in process:
        if out is not None:
            break
    listed = process.pid in [each.pid for each in sandbox.commands.list()]
    killed = [sandbox.commands.kill(process.pid), sandbox.commands.kill(process.pid)]
    return {
        "stdout": result.stdout,
        "typed": out,
        "listed": listed,
        "killed": killed,
        "exit": error_of(lambda: sandbox.commands.run("exit 3")),
        "timeout": error_of(lambda: sandbox.commands.run("sleep 100", timeout=1)),
        "cwd": error_of(lambda: sandbox.commands.run("true", cwd="/nope")),
        "user": error_of(lambda: sandbox.commands.run("true", user="nobody-here")),
    }


def files(sandbox):
    written = sandbox.files.write("/tmp/d/ü.txt", "hello")
    both = sandbox.files.write_files([{"path": "one", "data": "1"}, {"path": "x/two", "data": b"2"}])
    sandbox.files.make_dir("/tmp/watched")
    watch = sandbox.files.watch_dir("/tmp/watched")
    sandbox.files.write("/tmp/watched/new", "x")
    events = []
    while not any(event.type == FilesystemEventType.WRITE for event in events):
        events += watch.get_new_events()
    watch.stop()
    moved = sandbox.files.rename("/tmp/d/ü.txt", "/tmp/e/v.txt")
    return {
        "written": written.path,
        "both": [each.path for each in both],
        "read": sandbox.files.read("/tmp/e/v.txt"),
        "bytes": len(sandbox.files.read("/tmp/e/v.txt", format="bytes")),
        "stream": b"".join(sandbox.files.read("/tmp/e/v.txt", format="stream")).decode(),
        "made": [sandbox.files.make_dir("/tmp/f"), sandbox.files.make_dir("/tmp/f")],
        "moved": [moved.path, moved.owner, moved.permissions],
        "listed": [each.path for each in sandbox.files.list("/tmp/e")],
        "exists": [sandbox.files.exists("/tmp/e"), sandbox.files.exists("/nope")],
        "missing": error_of(lambda: sandbox.files.read("/nope")),
        "unwatched": error_of(lambda: sandbox.files.watch_dir("/nope")),
        "first_event": [events[0].type.value, events[0].name],
    }


def control(sandbox):
    sandbox.set_timeout(900)
    info = sandbox.get_info()
    pages = Sandbox.list(query=SandboxQuery(metadata={"a b": "b&c"}))
    listed = [each.sandbox_id for each in pages.next_items()]
    snapshot = sandbox.create_snapshot(name="from-python")
    removed = [Sandbox.delete_snapshot(snapshot.snapshot_id), Sandbox.delete_snapshot(snapshot.snapshot_id)]
    return {
        "state": info.state.value,
        "metadata": info.metadata,
        "listed": sandbox.sandbox_id in listed,
        "snapshot": removed,
        "template": [Template.exists("base"), Template.exists("no-such-template")],
        "pause": error_of(sandbox.pause),
        "key": error_of(lambda: Sandbox.create(api_key="svc_wrong")),
        "unknown": error_of(lambda: Sandbox.create("no-such-template")),
    }


def volume():
    made = Volume.create("from-python")
    made.write_file("/a/b.txt", "kept")
    return {
        "read": made.read_file("/a/b.txt"),
        "listed": [each.path for each in made.list("/a")],
        "missing": error_of(lambda: made.read_file("/nope")),
        "destroyed": [Volume.destroy(made.volume_id), Volume.destroy(made.volume_id)],
    }


def code():
    with Interpreter.create() as sandbox:
        shown = sandbox.run_code("print('said'); 'value'")
        error = sandbox.run_code("1/0").error
        lines = []
        sandbox.run_code("print('streamed')", on_stdout=lambda each: lines.append(each.line))
        given = sandbox.run_code("import os; os.environ.get('ONCE')", envs={"ONCE": "here"}).text
        context = sandbox.create_code_context(cwd="/tmp")
        inside = sandbox.run_code("import os; os.getcwd()", context=context).text
        contexts = [each.language for each in sandbox.list_code_contexts()]
        sandbox.restart_code_context(context)
        sandbox.remove_code_context(context)
        frame = sandbox.run_code("import pandas as pd; pd.DataFrame({'n': [1, 2]})").results[0]
        drawn = sandbox.run_code("import matplotlib.pyplot as plt; plt.plot([1, 4]); plt.title('Two'); plt.show()")
        figure = drawn.results[0]
        slow = error_of(lambda: sandbox.run_code("import time; time.sleep(100)", timeout=2))
        return {
            "text": shown.text,
            "stdout": shown.logs.stdout,
            "error": [error.name, error.value],
            "lines": lines,
            "variables": [given, sandbox.run_code("os.environ.get('ONCE')").text],
            "inside": inside,
            "contexts": contexts,
            "gone": error_of(lambda: sandbox.run_code("1", context=context)),
            "frame": [frame.data, frame.text is not None, frame.html is not None],
            "figure": figure.png is not None and len(figure.png) > 1000,
            "chart": [figure.chart.type.value, figure.chart.title, figure.chart.elements[0].points],
            "counts": [shown.execution_count, drawn.execution_count],
            "slow": slow,
            "after": sandbox.run_code("2 + 2").text,
            "json": json.loads(shown.to_json())["results"][0]["text"],
        }


async def asynchronous():
    sandbox = await AsyncSandbox.create(metadata={"of": "async"})
    events = []
    watch = await sandbox.files.watch_dir("/tmp", on_event=lambda event: events.append(event.name))
    await sandbox.files.write("/tmp/seen", "x")
    while "seen" not in events:
        await asyncio.sleep(0.05)
    await watch.stop()
    results = await asyncio.gather(*[sandbox.commands.run(f"echo {n}") for n in range(8)])
    said = []
    terminal = await sandbox.pty.create(size=PtySize(rows=24, cols=80), on_data=lambda data: said.append(data))
    await sandbox.pty.send_stdin(terminal.pid, b"echo $((6*7)); exit\n")
    ended = await terminal.wait()
    alive = [await sandbox.is_running(), await sandbox.kill(), await sandbox.is_running()]
    interpreter = await AsyncInterpreter.create()
    text = (await interpreter.run_code("1 + 1")).text
    await interpreter.kill()
    return {
        "outputs": [each.stdout for each in results],
        "terminal": [b"42" in b"".join(said), ended.exit_code],
        "alive": alive,
        "text": text,
        "gone": await error_of_async(sandbox.commands.run("true")),
    }


async def error_of_async(work):
    try:
        await work
    except Exception as error:
        return type(error).__name__
    return None


with Sandbox.create(metadata={"a b": "b&c"}, timeout=600) as sandbox:
    seen["commands"] = commands(sandbox)
    seen["files"] = files(sandbox)
    seen["control"] = control(sandbox)
seen["volume"] = volume()
seen["code"] = code()
seen["async"] = asyncio.run(asynchronous())
print(json.dumps(seen))
