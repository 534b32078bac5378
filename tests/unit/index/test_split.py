from __future__ import annotations

import pytest

from lcursor.code.outline import MAX_CHARS as MAX_OUTLINE
from lcursor.code.outline import outline
from lcursor.index.chunk import GOOD_CHARS, MAX_CHARS, MIN_CHARS, cuts_by_rows, fill, weigh


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a|b|c", [(1, 2), (2, 2)]), ("a||b| c", [(2, 0), (3, 3)]), ("a|| b", [(2, 1)]), ("a| |", [])],
)
def test_a_row_after_a_gap_and_at_the_margin_is_the_best_cut(
    text: str, expected: list[tuple[int, int]]
) -> None:
    lines = text.split("|")
    assert cuts_by_rows(lines, 0, len(lines)) == expected


def sums(*sizes: int) -> list[int]:
    return weigh(["x" * size for size in sizes])


@pytest.mark.parametrize(
    ("what", "cuts", "sizes", "expected"),
    [
        ("all fits", [(1, 0)], [700, 700], [(0, 2)]),
        ("full to the limit", [(1, 2), (2, 2), (3, 2)], [500, 500, 500, 9], [(0, 3), (3, 4)]),
        ("the better cut", [(1, 0), (2, 2)], [800, 300, 900], [(0, 1), (1, 3)]),
        ("no better one in reach", [(1, 2), (2, 2)], [300, 300, 1000], [(0, 2), (2, 3)]),
        ("an early cut, far better", [(1, 0), (2, 2)], [300, 700, 900], [(0, 1), (1, 2), (2, 3)]),
        ("an early cut, no step better", [(1, 1), (2, 2)], [300, 700, 900], [(0, 2), (2, 3)]),
        ("too early a cut", [(1, 0), (2, 4)], [100, 900, 900], [(0, 2), (2, 3)]),
        ("small, then large", [(1, 4), (2, 4)], [100, 1600, 100], [(0, 1), (1, 2), (2, 3)]),
        ("no cut at all", [], [1000, 1000, 1000], [(0, 1), (1, 2), (2, 3)]),
        ("a row that is too long", [], [5000, 10, 10], [(0, 1), (1, 3)]),
    ],
)  # fmt: skip
def test_rows_are_put_into_chunks(
    what: str, cuts: list[tuple[int, int]], sizes: list[int], expected: list[tuple[int, int]]
) -> None:
    assert fill(cuts, sums(*sizes)) == expected
    assert MIN_CHARS < GOOD_CHARS < MAX_CHARS


def test_an_outline_is_never_longer_than_a_chunk() -> None:
    lines = ["class A:"] + [f"    def method_{at}(self, {'a' * 40}): pass" for at in range(200)]
    members = [(row, row + 1, row + 1) for row in range(1, 201)]
    text = outline(lines, 0, 201, members)
    assert text.startswith("class A:\n    def method_0(")
    assert text.endswith("…")
    assert weigh(text.split("\n"))[-1] <= MAX_OUTLINE


def test_an_outline_keeps_little_of_long_documentation() -> None:
    lines = ["class A:", *["    words of a long text"] * 100, "    def f(self):", "        pass"]
    text = outline(lines, 0, 103, [(101, 102, 103)])
    assert text.split("\n")[-3:] == ["    …", "    def f(self):", "        …"]
    assert text.count("words") < 40


def test_members_on_one_row_are_kept_once() -> None:
    lines = ["class A {", "  a() {} b() {}", "}"]
    assert outline(lines, 0, 3, [(1, 2, 2), (1, 2, 2)]) == "\n".join(lines)
