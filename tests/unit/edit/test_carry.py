"""Changes carried over to a text that went on: to the right place, or not at all."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.edit import diff
from lcursor.edit.records import Change, Lines
from lcursor.edit.turns import carry


def lines_of(text: str) -> Lines:
    return tuple(text.split())


def made(old: str, now: str, change: Change) -> str | None:
    """Return a text with a change of an older one made; None where it was not carried."""
    found = carry.carry(carry.split(carry.marks(lines_of(old))), lines_of(now), [change])
    if found[0] is None:
        return None
    return " ".join(diff.apply(lines_of(now), [found[0]]))


REPLACE = Change(2, 4, ("c", "d"), ("C",))
DELETE = Change(2, 3, ("c",), ())
INSERT = Change(2, 2, (), ("N", "M"))


@pytest.mark.parametrize(
    ("now", "change", "after"),
    [
        ("a b c d e", REPLACE, "a b C e"),
        ("t a b c d e", REPLACE, "t a b C e"),
        ("a b t c d t e", REPLACE, "a b t C t e"),
        ("c d e", REPLACE, "C e"),
        ("x y c d z", REPLACE, "x y C z"),
        ("a b c t d e", REPLACE, None),
        ("a b c e", REPLACE, None),
        ("a b x d e", REPLACE, None),
        ("e a b c d", REPLACE, "e a b C"),
        ("a b C e", REPLACE, "a b C e"),  # somebody did just that
        ("a b C t e", REPLACE, None),
        ("a b d e", DELETE, "a b d e"),
        ("a b t d e", DELETE, None),
        ("a b c d e", INSERT, "a b N M c d e"),
        ("a b N M c d e", INSERT, "a b N M c d e"),
        ("a b t c d e", INSERT, "a b N M t c d e"),
        ("a x c d e", INSERT, "a x N M c d e"),
        ("a x y d e", INSERT, None),
        ("", REPLACE, None),
    ],
)
def test_one_change(now: str, change: Change, after: str | None) -> None:
    assert made("a b c d e", now, change) == after


@pytest.mark.parametrize(
    ("old", "now", "change", "after"),
    [
        # Of two equal pieces one was added or taken; nobody knows which.
        ("p q p q", "p q p q p q", Change(0, 1, ("p",), ("P",)), None),
        ("p q p q", "p q", Change(2, 3, ("p",), ("P",)), None),
        # Here it does not matter.
        ("p p p", "p p p p", Change(1, 2, ("p",), ()), "p p p"),
        # What is around says which one.
        ("a p q b p q c", "a p q t b p q c", Change(4, 5, ("p",), ("P",)), "a p q t b P q c"),
    ],
)
def test_equal_places(old: str, now: str, change: Change, after: str | None) -> None:
    assert made(old, now, change) == after


def test_changes_are_taken_back_by_what_applied_returns() -> None:
    base = lines_of("a b c d e f")
    changes = [INSERT, Change(3, 5, ("d", "e"), ()), Change(6, 6, (), ("g",))]
    after, back = carry.applied(carry.split(carry.marks(base)), changes)
    made = diff.apply(base, changes)
    assert carry.split(carry.marks(made)) == after
    assert diff.apply(made, back) == base


def test_a_text_with_nothing_in_common() -> None:
    old = [f"old {number}" for number in range(2000)]
    now = tuple(f"new {number}" for number in range(2000))
    change = Change(5, 6, ("old 5",), ())
    assert carry.carry(carry.split(carry.marks(old)), now, [change]) == [None]


WORDS = st.sampled_from(["a", "b", "", "}", "x = 1", "return"])
TYPED = "typed by hand "


def test_nothing_that_was_typed_is_lost() -> None:
    count = Counter[tuple[bool, bool]]()

    @settings(max_examples=300, deadline=None)
    @given(
        st.lists(WORDS, max_size=20),
        st.integers(0, 20),
        st.integers(0, 3),
        st.lists(WORDS, max_size=3),
        st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 2)), max_size=4),
    )
    def check(
        old: list[str], first: int, size: int, new: list[str], typed: list[tuple[int, int, int]]
    ) -> None:
        first = min(first, len(old))
        last = min(first + size, len(old))
        change = Change(first, last, tuple(old[first:last]), tuple(new))
        now = list(old)
        for number, (row, gone, came) in enumerate(typed):
            row = row % (len(now) + 1)
            now[row : row + gone] = [f"{TYPED}{number}.{at}" for at in range(came)]
        (found,) = carry.carry(carry.split(carry.marks(old)), tuple(now), [change])
        count[bool(typed), found is not None] += 1
        if found is None:
            assert typed
            return
        after = diff.apply(tuple(now), [found])
        mine = [line for line in now if line.startswith(TYPED)]
        assert [line for line in after if line.startswith(TYPED)] == mine
        assert found.old in (change.old, ())
        if not typed:
            assert after == diff.apply(tuple(old), [change]) or (change.old, change.new) == ((), ())

    check()
    assert count[True, True] >= 60
    assert count[False, True] >= 5


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=15), st.lists(WORDS, max_size=15))
def test_the_fewest_lines_differ(old: list[str], new: list[str]) -> None:
    edits = carry._edits(old, new)
    assert edits is not None
    made, row, at = list[str](), 0, 0
    for first, last, start, to in edits:
        assert old[row:first] == new[at:start]
        made += old[row:first] + new[start:to]
        row, at = last, to
    assert made + old[row:] == new
    longest = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            best = max(longest[i][j + 1], longest[i + 1][j])
            longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else best
    kept = longest[-1][-1]
    assert sum(last - first for first, last, _, _ in edits) == len(old) - kept
