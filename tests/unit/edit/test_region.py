"""From a selection or a cursor to whole nodes: within the budget, and nothing selected left out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.code import grammars
from lcursor.edit.rewriting.region import grow

PYTHON = '''\
"""What it is."""

import os
from x import (
    one,
    two,
)

LIMIT = 3
TABLE = {
    "a": 1,
    "b": 2,
}


# Says hello.
# To all.
@cached(
    size=3,
)
def hello(name):
    """Say it."""
    text = f"hello {name}"

    if name:
        for each in name:
            print(each)
        print(text)
    return text


class Box:
    """Holds."""

    size = 3

    def __init__(self, what):
        self.what = what

    @property
    def empty(self):
        return not self.what

    def take(self):
        def inner(x):
            return x

        return inner(self.what)
'''.splitlines()
LUA = """\
local M = {}

--- Say hello.
---@param name string
function M.hello(name)
  local text = 'hello ' .. name
  print(text)
end

local function other()
  return 1
end

return M
""".splitlines()
GO = """\
package main

// Add adds.
func (b *Box) Add(x int) {
	b.sum += x
	if x > 3 {
		b.big++
	}
}
""".splitlines()
JAVASCRIPT = """\
import x from 'y'

/**
 * Says it.
 */
export function hello(name) {
  const f = (a) => {
    return a
  }
  return f(name)
}
""".splitlines()
TEXT = """\
first line
of a paragraph

another one
  with an inner line
  and one more
back again

end
""".splitlines()
DOCKER = """\
def make(x)
  if x
    one
    two
  end
end

rest
""".splitlines()


def letters(text: str) -> int:
    """Count, for the budget, what any tokenizer would count fewer of."""
    return len(text)


def row(lines: list[str], text: str) -> int:
    """Return the row that a text stands in."""
    return next(number for number, line in enumerate(lines) if text in line)


CURSORS = [
    ("in a body", PYTHON, "python", "print(each)", "# Says", "return text", "function hello"),
    ("on a blank row", PYTHON, "python", 23, "# Says", "return text", "function hello"),
    ("on a comment above", PYTHON, "python", "# Says", "# Says", "return text", "function hello"),
    ("in a decorator", PYTHON, "python", "size=3,", "# Says", "return text", "function hello"),
    ("on a method", PYTHON, "python", "self.what = what", "def __init__", "self.what = what",
     "method __init__"),
    ("on its decorator", PYTHON, "python", "@property", "@property", "return not", "method empty"),
    ("in an inner function", PYTHON, "python", "return x", "def inner", "return x",
     "function inner"),
    ("beside an inner function", PYTHON, "python", "return inner", "def take", "return inner",
     "method take"),
    ("on a class", PYTHON, "python", "class Box", "class Box", "return inner", "class Box"),
    ("on an attribute", PYTHON, "python", "size = 3", "size = 3", "size = 3", "field size"),
    ("on a constant", PYTHON, "python", '"b"', "TABLE", -1, "constant TABLE"),
    ("on an import", PYTHON, "python", "two,", "from x", 6, "lines 4 to 7"),
    ("lua", LUA, "lua", "print(text)", "--- Say", 7, "function hello"),
    ("a comment in lua", LUA, "lua", "---@param", "--- Say", 7, "function hello"),
    ("go", GO, "go", "b.big", "// Add", 8, "method Add"),
    ("javascript", JAVASCRIPT, "javascript", "return f", "/**", 10, "function hello"),
    ("a paragraph", TEXT, "text", "of a", "first", "of a", "lines 1 to 2"),
    ("words without a grammar", DOCKER, "crystal", "two", "def make", 5, "function make"),
]  # fmt: skip


@pytest.mark.parametrize("case", CURSORS, ids=lambda case: case[0])
def test_at_a_cursor(case: tuple[str, list[str], str, str | int, str, str | int, str]) -> None:
    _, lines, language, at, first, last, what = case
    at = at if isinstance(at, int) else row(lines, at)
    found = grow(lines, language, at, at, 10_000, letters)
    text = lines[found.first_row : found.last_row]
    assert first in text[0]
    if isinstance(last, int):
        assert last < 0 or found.last_row == last + 1
    else:
        assert last in text[-1]
    if "field" not in what:
        assert found.what == what


SELECTIONS = [
    ("a part of a function", "text = f", "if name", "# Says", "return text"),
    ("a part of a line's statement", "one,", "one,", "from x", ")"),
    ("two methods", "self.what = what", "return not", "def __init__", "return not"),
    ("from class to class", "# To all", "class Box", "# Says", "return inner"),
    ("a whole method", "@property", "return not", "@property", "return not"),
    ("two statements at the top", "LIMIT", '"a"', "LIMIT", "}"),
]


@pytest.mark.parametrize("case", SELECTIONS, ids=lambda case: case[0])
def test_of_a_selection(case: tuple[str, str, str, str, str]) -> None:
    _, first, last, begins, ends = case
    found = grow(PYTHON, "python", row(PYTHON, first), row(PYTHON, last) + 1, 10_000, letters)
    text = PYTHON[found.first_row : found.last_row]
    assert begins in text[0]
    assert ends in text[-1]


def test_what_is_too_much_is_not_taken() -> None:
    at = row(PYTHON, "print(each)")
    assert grow(PYTHON, "python", at, at, 30, letters).what == f"line {at + 1}"
    loop = grow(PYTHON, "python", at, at, 60, letters)
    assert "for each" in PYTHON[loop.first_row]
    assert loop.last_row == at + 1
    block = grow(PYTHON, "python", at, at, 110, letters)
    assert "if name" in PYTHON[block.first_row]


def test_a_selection_that_is_too_much_is_all_there() -> None:
    first, last = row(PYTHON, "def hello"), row(PYTHON, "self.what = what") + 1
    found = grow(PYTHON, "python", first, last, 10, letters)
    assert (found.first_row, found.last_row) == (first, last)


def test_a_class_is_not_rewritten_for_one_of_its_rows() -> None:
    size = len("\n".join(PYTHON[row(PYTHON, "class Box") :]))
    at = row(PYTHON, "size = 3")
    found = grow(PYTHON, "python", at, at + 1, size + 10, letters)
    assert (found.first_row, found.last_row) == (at, at + 1)


@pytest.mark.parametrize("lines", [[], [""], ["", "   ", ""]])
@pytest.mark.parametrize("language", ["python", "text"])
def test_an_empty_file(lines: list[str], language: str) -> None:
    found = grow(lines, language, 0, 0, 100, letters)
    assert (found.first_row, found.last_row, found.what) == (0, len(lines), "empty file")


def test_a_blank_row_between_definitions_is_a_place_for_new_code() -> None:
    at = row(PYTHON, "class Box") - 1
    found = grow(PYTHON, "python", at, at, 10_000, letters)
    assert (found.first_row, found.last_row) == (at, at)
    assert "new code" in found.what


def test_a_text_that_does_not_parse_has_regions_too() -> None:
    broken = [*PYTHON[:20], "    if (((", *PYTHON[20:]]
    at = row(broken, "print(text)")
    found = grow(broken, "python", at, at + 1, 10_000, letters)
    assert found.first_row <= at < found.last_row


def test_a_long_file_costs_little_more_than_its_parsing() -> None:
    lines = Path(grow.__code__.co_filename).read_text().split("\n")
    lines = (lines * (20_000 // len(lines) + 1))[:20_000]
    data = "\n".join(lines).encode()
    grammars.parse("python", data)
    more = []
    for _ in range(3):
        began_s = time.thread_time()
        grammars.parse("python", data)
        parsed_s = time.thread_time()
        grow(lines, "python", 15_000, 15_000, 6000, letters)
        more.append((time.thread_time() - parsed_s) - (parsed_s - began_s))
    assert min(more) < 0.05


@given(
    st.lists(st.sampled_from(PYTHON + LUA + ["", "\t", "ü = 'ß'", "]}", "\x00"]), max_size=40),
    st.integers(0, 45),
    st.integers(0, 45),
    st.sampled_from(["python", "lua", "text", "", "javascript", "markdown", "ruby", "yaml"]),
    st.integers(1, 600),
)
def test_rows_that_are_there_and_all_that_were_selected(
    lines: list[str], first: int, last: int, language: str, budget: int
) -> None:
    first, last = min(first, last), max(first, last)
    found = grow(lines, language, first, last, budget, letters)
    assert 0 <= found.first_row <= found.last_row <= len(lines)
    assert found.what
    for at in range(first, min(last, len(lines))):
        assert not lines[at].strip() or found.first_row <= at < found.last_row
