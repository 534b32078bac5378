"""The text that an edit replaces: what is replaced, and what is a problem with a hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent.tools import replace
from lcursor.agent.tools.replace import Problem, Replacement

TEXT = """\
import os


def add(a, b):
    # both
    return a - b


def sub(a, b):
    total = a - b
    return total


class Other:
    def sub(self):
        return "sub"
""".splitlines()


def applied(old: str, new: str, lines: list[str] = TEXT) -> list[str] | Problem:
    """Return the text after a replacement."""
    found = replace.find(lines, old, new)
    if isinstance(found, Problem):
        return found
    return [*lines[: found.first_row], *found.new, *lines[found.last_row :]]


EXACT = [
    ("    return a - b", "    return a + b"),
    ("return a - b\n", "return a + b\n"),
    ("# both", "# the sum"),  # a part of a line
    ("a, b):\n    # both\n    ret", "a, b, c):\n    ret"),
    ("    # both\n", ""),
    ("\n    # both", ""),
    ("import os\n\n\n", ""),
    ('        return "sub"\n', '        return "sub"\n\n    def more(self): ...\n'),
    ('return "sub"', 'return "other"\n'),
]


@pytest.mark.parametrize(("old", "new"), EXACT)
def test_an_exact_quote_is_replaced_as_text(old: str, new: str) -> None:
    body = "\n".join(TEXT) + "\n"
    assert body.count(old) == 1
    assert applied(old, new) == body.replace(old, new).removesuffix("\n").split("\n")


@given(
    st.lists(st.sampled_from(["a", "b", "", "  a", "ab", "é"]), min_size=1, max_size=8),
    st.integers(0, 20),
    st.integers(1, 12),
    st.text("ab \n", max_size=6),
)
def test_exact_quotes_anywhere_are_replaced_as_text(
    lines: list[str], at: int, size: int, new: str
) -> None:
    body = "".join(f"{line}\n" for line in lines)
    old = body[at : at + size]
    if not old or body.count(old) != 1 or old == new or replace.without_numbers(old):
        return
    found = applied(old, new, lines)
    assert isinstance(found, list)
    # A line end at the end of the quote only ends its last line, unless whole lines are deleted.
    if old.endswith("\n") and (new or f"\n{body}"[body.index(old)] != "\n"):
        new = new.removesuffix("\n") + "\n"
    made = body.replace(old, new)
    assert "".join(f"{line}\n" for line in found) == (
        made if made[-1:] in ("\n", "") else f"{made}\n"
    )


TOLERANT = [
    ("return a - b", "return a + b", ""),
    ("     4\tdef add(a, b):\n     5\t    # both", "def add(x, y):\n    # both", "line numbers"),
    ("     6\t    return a - b", "     6\t    return a + b", "line numbers"),
    ("    total = a - b  \n    return total", "    return a - b", "blanks"),
    ("def add(a, b):\n  # both\n  return a - b", "def add(a, b):\n  return a + b", "blanks"),
    ("import os\n\n\n\ndef add(a, b):\n", "import re\n\n\n\ndef add(a, b):\n", "blanks"),
]


@pytest.mark.parametrize(("old", "new", "note"), TOLERANT)
def test_blanks_and_line_numbers_may_differ(old: str, new: str, note: str) -> None:
    found = replace.find(TEXT, old, new)
    assert isinstance(found, Replacement)
    assert note in found.note
    assert applied(old, new) != TEXT


PROBLEMS = [
    ("", "x", "old_str is empty", None),
    ("import os", "import os", "equal", None),
    ("def sub(", "def minus(", "2 times, at the lines 9, 15", None),
    ("sub", "minus", "3 times, at the lines 9, 15, 16", None),
    ("return a * b", "    return a - b", "new_str is, at line 6", (5, 6)),
    ("    total = a + b\n    return totals", "    return 1", "nearest", (6, 13)),
    ("def addition(a, b):", "x", "nearest", (0, 7)),
    ("@#$%&", "x", "no line is similar", None),
]


@pytest.mark.parametrize(("old", "new", "words", "rows"), PROBLEMS)
def test_a_problem_explains_how_to_correct_the_call(
    old: str, new: str, words: str, rows: tuple[int, int] | None
) -> None:
    found = replace.find(TEXT, old, new)
    assert isinstance(found, Problem)
    assert words in found.text
    if rows:
        assert (found.first_row, found.last_row) == rows
