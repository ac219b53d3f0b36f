"""Writes the synchronous API of the Python SDK from its asynchronous source, as JSON of texts by file name.

Each public class `AsyncX` of `_async` becomes a class `X` of `_sync` with the same methods, without
`async`: it holds an `AsyncX`, and each method waits for that one's (svc_sdk/_client/portal.py). Names that
begin with one underscore stay inside.
"""

import ast
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).parent.parent / "packages/sdk-python/src/svc_sdk/_async"
#: Longer lists are written one by one.
LINE = 60
SPECIAL = {"__aenter__": "__enter__", "__aexit__": "__exit__"}
KEPT = ("__repr__", "_repr_html_")
HEAD = '"""Generated from ../_async/{name} by `make generate`."""'


def main() -> None:
    modules = {path.name: ast.parse(path.read_text()) for path in sorted(SOURCE.glob("*.py"))}
    homes = {
        each.name: name.removesuffix(".py")
        for name, module in modules.items()
        for each in module.body
        if isinstance(each, ast.ClassDef) and each.name.startswith("Async")
    }
    texts = {name: Module(name, module, homes).text() for name, module in modules.items()}
    texts["__init__.py"] = HEAD.format(name="") + "\n"
    json.dump({name: text for name, text in texts.items() if text}, sys.stdout)


class Module:
    """One file of the synchronous API."""

    def __init__(self, name: str, module: ast.Module, homes: dict[str, str]) -> None:
        self.name = name
        self.module = module
        self.homes = homes
        self.own = [
            each
            for each in module.body
            if isinstance(each, ast.ClassDef) and each.name.startswith("Async")
        ]

    def text(self) -> str:
        classes = "\n\n".join(self.class_text(each) for each in self.own)
        if not classes:
            return ""
        lines = [HEAD.format(name=self.name), "", "from __future__ import annotations", ""]
        named = re.sub(r'""".*?"""', "", classes, flags=re.DOTALL)
        constants = self.constants(named)
        constants += [""] * bool(constants)
        return "\n".join([*lines, *self.imports(named), "", *constants, "", classes])

    def imports(self, classes: str) -> list[str]:
        """Those of the source that the text uses, from one folder aside."""
        found = []
        for each in self.module.body:
            if not isinstance(each, ast.ImportFrom) or each.module == "__future__":
                continue
            used = [alias for alias in each.names if is_used(alias.name, classes)]
            where = "." * each.level + (each.module or "")
            if used and not (each.level == 1 and used[0].name in self.homes):
                if each.level == 1:
                    where = f".._async.{each.module}"
                found.append(f"from {where} import {', '.join(alias.name for alias in used)}")
        if is_used("Iterator", classes):
            found.append("from collections.abc import Iterator")
        found.append("from .._client import portal")
        for name, home in self.homes.items():
            plain = name.removeprefix("Async")
            is_own = any(each.name == name for each in self.own)
            if is_used(name, classes):
                found.append(f"from .._async.{home} import {name}")
            if not is_own and is_used(plain, classes):
                found.append(f"from .{home} import {plain}")
        return sorted(set(found), key=lambda line: (line.startswith("from ."), line))

    def constants(self, classes: str) -> list[str]:
        """Those that defaults name."""
        return [
            ast.unparse(each)
            for each in self.module.body
            if isinstance(each, ast.Assign) and is_used(ast.unparse(each.targets[0]), classes)
        ]

    def class_text(self, node: ast.ClassDef) -> str:
        plain = node.name.removeprefix("Async")
        lines = [f"class {plain}:", *docstring(node, 1)]
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        held = [each for each in fields if self.is_ours(ast.unparse(each.annotation))]
        lines += [""] * bool(held)
        for each in held:
            lines.append(f"    {ast.unparse(each.target)}: {self.plain(ast.unparse(each.annotation))}")
        lines += self.constructor(node, held)
        for each in fields:
            if each not in held:
                name, kind = ast.unparse(each.target), ast.unparse(each.annotation)
                lines += ["", "    @property", f"    def {name}(self) -> {kind}:"]
                lines.append(f"        return self._inner.{name}")
        for each in node.body:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines += self.method(node.name, each)
        return "\n".join(lines) + "\n"

    def constructor(self, node: ast.ClassDef, held: list[ast.AnnAssign]) -> list[str]:
        """A class whose constructor takes options is made by callers; others are handed out."""
        plain = node.name.removeprefix("Async")
        functions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        init = next((each for each in functions if each.name == "__init__"), None)
        if init is None:
            return []
        attach = ["        self._inner = inner"]
        for each in held:
            name = ast.unparse(each.target)
            kind = self.plain(ast.unparse(each.annotation))
            attach.append(f"        self.{name} = {kind}._of(inner.{name})")
        lines = []
        if init.args.kwonlyargs:
            given = ", ".join(f"{each.arg}={each.arg}" for each in init.args.kwonlyargs)
            lines += ["", f"    def __init__({self.parameters(init)}) -> None:", *docstring(init, 2)]
            lines.append(f"        self._attach({node.name}({given}))")
        lines += ["", "    @classmethod", f"    def _of(cls, inner: {node.name}) -> {plain}:"]
        lines += ["        made = cls.__new__(cls)", "        made._attach(inner)", "        return made"]
        return [*lines, "", f"    def _attach(self, inner: {node.name}) -> None:", *attach]

    def method(self, owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
        if node.name.startswith("_") and node.name not in (*SPECIAL, *KEPT):
            return []
        name = SPECIAL.get(node.name, node.name)
        decorators = [ast.unparse(each) for each in node.decorator_list]
        returns = ast.unparse(node.returns) if node.returns else "None"
        lines = ["", *(f"    @{each}" for each in decorators)]
        lines += [f"    def {name}({self.parameters(node)}) -> {self.plain(returns)}:"]
        lines += docstring(node, 2)
        target = owner if "staticmethod" in decorators else "self._inner"
        call = f"{target}.{node.name}"
        if "property" not in decorators:
            call += f"({self.arguments(node)})"
        return [*lines, *self.body(node, call, returns)]

    def body(self, node: ast.AST, call: str, returns: str) -> list[str]:
        iterated = re.fullmatch(r"AsyncIterator\[(.*)\]", returns)
        is_awaited = isinstance(node, ast.AsyncFunctionDef)
        if iterated and is_awaited and not has_yield(node):
            call, is_awaited = f"portal.run({call})", False
        if iterated:
            if not self.is_ours(iterated[1]):
                return [f"        return portal.iterate({call})"]
            return [f"        for each in portal.iterate({call}):", f"            yield {self.made('each', iterated[1])}"]
        value = f"portal.run({call})" if is_awaited else call
        if getattr(node, "name", "") == "__aenter__":
            return [f"        {value}", "        return self"]
        if returns == "None":
            return [f"        {value}"]
        many = re.fullmatch(r"tuple\[(Async\w+), \.\.\.\]", returns)
        if many:
            return [f"        return tuple({self.made('each', many[1])} for each in {value})"]
        return [f"        return {self.made(value, returns)}"]

    def made(self, value: str, kind: str) -> str:
        return f"{self.plain(kind)}._of({value})" if kind in self.homes else value

    def parameters(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """On one line where they fit, or else one by one."""
        plain = self.all_parameters(node.args)
        line = ", ".join(plain)
        if len(line) < LINE:
            return line
        return "\n" + "".join(f"        {each},\n" for each in plain) + "    "

    def all_parameters(self, args: ast.arguments) -> list[str]:
        defaults: list[ast.expr | None] = [None] * (len(args.args) - len(args.defaults))
        found = [self.parameter(*each) for each in zip(args.args, [*defaults, *args.defaults])]
        found += ["*"] * bool(args.kwonlyargs)
        found += [self.parameter(*each) for each in zip(args.kwonlyargs, args.kw_defaults)]
        return found + [f"**{self.parameter(each)}" for each in (args.kwarg,) if each]

    def parameter(self, argument: ast.arg, default: ast.expr | None = None) -> str:
        kind = "" if argument.annotation is None else f": {self.plain(ast.unparse(argument.annotation))}"
        return f"{argument.arg}{kind}{'' if default is None else f' = {ast.unparse(default)}'}"

    def arguments(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        given = [self.given(each) for each in node.args.args if each.arg != "self"]
        given += [f"{each.arg}={self.given(each)}" for each in node.args.kwonlyargs]
        if node.args.kwarg:
            given.append(f"**{node.args.kwarg.arg}")
        line = ", ".join(given)
        return line if len(line) < LINE else "\n" + "".join(f"            {each},\n" for each in given) + "        "

    def given(self, argument: ast.arg) -> str:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if re.match(r"Content\b", kind):
            return f"portal.content({argument.arg})"
        if re.match(r"On(Text|Result|Error|Count|Progress|File)\b", kind):
            return f"portal.listener({argument.arg})"
        return f"portal.inner({argument.arg})" if self.is_ours(kind) else argument.arg

    def is_ours(self, kind: str) -> bool:
        return any(is_used(name, kind) for name in self.homes)

    def plain(self, text: str) -> str:
        text = re.sub(r"\bAsyncIterator\b", "Iterator", text)
        return re.sub(r"\bAsync(\w+)", lambda f: f[1] if f[0] in self.homes else f[0], text)


def is_used(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}\b", text) is not None


def has_yield(node: ast.AST) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))


def docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, depth: int) -> list[str]:
    text = ast.get_docstring(node)
    if text is None:
        return []
    indent = "    " * depth
    lines = text.replace("\\", "\\\\").split("\n")
    body = [f"{indent}{line}".rstrip() for line in lines[1:]]
    if not body:
        return [f'{indent}"""{lines[0]}"""']
    last = [] if "" not in lines else [f'{indent}"""']
    if not last:
        body[-1] += '"""'
    return [f'{indent}"""{lines[0]}', *body, *last]


main()
