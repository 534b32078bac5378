"""What models do to the edges of a text is undone, where it is certain that they did it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes.records import Lines, Region
from lcursor.edit.rewriting.normalize import Normalizer
from lcursor.edit.rewriting.task import Task

CLASS: Lines = (
    "class Box:",
    "    def take(self, what):",
    "        self.what = what",
    "        return self",
    "",
    "    def give(self):",
    "        what = self.what",
    "        return what",
)
TAKE = Region(1, 4, "method take")


def fitted(new: Lines, lines: Lines = CLASS, region: Region = TAKE) -> Lines:
    """Return a region's new text as it fits."""
    return Normalizer(Task("/x.py", "x.py", "python", lines, region, "do")).whole(new)


GOOD = ("    def take(self, it):", "        self.what = it", "        return self")
CASES = [
    ("as it should be", GOOD, GOOD),
    ("all moved to the left", tuple(line[4:] for line in GOOD), GOOD),
    ("only its first line", (GOOD[0].strip(), *GOOD[1:]), GOOD),
    ("blank lines at its ends", ("", *GOOD, "", ""), GOOD),
    ("with what follows", (*GOOD, *CLASS[4:7]), GOOD),
    ("with all that follows", (*GOOD, "", *CLASS[5:]), GOOD),
    ("one line that is the next one's is no echo", (*GOOD, "", CLASS[5]), (*GOOD, "", CLASS[5])),
    ("nothing of the old text", ("x = 1", "y = 2"), ("x = 1", "y = 2")),
    ("deleted", (), ()),
    ("a comment at the margin", ("# for take", *GOOD), ("    # for take", *GOOD)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_fits(case: tuple[str, Lines, Lines]) -> None:
    _, new, want = case
    assert fitted(new) == want


def test_what_stands_above_is_not_written_again() -> None:
    lines = ("import os", "import sys, json", "", "def f():", "    pass")
    region = Region(3, 5, "function f")
    new = ("import os", "import sys, json", "", "def f():", "    return 1")
    assert fitted(new, lines, region) == ("def f():", "    return 1")


def test_a_region_that_is_like_what_follows_keeps_its_end() -> None:
    lines = ("def a():", "    x = compute()", "    return x", "    x = compute()", "    return x")
    new = ("def b():", "    x = compute()", "    return x")
    assert fitted(new, lines, Region(0, 3, "function a")) == new


def test_blanks_at_the_ends_of_lines_stay_where_nothing_else_changed() -> None:
    lines = ("a  ", "b\t", "c", "d ")
    whole = Region(0, 4, "lines 1 to 4")
    assert fitted(("a", "b", "C", "d"), lines, whole) == ("a  ", "b\t", "C", "d ")
    assert fitted(("a", "b", "c", "d"), lines, whole) == ("a", "b", "c", "d")
    assert fitted(("a", "d"), lines, whole) == ("a  ", "d ")


@pytest.mark.parametrize(
    ("lines", "at", "want"),
    [
        (("a", "", "", "b"), 1, ("a", "", "", "new", "", "", "b")),
        (("a", "", "", "b"), 2, ("a", "", "", "new", "", "", "b")),
        (("a", "", "b"), 1, ("a", "", "new", "", "b")),
        (("a", "b"), 1, ("a", "new", "b")),
        (("a", ""), 1, ("a", "", "new", "")),
        (("", "b"), 0, ("new", "", "b")),
        ((), 0, ("new",)),
    ],
)
def test_new_code_stands_apart_as_its_neighbours_do(lines: Lines, at: int, want: Lines) -> None:
    new = fitted(("new",), lines, Region(at, at, "new code"))
    assert lines[:at] + new + lines[at:] == want


def test_tabs() -> None:
    lines = ("func f() {", "\tx := 1", "\ty := 2", "}")
    region = Region(1, 3, "lines 2 to 3")
    assert fitted(("x := 1", "y := 3"), lines, region) == ("\tx := 1", "\ty := 3")


def test_what_comes_is_shown_as_it_will_be() -> None:
    fitter = Normalizer(Task("/x.py", "x.py", "python", CLASS, TAKE, "do"))
    shown: list[str] = []
    for line in GOOD:
        shown += fitter.feed((line[4:],))
    assert tuple(shown) == GOOD


@given(
    st.lists(st.sampled_from([*CLASS, "x", "\ty", " z ", ""]), max_size=12),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_what_was_there_comes_back_as_it_was(lines: list[str], first: int, last: int) -> None:
    region = Region(min(first, last, len(lines)), min(max(first, last), len(lines)), "lines")
    old = tuple(lines[region.first_row : region.last_row])
    assert fitted(old, tuple(lines), region) == old
