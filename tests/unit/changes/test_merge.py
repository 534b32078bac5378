"""Changes merged into what a text has become: right, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.changes import diff
from lcursor.changes.merge import inverse, merge, rebase
from lcursor.changes.records import Change, Lines

WORDS = st.sampled_from(["a", "b", "", "  return x", "}", "def f():", "x = 1"])


def changed_in(base: Sequence[str], cuts: Sequence[tuple[int, int, Lines]]) -> tuple[Change, ...]:
    """Return changes that do not touch each other."""
    found: list[Change] = []
    row = 0
    for skip, size, new in cuts:
        first = row + skip
        last = min(first + size, len(base))
        if first > len(base):
            break
        old = tuple(base[first:last])
        if old != new:
            found.append(Change(first, last, old, new))
        row = last + 1
    return tuple(found)


TYPED = "typed by hand "


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("abcd", "aBcd"),
        ("xabcd", "xaBcd"),
        ("abxcd", "aBxcd"),
        ("aBcd", "aBcd"),  # made by hand
        ("axcd", None),  # its lines are others
        ("acd", None),
        ("ababcd", None),  # which of two
    ],
)
def test_a_change_is_merged_into_a_changed_text(now: str, expected: str | None) -> None:
    made = merge([Change(1, 2, ("b",), ("B",))], tuple("abcd"), tuple(now))
    assert made == (None if expected is None else tuple(expected))


def test_a_change_that_is_made_already_has_no_lines() -> None:
    changes = [Change(0, 1, ("a",), ("A",)), Change(3, 4, ("d",), ())]
    found = rebase(changes, tuple("abcd"), tuple("Abxcd"))
    assert found == [Change(0, 0, (), ()), Change(4, 5, ("d",), ())]


def test_undo_and_redo_are_right_or_rejected() -> None:
    """Refused they may be only where something was typed, and then not mostly."""
    count = Counter[tuple[str, bool, bool]]()

    @settings(max_examples=400, deadline=None)
    @given(
        st.lists(WORDS, max_size=25),
        st.lists(
            st.tuples(st.integers(0, 6), st.integers(0, 3), st.lists(WORDS, max_size=3).map(tuple)),
            max_size=4,
        ),
        st.lists(st.integers(0, 60), max_size=4),
        st.lists(st.integers(0, 60), max_size=2),
    )
    def check(
        base: list[str], cuts: list[tuple[int, int, Lines]], typed: list[int], more: list[int]
    ) -> None:
        changes = changed_in(base, cuts)
        before = tuple(base)
        after = diff.apply(before, changes)

        def type_in(lines: Lines, rows: list[int], name: str) -> Lines:
            made = list(lines)
            for number, row in enumerate(rows):
                made.insert(row % (len(made) + 1), f"{TYPED}{name}{number}")
            return tuple(made)

        def without(lines: Lines) -> Lines:
            return tuple(line for line in lines if not line.startswith(TYPED))

        def mine(lines: Lines) -> list[str]:
            return [line for line in lines if line.startswith(TYPED)]

        text_now = type_in(after, typed, "x")
        undone = merge(inverse(changes), after, text_now)
        if not typed:
            assert undone == before
        count["undo", bool(typed), undone is not None] += 1
        if undone is None:
            return
        assert without(undone) == before
        assert mine(undone) == mine(text_now)
        text_now = type_in(undone, more, "y")
        redone = merge(changes, before, text_now)
        if not typed and not more:
            assert redone == after
        count["redo", bool(typed or more), redone is not None] += 1
        if redone is not None:
            assert without(redone) == after
            assert mine(redone) == mine(text_now)

    check()
    for what in ("undo", "redo"):
        assert not count[what, False, False]
        assert count[what, False, True] >= 20
        assert count[what, True, True] >= 100
        assert count[what, True, True] > count[what, True, False]
