"""Names, messages and prose use the standard terms of the field, see CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_NAMES = {
    "anew", "beside", "bill", "billed", "brains", "complaint", "door", "foreseen", "hear", "heard",
    "hush", "kin", "lane", "lanes", "lineage", "mend", "mended", "mends", "receipt", "receipts",
    "refusal", "refusals", "refuse", "refused", "refuses", "seat", "seats", "shelf", "tell",
    "telling", "tells", "told", "twin", "waiter", "waiters", "warmth", "whittle",
}  # fmt: skip
"""Words of a former vocabulary that are no part of a name, also not of a test's."""
NOT_IN_PRODUCT = NOT_IN_NAMES | {"kept", "place", "places"}
"""Words for several things, of which each has a name: location, position, cached, retained."""
STANDARD = re.compile(r"in_place|kept_chars")
"""Parts of names that have such a word: an English phrase, and a stored column."""
NOT_IN_TEXT = re.compile(
    r"\b(anew|mend(s|ed|ing)?|refus(e|es|ed|ing) (a|an|all|it|its|the|them|this|these)\b|the bill|"
    r"python half|(is|are) others (now|by now)|(take|takes|taken|taking|took) back|and its kin|"
    r"lets? go of|beside|(is|are|was) told|who (waits|asks|reads|leaves|types)|"
    r"of which (nothing|none)|one is in)\b",
    re.IGNORECASE,
)
"""Phrases of it that are not in text for users."""
OTHER_TEXT = {"lcursor/edit/rewriting/retry.py"}
"""Files with words of users, and prompts to models, which are changed only with a measurement."""
PROSE = (
    "README.md", "CONTRIBUTING.md", "Makefile", "doc/architecture.md", "doc/benchmarks.md",
    "doc/comparison.md", "doc/first-day.md", "doc/lcursor.txt", "models/README.md",
)  # fmt: skip
LUA_NAME = re.compile(
    r"\bfunction\s+([\w.:]+)|\bfunction\s*\(([\w, ]*)\)|^\s*local\s+([\w, ]+)"
    r"|---@(?:class|field|param|alias)\s+(?:\(exact\)\s+)?([\w.]+)",
    re.MULTILINE,
)


def words(name: str) -> set[str]:
    """Return the words of a name in snake_case or CamelCase, in lower case."""
    name = STANDARD.sub("", name)
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def sources(suffix: str, *folders: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file in some folders, and its text."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
            yield str(path.relative_to(ROOT)), path.read_text()


def python_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that a module defines."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def python_strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the string constants that are not docstrings."""
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def lua_names(text: str) -> Iterator[str]:
    """Yield the names that a module defines."""
    for match in LUA_NAME.finditer(text):
        yield from re.split(r",\s*", next(name for name in match.groups() if name is not None))


def bad(path: str, names: Iterator[str], strings: Iterator[str]) -> list[str]:
    """Return the names and strings of a file that use the former vocabulary."""
    former = NOT_IN_PRODUCT if path.startswith(("lcursor/", "lua/")) else NOT_IN_NAMES
    found = [name for name in [*names, Path(path).stem] if words(name) & former]
    if path not in OTHER_TEXT:
        found += [repr(text) for text in strings if NOT_IN_TEXT.search(text)]
    return [f"{path}: {each}" for each in found]


def test_python() -> None:
    found = []
    for path, text in sources(".py", "lcursor", "rplugin", "bench", "evals", "scripts"):
        nodes = list(ast.walk(ast.parse(text)))
        found += bad(path, python_names(nodes), python_strings(nodes))
    assert found == []


def test_names_of_tests() -> None:
    found = []
    for path, text in sources(".py", "tests"):
        names = re.findall(r"test_\w+(?=\.py)", path) + re.findall(
            r"^\s*def (test_\w+)", text, re.MULTILINE
        )
        found += [f"{path}: {name}" for name in names if words(name) & NOT_IN_NAMES]
    assert found == []


def test_lua() -> None:
    found = []
    for path, text in sources(".lua", "lua", "plugin"):
        found += bad(path, lua_names(text), iter(re.findall(r'"(?:[^"\\\n]|\\.)*"', text)))
    assert found == []


@pytest.mark.parametrize("name", PROSE)
def test_prose(name: str) -> None:
    text = (ROOT / name).read_text()
    assert [line for line in text.splitlines() if NOT_IN_TEXT.search(line)] == []


@pytest.mark.parametrize("text", ["Refuse the hunk", "the lines are others by now", "take back"])
def test_a_phrase_is_found(text: str) -> None:
    assert NOT_IN_TEXT.search(text)
