"""The tasks of `eval edit`: functions with a bug, hidden tests, and examples in the docstring.

Reads HumanEvalFix (`python.jsonl` of HumanEvalPack, MIT). The examples are visible to the model,
the tests are not.
"""

from __future__ import annotations

import ast
import doctest
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lcursor.errors import LcursorError

FILE = "python.jsonl"
_SIGN = re.compile(
    r"\s*(?:#\s*)?(?:={1,3}>?|=+>|-+>|➞|→|:|(?:should\s+)?returns?:?|should\s+(?:be|return)|"
    r"would\s+be|is|must\s+be)\s*",
    re.I,
)
_GOES_ON = re.compile(r"\s*[-+*/%=]")
"""After a number that is part of a calculation and not the result."""
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


@dataclass(frozen=True, slots=True)
class Example:
    """A call in a docstring and its result."""

    call: str
    value: str
    """A Python literal."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A file with a wrong function."""

    name: str
    entry_point: str
    before: str
    """The code above the function: imports, functions that it calls."""
    head: str
    """Its signature and docstring."""
    body: str
    """The wrong body."""
    test: str

    @property
    def source(self) -> str:
        """The whole file."""
        return self.before + self.head + self.body

    def program(self, source: str) -> str:
        """Return a file with the tests appended, which pass if it is fixed."""
        return f"{source}\n\n{self.test}\n"

    def examples(self) -> tuple[Example, ...]:
        """Return the examples in the docstring."""
        return tuple(examples(self.head, self.entry_point))


def load(folder: Path) -> list[Bug]:
    """Read the tasks.

    Args:
        folder: that has `python.jsonl`; or the file itself.

    Raises:
        LcursorError: it is missing or malformed.
    """
    path = folder / FILE if folder.is_dir() else folder
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [_bug(row) for row in rows]
    except FileNotFoundError as error:
        raise LcursorError(
            f"there is no file {path}", "Give the folder of HumanEvalFix: --data DIR"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(f"{path} is not a file of HumanEvalFix ({error!r})") from error


def chosen(bugs: list[Bug], count: int, seed: int) -> list[Bug]:
    """Choose tasks; a smaller choice is part of a larger one.

    Args:
        bugs: all.
        count: 0 is all.
        seed: for the order; 0 takes the shortest first, for slow machines.
    """
    order = sorted(bugs, key=lambda bug: len(bug.source))
    if seed:
        random.Random(seed).shuffle(order)
    return order[:count] if count else order


def _bug(row: dict[str, str]) -> Bug:
    prompt, name = row["prompt"].lstrip("\n"), row["entry_point"]
    at = prompt.rfind(f"def {name}(")
    if at < 0:
        raise ValueError(f"{row['task_id']} does not define {name}")
    body = row["buggy_solution"]
    return Bug(row["task_id"], name, prompt[:at], prompt[at:], body, row["test"].strip("\n"))


def examples(head: str, entry_point: str) -> Iterator[Example]:
    """Yield the examples in a docstring."""
    docstring = _docstring(head)
    seen: set[str] = set()
    for found in (*_doctests(docstring), *_lines(docstring, entry_point)):
        if found.call not in seen and entry_point in found.call:
            seen.add(found.call)
            yield found


def _docstring(head: str) -> str:
    try:
        tree = ast.parse(head + "\n    pass\n")
    except SyntaxError:
        return ""
    found = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    return (ast.get_docstring(found) or "") if found else ""


def _doctests(docstring: str) -> Iterator[Example]:
    try:
        found = doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return
    for each in found:
        want = each.want.strip()
        call, value = each.source.strip(), _literal(want) or _literal(want.partition("\n")[0])
        if value and _is_call(call):
            yield Example(call, value)


def _lines(docstring: str, entry_point: str) -> Iterator[Example]:
    """Yield examples in other notations: `f(1) == 2`, `f(1) ➞ 2`, `f(1) should return 2`."""
    rows = [row for row in docstring.split("\n") if not row.lstrip().startswith(">>>")]
    for row in rows:
        for start in re.finditer(rf"(?<!\w){re.escape(entry_point)}\(", row):
            call = _balanced(row[start.start() :])
            if not call or not _has_literals(call):
                continue
            rest = row[start.start() + len(call) :]
            sign = _SIGN.match(rest)
            value = _longest(rest[sign.end() :]) if sign else ""
            if value:
                yield Example(call, value)


def _balanced(text: str) -> str:
    """Return the call at the beginning of a text; "" if there is no complete one."""
    for at, letter in enumerate(text):
        if letter == ")" and _is_call(text[: at + 1]):
            return text[: at + 1]
    return ""


def _is_call(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return isinstance(tree.body, ast.Call)


def _has_literals(call: str) -> bool:
    """Whether all arguments are literals; names may be variables of a formula."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    values = [*node.args, *(word.value for word in node.keywords)]
    return all(_literal(ast.unparse(value)) for value in values)


def _longest(text: str) -> str:
    """Return the longest literal at the beginning of a text."""
    text = text.strip()
    for end in range(len(text), 0, -1):
        # `5.` is a number, and the end of a sentence.
        if (end == len(text) or not text[end].isalnum()) and (found := _literal(text[:end])):
            return "" if _GOES_ON.match(text[end:]) else found
    return ""


def _literal(text: str) -> str:
    """Return a text as a Python literal; "" if it is none."""
    text = text.strip()
    if text.endswith(","):  # of a sentence
        return ""
    text = _WORDS.get(text.rstrip(".,;").lower(), text)
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return ""
    return repr(value)
