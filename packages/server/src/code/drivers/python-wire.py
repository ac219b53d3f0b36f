"""What a driver speaks with the server, and the standard streams it speaks on. Run first of the parts of a driver, which share
their names.

- Units come on descriptor 12, and standard input is empty. The first line on standard output is `ready`.
- A unit is its length (u32, big endian), a first mark of 16 bytes, the code, and a last mark of 16 bytes, which is not read
  before the unit has ended. The first mark is written to both output streams when the unit begins.
- When a unit has ended, everything it printed is flushed, and each output stream is given the last mark, a length (u32, big
  endian) and so many bytes of the answer, none on one of the streams. A piece is written at once and is so small that
  the output of no other writer can get into it; the highest bit of the length says that another one follows, mark first.
- The answer: a byte that says how the unit ended (`s` success, `e` error, `i` interrupted), one for which streams are lost
  (1 stdout, 2 stderr), and six texts, each after its length in bytes (u32, big endian; 0xffffffff: there is none): the
  value of a last expression as it was shown, name, message and traceback of the exception that ended the unit, where in the
  user's code it came from (JSON, a list of file, line, function and source), and the number of the unit, in digits.
- Values that are shown while the unit runs are written to stdout in such pieces, too; python-results.py says how.

The output is the whole protocol: a reader that starts later misses nothing but the bytes before.
"""

import builtins

# Our functions find their builtins here, so user code may replace those that it sees.
__builtins__ = dict(vars(builtins))

import _thread
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
CONTROL_FD = 12
MARK_BYTES = 16
# With mark and length: what a pipe takes as one.
MAX_PIECE_BYTES = 4096 - MARK_BYTES - 4
# What a pipe takes as one.
MAX_HELD_BYTES = 4096
MORE = 1 << 31
MAX_UNIT_BYTES = 64 * 1024 * 1024
# In the length of a unit: options stand before its code, as JSON with a length of its own.
HAS_OPTIONS = 1 << 31
# Of each text in an answer; the rest is cut off.
MAX_TEXT_BYTES = 1024 * 1024
# Beyond what programs count through when they close "all" descriptors.
LOWEST_PRIVATE_FD = 128


class Streams:
    """The three standard streams: descriptors and objects. User code may close or replace any; `restore` gives them back."""

    def __init__(self):
        self.saved = {1: private_copy(1), 2: private_copy(2)}
        self.identities = {fd: identity(fd) for fd in self.saved}
        self.objects = {}
        # What goes to stdout with the answer, as one piece, and the thread that holds it back.
        self.held = b""
        self.holder = None
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
                # An object that user code put there is replaced before the next unit.
                pass
        if flush_c_streams is not None:
            flush_c_streams(None)

    def hold(self, data):
        """Keeps what is for stdout until the answer is written: each piece wakes svc-init, and everybody behind it. For when nothing
        of the user's runs any more before that. False when it has to be written as ever: it is too large, or stdout is another now.
        """
        is_ours = sys.stdout is self.objects[1] and identity(1) == self.identities[1]
        if not is_ours or len(data) > MAX_HELD_BYTES or os.getpid() != OWN_PID:
            return False
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            return False
        self.holder = _thread.get_ident()
        self.held = data
        return True

    def release(self):
        held, self.held, self.holder = self.held, b"", None
        self.write(1, held)

    def write(self, fd, data):
        if fd == 1 and self.holder is not None and self.holder == _thread.get_ident():
            if len(self.held) + len(data) <= MAX_HELD_BYTES:
                self.held += data
                return
            self.release()
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


def message_of(error):
    try:
        return str(error)
    except BaseException:
        return ""


def encode(text):
    return text.encode("utf-8", "backslashreplace")


def encode_field(text):
    if text is None:
        return b"\xff\xff\xff\xff"
    data = encode(text)[:MAX_TEXT_BYTES]
    return len(data).to_bytes(4, "big") + data


def serve(control, run_unit):
    """`run_unit` returns how a unit ended and the texts of the answer."""
    while True:
        head = read_exactly(control, 4 + MARK_BYTES)
        length = int.from_bytes(head[:4], "big") if head is not None else MAX_UNIT_BYTES + 1
        has_options = bool(length & HAS_OPTIONS)
        length &= ~HAS_OPTIONS
        source = read_exactly(control, length) if length <= MAX_UNIT_BYTES else None
        if source is None:
            return
        for fd in (1, 2):
            streams.write(fd, head[4:])
        results.begin(head[4:])
        options = {}
        if has_options:
            end = 4 + int.from_bytes(source[:4], "big")
            options, source = json.loads(source[4:end].decode("utf-8")), source[end:]
        status, texts = run_unit(source.decode("utf-8", "replace"), options)
        streams.flush()
        if os.getpid() != OWN_PID:
            # User code forked, and this is its child: the unit is the parent's.
            os._exit(0 if status == b"s" else 1)
        results.end()
        mark = read_exactly(control, MARK_BYTES)
        if mark is None:
            return
        lost = streams.restore()
        fields = b"".join([encode_field(text) for text in texts])
        if lost == 3:
            return
        answer(mark, lost, status + bytes([lost]) + fields)


def answer(mark, lost, data):
    """On stdout, unless that is lost; the other stream gets only its end."""
    write_pieces(2 if lost & 1 else 1, mark, data)
    streams.release()
    if not lost:
        streams.write(2, mark + bytes(4))


def write_pieces(fd, mark, data):
    data = memoryview(data)
    while len(data) > MAX_PIECE_BYTES:
        length = (MAX_PIECE_BYTES | MORE).to_bytes(4, "big")
        streams.write(fd, mark + length + data[:MAX_PIECE_BYTES])
        data = data[MAX_PIECE_BYTES:]
    streams.write(fd, mark + len(data).to_bytes(4, "big") + data)
