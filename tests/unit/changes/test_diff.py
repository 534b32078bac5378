"""The difference of two texts makes the one of the other, and reads as a person would say it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes import diff
from lcursor.changes.records import Change

lines = st.lists(st.sampled_from(["", "a", "b", "}", "    c", "    d"]), max_size=24)


@given(lines, lines)
def test_a_difference_makes_the_new_of_the_old(old: list[str], new: list[str]) -> None:
    changes = diff.changes(old, new)
    assert diff.apply(old, changes) == tuple(new)
    row = 0
    for change in changes:
        assert row <= change.first_row
        assert change.old or change.new
        row = change.last_row


@given(lines, lines)
def test_the_shortest_script_is_one_too(old: list[str], new: list[str]) -> None:
    most, diff.MAX_PAIRS = diff.MAX_PAIRS, 0  # type: ignore[misc]
    try:
        assert diff.apply(old, diff.changes(old, new)) == tuple(new)
    finally:
        diff.MAX_PAIRS = most  # type: ignore[misc]


def test_a_new_function_is_one_piece() -> None:
    old = ["def a():", "    return 1", "", "", "def c():", "    return 1"]
    new = [*old[:4], "def b():", "    return 1", "", "", *old[4:]]
    (change,) = diff.changes(old, new)
    assert change.new == ("def b():", "    return 1", "", "")


@pytest.mark.parametrize("new", [("a", "", "b"), ("", "a"), ()])
def test_an_empty_buffer_is_filled_by_one_change(new: tuple[str, ...]) -> None:
    assert diff.changes(("",), new) == (Change(0, 1, ("",), new),)


def test_brackets_between_two_changes_do_not_part_them() -> None:
    old = ["one", "two", "}", "three", "four"]
    new = ["1", "2", "}", "3", "4"]
    assert len(diff.changes(old, new)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        (Change(0, 1, ("z",), ()),),
        (Change(1, 2, ("b",), ()), Change(0, 1, ("a",), ())),
        (Change(0, 2, ("a",), ()),),
        (Change(2, 3, ("c",), ()),),
        (Change(-1, 0, ("b",), ()),),
    ],
)
def test_a_change_of_other_lines_is_an_error(changes: tuple[Change, ...]) -> None:
    with pytest.raises(ValueError, match="rows"):
        diff.apply(("a", "b"), changes)


@pytest.mark.parametrize("every", [1, 3, 20_000])
def test_long_texts_are_compared_soon(every: int) -> None:
    old = ["" if row % 3 == 0 else f"line {row // every}" for row in range(20_000)]
    new = [*old]
    for row in range(5, 20_000, 70):
        new[row] = f"new {row}"
    began_s = time.thread_time()
    changes = diff.changes(old, new)
    assert time.thread_time() - began_s < 1.5
    assert diff.apply(old, changes) == tuple(new)
