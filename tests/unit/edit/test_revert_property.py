"""Turns taken back and made again in any text: right, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.edit import diff
from lcursor.edit.records import Change, FileChange, Lines, digest
from lcursor.edit.turns import carry, revert
from lcursor.edit.turns.turn import FileTurn, hunks_for

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


def test_undo_and_redo_are_right_or_refused() -> None:
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
        st.booleans(),
    )
    def check(
        base: list[str],
        cuts: list[tuple[int, int, Lines]],
        typed: list[int],
        more: list[int],
        has_marks: bool,
    ) -> None:
        changes = changed_in(base, cuts)
        after = diff.apply(tuple(base), changes)
        file = FileTurn(FileChange("a", base=digest(base), changes=changes))
        file.hunks = list(hunks_for(base, changes))
        file.marks = carry.marks(base) if has_marks else ""

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
        found = revert._turned(file, text_now, True)
        if not typed:
            assert found is not None
            assert found[0] == tuple(base)
        count["undo", bool(typed), found is not None] += 1
        if found is None:
            return
        undone, hunks = found
        assert without(undone) == tuple(base)
        assert mine(undone) == mine(text_now)
        file.hunks, file.taken = [], hunks
        text_now = type_in(undone, more, "y")
        found = revert._turned(file, text_now, False)
        if not typed and not more:
            assert found is not None
            assert found[0] == after
        count["redo", bool(typed or more), found is not None] += 1
        if found is None:
            return
        redone, hunks = found
        assert without(redone) == after
        assert mine(redone) == mine(text_now)
        file.hunks, file.taken = hunks, []
        if not typed and not more:
            again = revert._turned(file, redone, True)
            assert again is not None
            assert again[0] == tuple(base)

    check()
    for what in ("undo", "redo"):
        assert not count[what, False, False]
        assert count[what, False, True] >= 20
        assert count[what, True, True] >= 100
        assert count[what, True, True] > count[what, True, False]
