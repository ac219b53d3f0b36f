"""Values that code shows, as MIME bundles. Part of the Python driver.

A result is JSON: `data` and `metadata` by MIME type, `main` (whether it is the value of a last expression) and `left_out`,
what is missing of it. It is written to stdout in pieces like those of an answer, behind a mark of its own: the first one of
the unit with every bit turned.
"""

import _thread
import binascii
import json
import os
import sys

MAX_FORM_BYTES = 4 * 1024 * 1024
MAX_RESULTS_BYTES = 8 * 1024 * 1024
MAX_RESULTS = 256
MAX_SHOWN_TEXT = 1024 * 1024
MAX_ROWS = 1000
MAX_COLUMNS = 200
# What is walked through to find out whether it is JSON.
MAX_NODES = 50000
MAX_DEPTH = 32
# Larger ones are not the same number in every language.
MAX_INTEGER = 2**53 - 1
TABLE = "application/vnd.svc.table+json"
FORMS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_pdf_", "application/pdf"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
)
KINDS = {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "M": "datetime", "m": "duration"}


class Bundle:
    """The forms of one value. A form that fails is left out; an interruption is not held up."""

    def __init__(self, text):
        self.data = {"text/plain": text}
        self.metadata = {}
        self.left_out = []

    def attempt(self, kind, make):
        try:
            found = make()
            if isinstance(found, tuple) and len(found) == 2:
                found, about = found
                if about:
                    self.metadata[kind] = about
            if found is not None:
                self.data[kind] = found
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.leave_out(kind, None, "failed", "%s: %s" % (type(error).__name__, message_of(error)))

    def leave_out(self, kind, size, reason, detail=""):
        self.left_out.append({"type": kind, "bytes": size, "reason": reason, "detail": detail[:300]})

    def add_forms(self, value):
        """Methods are looked for where the language looks for its own: an object that has any attribute has none of them."""
        if isinstance(value, type):
            return
        kind = type(value)
        make = getattr(kind, "_repr_mimebundle_", None)
        if make is not None:
            self.add_many(lambda: make(value, include=None, exclude=None))
        for method, mime in FORMS:
            make = getattr(kind, method, None)
            is_there = mime in self.data or (mime == "image/jpeg" and "image/png" in self.data)
            if make is not None and not is_there:
                self.attempt(mime, lambda make=make: make(value))
        self.add_known(value)

    def add_many(self, make):
        try:
            found = make()
            data, metadata = found if isinstance(found, tuple) else (found, {})
            text = self.data["text/plain"]
            self.data.update(data or {})
            self.data["text/plain"] = text
            self.metadata.update(metadata or {})
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            detail = "_repr_mimebundle_ raised %s: %s" % (type(error).__name__, message_of(error))
            self.leave_out("text/html", None, "failed", detail)

    def add_known(self, value):
        module = type(value).__module__.split(".")[0] if isinstance(type(value).__module__, str) else ""
        name = type(value).__name__
        if module == "matplotlib" and hasattr(type(value), "savefig"):
            self.attempt("image/png", lambda: png_of(value))
            self.attempt(CHART, lambda: chart_of(value))
        elif module == "pandas" and name == "DataFrame":
            self.attempt(TABLE, lambda: table_of(value))
        elif module == "pandas" and name == "Series":
            self.attempt(TABLE, lambda: table_of(value.to_frame()))
        elif type(value) in (dict, list) and "application/json" not in self.data and is_json(value):
            self.data["application/json"] = value


class Results:
    """Sends results while a unit runs. Those of threads that go on and of children that were forked are printed only."""

    def __init__(self):
        self.mark = None
        self.lock = _thread.allocate_lock()
        self.writer = None
        self.is_interrupted = False
        self.count = 0
        self.left = MAX_RESULTS_BYTES

    def begin(self, first_mark):
        with self.lock:
            self.mark = bytes(byte ^ 0xFF for byte in first_mark)
            self.count = 0
            self.left = MAX_RESULTS_BYTES

    def end(self):
        with self.lock:
            self.mark = None

    def hold_interrupt(self):
        """True: a result is half written, and the interruption comes when it is whole."""
        self.is_interrupted = self.writer == _thread.get_ident()
        return self.is_interrupted

    def send(self, bundle, is_main):
        # What is called in here may be the user's, and display something, too.
        if self.mark is None or os.getpid() != OWN_PID or self.writer == _thread.get_ident():
            return
        streams.flush()
        try:
            data = self.encode(bundle, is_main)
        except KeyboardInterrupt:
            raise
        except BaseException:
            # User code broke what it is made with; what was printed is all there is.
            return
        with self.lock:
            self.count += 1
            # One too many shows that there were more.
            if self.mark is not None and self.count <= MAX_RESULTS + 1:
                self.writer = _thread.get_ident()
                write_pieces(1, self.mark, data)
                self.writer = None
        if self.is_interrupted:
            self.is_interrupted = False
            raise KeyboardInterrupt

    def encode(self, bundle, is_main):
        forms = []
        for kind, value in bundle.data.items():
            try:
                form = encode_form(bundle, kind, value)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                bundle.leave_out(kind, None, "invalid", "%s: %s" % (type(error).__name__, message_of(error)))
                continue
            forms.append((kind, form))
        kept = []
        for kind, form in sorted(forms, key=lambda one: len(one[1])):
            size = len(form)
            if size > MAX_FORM_BYTES:
                bundle.leave_out(kind, size, "too_large")
            elif size > self.left:
                bundle.leave_out(kind, size, "too_many")
            else:
                self.left -= size
                kept.append("%s:%s" % (json.dumps(kind), form))
        try:
            metadata = json.dumps(bundle.metadata, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            metadata = "{}"
        left_out = json.dumps([one for one in bundle.left_out if isinstance(one["type"], str)][:32])
        whole = '{"data":{%s},"metadata":%s,"main":%s,"left_out":%s}'
        return (whole % (",".join(kept), metadata, "true" if is_main else "false", left_out)).encode("ascii")


def encode_form(bundle, kind, value):
    if not isinstance(kind, str):
        raise TypeError("its type is no text")
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = binascii.b2a_base64(bytes(value), newline=False).decode("ascii")
    is_json_type = kind == "application/json" or kind.endswith("+json")
    if kind == "text/plain" and isinstance(value, str) and len(value) > MAX_SHOWN_TEXT:
        bundle.leave_out(kind, len(value), "too_large", "the first %d characters are here" % MAX_SHOWN_TEXT)
        value = value[:MAX_SHOWN_TEXT]
    if not is_json_type and not isinstance(value, str):
        raise TypeError("it is neither text nor bytes")
    return json.dumps(value, allow_nan=False)


def is_json(value):
    """Whether it means the same as JSON, and is small enough to look."""
    level, nodes = [value], 0
    for _ in range(MAX_DEPTH):
        inner = []
        for one in level:
            nodes += 1
            kind = type(one)
            if nodes > MAX_NODES or not (kind in (dict, list, str, bool, int, float) or one is None):
                return False
            if kind is int and abs(one) > MAX_INTEGER or kind is float and one - one != 0:
                return False
            if kind is dict:
                if any(type(key) is not str for key in one):
                    return False
                inner.extend(one.values())
            elif kind is list:
                inner.extend(one)
            if len(inner) > MAX_NODES:
                return False
        if not inner:
            return True
        level = inner
    return False


def table_of(frame):
    """Columns with their names and types, and the first rows. An index that says something is the first column."""
    index = frame.index
    is_plain = type(index).__name__ == "RangeIndex" and index.name is None and list(index[:1]) in ([0], [])
    count = len(frame)
    part = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    if not is_plain:
        part = part.copy()
        names = [str(name) if name is not None else "index" for name in part.index.names]
        for place, name in enumerate(names):
            part.insert(place, name, part.index.get_level_values(place), allow_duplicates=True)
    columns, values = [], []
    for place in range(part.shape[1]):
        column = part.iloc[:, place]
        kind = KINDS.get(getattr(column.dtype, "kind", "O"), "string")
        columns.append({"name": str(part.columns[place]), "type": kind})
        values.append([cell_of(cell) for cell in column])
    rows = [list(row) for row in zip(*values)]
    is_cut = count > MAX_ROWS or frame.shape[1] > MAX_COLUMNS
    return {"columns": columns, "rows": rows, "row_count": count, "truncated": is_cut}


def cell_of(value):
    if hasattr(value, "item") and not hasattr(value, "isoformat"):
        value = value.item()
    if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, bool) or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def png_of(figure):
    import io

    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return picture.getvalue()


def print_text(text):
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    sys.stdout.write("\n")


def show(value, text, is_main):
    bundle = Bundle(text)
    try:
        bundle.add_forms(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        bundle.leave_out("text/html", None, "failed", "%s: %s" % (type(error).__name__, message_of(error)))
    results.send(bundle, is_main)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and "image/png" in bundle.data and hasattr(type(value), "savefig"):
        # It was shown, and is not shown once more as an open figure.
        pyplot.close(value)


def display(*values, **options):
    """Shows values in all their forms. With `raw=True` they are such forms, by MIME type."""
    for value in values:
        if options.get("raw") and isinstance(value, dict):
            bundle = Bundle(str(value.get("text/plain", "")))
            bundle.data.update(value)
            bundle.metadata = options.get("metadata") or {}
            if bundle.data["text/plain"]:
                print_text(bundle.data["text/plain"])
            else:
                del bundle.data["text/plain"]
            results.send(bundle, False)
        else:
            text = repr(value)
            print_text(text)
            show(value, text, False)


def show_figures(*_, **__):
    """Those that are open, once each: what plt.show() does, and what is done when a unit has ended."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        show(figure, repr(figure), False)
    pyplot.close("all")


class Patcher:
    """Gives modules that show things our way to do so, as soon as they are imported."""

    patches = {
        "matplotlib.pyplot": lambda module: setattr(module, "show", show_figures),
        "IPython.display": lambda module: setattr(module, "display", display),
    }

    def find_spec(self, name, path=None, target=None):
        patch = self.patches.get(name)
        if patch is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is None:
                continue
            load = getattr(spec.loader, "exec_module", None)
            if load is not None:
                spec.loader.exec_module = lambda module: (load(module), patch(module))
            return spec
        return None
