"""What fits into a prompt, and the receipt for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.code import estimate
from lcursor.index import fit
from lcursor.index.fit import choose
from lcursor.index.records import Hit


def hit(path: str, first: int, lines: int, score: float = 1.0) -> Hit:
    text = "\n".join(f"line {number} of it" for number in range(first, first + lines))
    return Hit(path, first, first + lines, "", "python", text, score)


def count(text: str) -> int:
    return len(text.split())


@pytest.fixture(autouse=True, scope="module")
def words() -> Iterator[None]:
    """Count a token for each word, so that the numbers below are easy to check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "tokens", count)
        yield


def reasons(receipt: fit.Fitting) -> list[str]:
    return [reason for _, reason in receipt.left_out]


def test_a_part_of_an_outline_is_used() -> None:
    """An outline lacks the bodies of the methods."""
    outline, method = replace(hit("a", 0, 9), end_row=90), hit("a", 40, 5)
    assert choose([outline, method], 1000).used == [outline, method]


@pytest.mark.parametrize("other", ["CHANGELOG.md", "tests/test_a.py", "docs/LICENSE"])
def test_the_best_code_is_never_left_out_for_tests_and_prose(other: str) -> None:
    hits = [hit(other, 100 * number, 20, 1.0) for number in range(3)]
    code = [hit("src/a.py", 0, 10, 0.9), hit("src/b.py", 0, 10, 0.8)]
    found = choose([*hits, *code], 110)
    assert [one.path for one in found.used][:2] == ["src/a.py", other]
    assert choose(hits, 110).used[0] == hits[0]


FULL, ENOUGH = "token limit reached", "limit for one file reached"
WORSE, PART = "score far below the best", "part of another hit"


@pytest.mark.parametrize(
    ("hits", "tokens", "used", "left_out"),
    [
        # A line has four tokens, and a hit eight more.
        ([hit("a", 0, 5)], 28, ["a:0-5"], []),
        ([hit("a", 0, 5)], 27, [], [FULL]),
        ([hit("a", 0, 10)], 32, ["a:0-6"], []),  # no less than 24 tokens are worth a part
        ([hit("a", 0, 10)], 31, [], [FULL]),
        ([hit("a", 0, 10)], 39, ["a:0-7"], []),
        ([hit("a", 0, 10), hit("a", 50, 10)], 96, ["a:0-10", "a:50-60"], []),
        ([hit("a", 0, 10), hit("a", 50, 10), hit("b", 0, 1)], 100, ["a:0-10", "b:0-1"], [ENOUGH]),
        (
            [hit("a", 0, 10), hit("a", 50, 10), hit("b", 0, 1)],
            160,
            ["a:0-10", "a:50-60", "b:0-1"],
            [],
        ),
        (
            [hit("a", 0, 10), hit("a", 50, 10), hit("b", 0, 1)],
            150,
            ["a:0-10", "a:50-58", "b:0-1"],
            [],
        ),
        ([hit("a", 0, 5), hit("b", 0, 5, 0.1)], 99, ["a:0-5", "b:0-5"], []),
        ([hit("a", 0, 5), hit("b", 0, 5, 0.09)], 99, ["a:0-5"], [WORSE]),
        ([hit("a", 5, 5), hit("a", 5, 5), hit("a", 6, 4)], 99, ["a:5-10"], [PART, PART]),
        ([hit("a", 5, 5), hit("a", 4, 5), hit("a", 6, 5)], 99, ["a:5-10", "a:4-9", "a:6-11"], []),
        ([hit("a", 5, 5), hit("b", 5, 5)], 99, ["a:5-10", "b:5-10"], []),
    ],
)
def test_hits_that_fit(hits: list[Hit], tokens: int, used: list[str], left_out: list[str]) -> None:
    found = choose(hits, tokens)
    assert [f"{one.path}:{one.first_row}-{one.end_row}" for one in found.used] == used
    assert reasons(found) == left_out
    assert all(one.end_row - one.first_row == one.text.count("\n") + 1 for one in found.used)


@given(
    sizes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 60)), max_size=12),
    tokens=st.integers(0, 600),
)
def test_never_more_than_was_given_and_nothing_is_lost(
    sizes: list[tuple[str, int]], tokens: int
) -> None:
    hits = [hit(path, 100 * number, size) for number, (path, size) in enumerate(sizes)]
    receipt = choose(hits, tokens)
    assert receipt.tokens <= tokens
    assert len(receipt.used) + len(receipt.left_out) == len(hits)
    assert receipt.tokens == sum(count(one.text) + fit.HEADER_TOKENS for one in receipt.used)
