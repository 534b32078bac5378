"""Which lines of a file are related to the one at the cursor."""

from __future__ import annotations

import pytest

from lcursor.fim.related import related_lines

ABOVE = [
    "import os",
    "def _join_parts(self, parts):",
    "    return self.separator.join(parts)",
    "    return None",
    "def unrelated(thing):",
    "short",
]
BELOW = ["    total = compute_total(rows)", "def _join_parts(self, parts):", "    return None"]


def test_a_line_with_the_word_that_is_begun_comes_first() -> None:
    found = related_lines(ABOVE, BELOW, [], "        text = self._join", 1)
    assert found == ["def _join_parts(self, parts):"]


def test_lines_stand_in_their_order_and_once() -> None:
    found = related_lines(ABOVE, BELOW, [], "self, parts, total, compute_to", 9)
    assert found == [
        "    return self.separator.join(parts)",
        "    total = compute_total(rows)",
        "def _join_parts(self, parts):",
    ]


def test_the_nearest_of_equal_lines_is_chosen() -> None:
    above = ["first = value(1)", *["pass"] * 60, "third = value(2)"]
    assert related_lines(above, [], [], "x = value(", 1) == ["third = value(2)"]


def test_nothing_is_related_to_an_empty_line() -> None:
    assert related_lines(ABOVE, BELOW, [], "", 9) == []


def test_a_line_of_eight_characters_is_long_enough() -> None:
    assert related_lines(["a = rows"], [], [], "rows", 9) == ["a = rows"]
    assert related_lines(["a = row"], [], [], "row", 9) == []


@pytest.mark.parametrize(("between", "chosen"), [(0, "alpha(1)"), (1000, "alpha(beta)")])
def test_a_near_line_is_chosen_over_a_far_one_that_shares_a_little_more(
    between: int, chosen: str
) -> None:
    above = ["alpha(1)", *["pass"] * between, "alpha(beta)"]
    assert related_lines(above, [], [], "x = alpha", 1) == [chosen]
