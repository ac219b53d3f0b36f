"""The standard streams of an interpreter. Run first of the parts of the Python driver, which share their names."""

import builtins

# Our functions find their builtins here, so user code may replace those that it sees.
__builtins__ = dict(vars(builtins))

import fcntl
import io
import os
import sys

try:
    # To flush what C code printed. Not every Python has it.
    from ctypes import CDLL

    flush_c_streams = CDLL(None).fflush
except Exception:
    flush_c_streams = None

OWN_PID = os.getpid()
# Beyond what programs count through when they close "all" descriptors.
LOWEST_PRIVATE_FD = 128


class Streams:
    """The three standard streams: descriptors and objects. User code may close or replace any; `restore` gives them back."""

    def __init__(self):
        self.saved = {1: private_copy(1), 2: private_copy(2)}
        self.identities = {fd: identity(fd) for fd in self.saved}
        self.objects = {}
        empty_stdin()
        self.restore()

    def restore(self):
        """Returns which of stdout (1) and stderr (2) cannot be given back."""
        lost = 0
        for fd in (1, 2):
            if identity(self.saved[fd]) != self.identities[fd]:
                lost |= fd
            elif identity(fd) != self.identities[fd]:
                os.dup2(self.saved[fd], fd)
        if identity(0) is None:
            empty_stdin()
        for fd, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
            if fd not in self.objects or self.objects[fd].closed:
                self.objects[fd] = text_stream(fd, name)
                setattr(sys, "__%s__" % name, self.objects[fd])
            setattr(sys, name, self.objects[fd])
        return lost

    def flush(self):
        for fd in (1, 2):
            try:
                # A child that shares the pipe may have made it non-blocking.
                os.set_blocking(self.saved[fd], True)
            except OSError:
                pass
        for stream in (sys.stdout, sys.stderr, self.objects[1], self.objects[2]):
            try:
                stream.flush()
            except BaseException:
                # Whatever user code put there, it is replaced before the next unit.
                pass
        if flush_c_streams is not None:
            flush_c_streams(None)

    def write(self, fd, data):
        while data:
            try:
                data = data[os.write(self.saved[fd], data) :]
            except OSError:
                return


def text_stream(fd, name):
    mode = "r" if fd == 0 else "w"
    raw = io.FileIO(fd, mode, closefd=False)
    raw.name = "<%s>" % name
    if fd == 0:
        return io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "surrogateescape")
    errors = "backslashreplace" if fd == 2 else "strict"
    # By lines, so that what was printed before a sudden death is not lost.
    stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors, line_buffering=True)
    stream.mode = mode
    return stream


def empty_stdin():
    fd = os.open(os.devnull, os.O_RDONLY)
    os.dup2(fd, 0)
    if fd != 0:
        os.close(fd)


def identity(fd):
    try:
        status = os.fstat(fd)
        return status.st_dev, status.st_ino
    except OSError:
        return None


def private_copy(fd):
    """A copy that no child inherits and that is out of the way of programs that count descriptors."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST_PRIVATE_FD)
    except (OSError, ValueError):
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def read_exactly(fd, length):
    """None when the other side is gone."""
    parts = []
    while length > 0:
        part = os.read(fd, min(length, 1 << 20))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
