"""Lines that are commands rather than Python: `!command`, `%pip`, `%cd` and the like, and `%%bash` as a first line.

Part of the Python driver. Only what is no Python is looked at: the
compiler says which line it cannot read, and when that one is a command, a call takes its place.
"""

import os
import re
import sys

LINE = re.compile(r"^(\s*)(?:([A-Za-z_][\w.,\[\]\"' ]*?)\s*=\s*)?([!%])\s*(\S.*)$")
WHOLE = re.compile(r"^%%\s*(\w+)[ \t]*(.*)$")
NAME_IN_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)([\w.\[\]'\"]*)\}")
ASSIGNMENT = re.compile(r"^(\w+)(?:\s*=\s*|\s+)(.*)$")


def rewrite_commands(source, parse):
    """Python in the same lines. @raises SyntaxError what is wrong with the first line that is neither"""
    lines = source.split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    whole = WHOLE.match(lines[first])
    if whole is not None:
        body = "\n".join(lines[first + 1 :])
        return "%s__svc_cell__(%r, %r, %r)" % ("\n" * first, whole.group(1), whole.group(2), body)
    while True:
        try:
            parse("\n".join(lines))
            return "\n".join(lines)
        except SyntaxError as error:
            place = (error.lineno or 0) - 1
            if not 0 <= place < len(lines) or not rewrite_line(lines, place):
                raise


def rewrite_line(lines, place):
    found = LINE.match(lines[place])
    if found is None:
        return False
    indent, target, mark, text = found.groups()
    following = place
    while text.endswith("\\") and following + 1 < len(lines):
        following += 1
        text = text[:-1] + lines[following].strip()
        lines[following] = ""
    before = "" if target is None else "%s = " % target
    lines[place] = "%s%s__svc_line__(%r, %r, %r)" % (indent, before, mark, text.strip(), target is not None)
    return True


def run_line(mark, text, is_kept):
    if mark == "!":
        return run_shell(text, is_kept)
    name, _, rest = text.partition(" ")
    return command_of(LINE_COMMANDS, "%", name)(rest.strip())


def run_cell(name, rest, body):
    return command_of(CELL_COMMANDS, "%%", name)(rest.strip(), body)


def command_of(commands, mark, name):
    if name in commands:
        return commands[name]
    known = ", ".join(mark + one for one in sorted(commands))
    raise NameError("there is no %s%s here; known are %s. Others need a Jupyter kernel" % (mark, name, known))


def run_shell(text, is_kept):
    """What it prints is printed, unless it is kept: then it comes back as lines."""
    code, output = run_program([shell_program(), "-c", fill_in(text)], is_kept)
    runner.module.__dict__["_exit_code"] = code
    return output.decode("utf-8", "replace").splitlines() if is_kept else None


def run_script(rest, body):
    require_success([shell_program(), "-s"] + rest.split(), body.encode("utf-8"))


def run_pip(rest):
    import importlib
    import shlex
    import site

    require_success([sys.executable, "-m", "pip"] + shlex.split(fill_in(rest)))
    folder = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    if folder and os.path.isdir(folder) and folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()


def require_success(command, text=None):
    code, _ = run_program(command, False, text)
    if code != 0:
        import subprocess

        raise subprocess.CalledProcessError(code, command)


def run_program(command, is_kept, text=None):
    import subprocess

    streams.flush()
    output = subprocess.PIPE if is_kept else None
    given = subprocess.DEVNULL if text is None else subprocess.PIPE
    process = subprocess.Popen(command, stdin=given, stdout=output)
    try:
        kept, _ = process.communicate(text)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, kept


def shell_program():
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def fill_in(text):
    """`{name}` is the value of a variable of the user's; anything else in braces is the shell's."""

    def value_of(found):
        if found.group(1) not in runner.module.__dict__:
            return found.group(0)
        try:
            return str(eval(found.group(1) + found.group(2), runner.module.__dict__))
        except Exception:
            return found.group(0)

    return NAME_IN_BRACES.sub(value_of, text)


def change_folder(rest):
    os.chdir(os.path.expanduser(fill_in(rest).strip("'\"") or "~"))
    print(os.getcwd())


def use_environment(rest):
    found = ASSIGNMENT.match(rest)
    if found is not None:
        os.environ[found.group(1)] = fill_in(found.group(2))
        return None
    return os.environ[rest] if rest else dict(os.environ)


def write_file(rest, body):
    with open(os.path.expanduser(rest), "w") as file:
        file.write(body if body.endswith("\n") else body + "\n")


LINE_COMMANDS = {
    "cd": change_folder,
    "env": use_environment,
    # Figures are shown as it is.
    "matplotlib": lambda rest: None,
    "pip": run_pip,
    "pwd": lambda rest: os.getcwd(),
}
CELL_COMMANDS = {"bash": run_script, "sh": run_script, "writefile": write_file}
