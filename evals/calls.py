"""The tasks of `eval context`: calls of what another file of a repository defines.

Reads Python files. The file that defines a callee is found by the imports, with `ast`.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lcursor.errors import LcursorError

Kind = Literal["name", "arguments"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TYPED = 2
"""Characters of the callee's name before a cut inside of it."""
MIN_REST, MAX_REST = 3, 48
"""Characters of the rest of the line: neither trivial nor unpredictable."""
MAX_PER_CALLEE = 2
"""Cuts of one kind with the same callee, so that popular helpers do not dominate."""


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the repository, with the row of each function and class that it defines."""

    path: str
    text: str
    rows: Mapping[str, int]
    imports: Mapping[str, tuple[str, ...]]
    """Path of each imported file: the names imported from it, none for the module itself."""


@dataclass(frozen=True, slots=True)
class Call:
    """A cursor in or after the name of a callee that another file defines.

    Attributes:
        kind: `name` inside the callee's name, `arguments` after the opening bracket.
        path: of the file with the cursor.
        callee: its name.
        defined_in: path of the file that defines it.
        prefix: the file up to the cursor.
        rest: the true rest of the line.
        suffix: from the end of that line on.
    """

    kind: Kind
    path: str
    callee: str
    defined_in: str
    prefix: str
    rest: str
    suffix: str


def read(folder: Path) -> dict[str, Module]:
    """Read a repository; return its modules by path, relative to the parent of the folder.

    Raises:
        LcursorError: there is no Python file that can be read.
    """
    folder = folder.resolve()
    trees: dict[str, tuple[str, ast.Module]] = {}
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") or part == "node_modules" for part in inside.parts):
            continue
        try:
            text = path.read_text(encoding="utf-8")
            trees[path.relative_to(folder.parent).as_posix()] = text, ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            continue
    if not trees:
        raise LcursorError(
            f"{folder} has no Python file that can be read", "Give the folder of a Python package"
        )
    names = {_dotted(path): path for path in trees}
    inner = {name.partition(".")[2]: path for name, path in names.items() if "." in name}
    modules = {**inner, **names}  # the folder may be a package itself, or contain packages
    return {
        path: Module(path, text, _rows(tree), _imports(path, tree, modules))
        for path, (text, tree) in trees.items()
    }


def choose(modules: Mapping[str, Module], kind: Kind, count: int, seed: int) -> list[Call]:
    """Choose up to `count` calls of one kind."""
    calls = [
        call for path in sorted(modules) for call in _calls(modules, path) if call.kind == kind
    ]
    random.Random(f"{seed}:{kind}").shuffle(calls)
    seen: Counter[tuple[str, str]] = Counter()
    chosen = []
    for call in calls:
        callee = (call.defined_in, call.callee)
        seen[callee] += 1
        if seen[callee] <= MAX_PER_CALLEE:
            chosen.append(call)
    return sorted(chosen[:count], key=lambda call: (call.path, len(call.prefix)))


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _rows(tree: ast.Module) -> dict[str, int]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: node.lineno - 1 for node in tree.body if isinstance(node, kinds)}


def _bound(
    path: str, tree: ast.Module, modules: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each name that an import binds, with its file and the symbol; "" for the module."""
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules and (alias.asname or "." not in alias.name):
                    yield alias.asname or alias.name, modules[alias.name], ""
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                upper = package[: len(package) - node.level + 1]
                base = ".".join([*upper, *([base] if base else [])])
            for alias in node.names:
                name = alias.asname or alias.name
                if f"{base}.{alias.name}" in modules:
                    yield name, modules[f"{base}.{alias.name}"], ""
                elif base in modules:
                    yield name, modules[base], alias.name


def _imports(path: str, tree: ast.Module, modules: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for _, other, symbol in _bound(path, tree, modules):
        if other != path:
            found[other] = (*found.get(other, ()), *([symbol] if symbol else []))
    return found


def _calls(modules: Mapping[str, Module], path: str) -> Iterator[Call]:
    """Yield every call in a file that can be cut, in both ways."""
    text = modules[path].text
    tree = ast.parse(text)
    dotted = {_dotted(other): other for other in modules}
    inner = {name.partition(".")[2]: other for name, other in dotted.items() if "." in name}
    bound = {name: (other, what) for name, other, what in _bound(path, tree, {**inner, **dotted})}
    lines = text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.func.end_col_offset is None:
            continue
        func = node.func
        if isinstance(func, ast.Name) and bound.get(func.id, ("", ""))[1]:
            other, callee = bound[func.id]
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            other, what = bound.get(func.value.id, ("", "-"))
            callee = "" if what else func.attr
        else:
            continue
        name = func.id if isinstance(func, ast.Name) else func.attr
        if other == path or other not in modules or callee not in modules[other].rows:
            continue
        row = (func.end_lineno or 1) - 1
        line = lines[row]
        end = len(line.encode()[: func.end_col_offset].decode())
        places: dict[Kind, int] = {"name": end - len(name) + TYPED}
        if line[end : end + 1] == "(":
            places["arguments"] = end + 1
        for kind, at in places.items():
            rest = line[at:]
            if at < end + 2 and MIN_REST <= len(rest.strip()) <= MAX_REST and len(name) > TYPED:
                before = "\n".join([*lines[:row], line[:at]])
                after = "".join("\n" + each for each in lines[row + 1 :])
                yield Call(kind, path, callee, other, before, rest, after)
