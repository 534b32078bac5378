"""Which rows a model has read, and where they are after a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent.records import Shown
from lcursor.agent.tools.read_lines import ReadLines

LINES = [f"line {number}" for number in range(10)]


def test_only_rows_that_were_shown_count() -> None:
    seen = ReadLines()
    seen.show("a", LINES, 2, 4)
    assert seen.is_shown("a", LINES, 2, 4)
    assert not seen.is_shown("a", LINES, 2, 5)
    assert not seen.is_shown("b", LINES, 2, 4)


CHANGES = [
    (["new", *LINES], (3, 5), True),
    ([*LINES[:2], "changed", *LINES[3:]], (2, 4), False),
    ([*LINES[:3], "between", *LINES[3:]], (2, 5), False),
    ([*LINES, "after"], (2, 4), True),
    (LINES[3:], (0, 1), True),
]


@pytest.mark.parametrize(("after", "rows", "is_shown"), CHANGES)
def test_rows_move_with_changes(after: list[str], rows: tuple[int, int], is_shown: bool) -> None:
    seen = ReadLines()
    seen.show("a", LINES, 2, 4)
    assert seen.is_shown("a", after, *rows) == is_shown


def test_lines_that_a_command_printed_are_known() -> None:
    seen = ReadLines()
    seen.print(["+    line 3", "  line 4"])
    assert seen.is_shown("a", LINES, 4, 5)
    assert not seen.is_shown("a", LINES, 3, 5)


REGIONS = [
    (["new", *LINES], (4, 7)),  # before it
    ([*LINES[:3], "new", *LINES[3:]], (4, 7)),  # just before it
    ([*LINES[:4], "new", *LINES[4:]], (3, 7)),  # inside
    ([*LINES[:6], "new", *LINES[6:]], (3, 6)),  # just after it
    ([*LINES[:3], "x", *LINES[6:]], (3, 4)),  # all of it
    ([*LINES[:2], "x", *LINES[4:]], (2, 5)),  # its beginning
    ([*LINES[:5], "x", "y", *LINES[7:]], (3, 7)),  # its end
    ([*LINES[:3], *LINES[6:]], (3, 3)),  # deleted
    (["new", *LINES[:4], *LINES[5:]], (4, 6)),
]


@pytest.mark.parametrize(("after", "rows"), REGIONS)
def test_regions_move_with_changes(after: list[str], rows: tuple[int, int]) -> None:
    seen = ReadLines()
    shown = seen.show("a", LINES, 3, 6)
    seen.add_region(shown, "a#f")
    seen.update("a", after)
    assert seen.regions == {"a#f": Shown("a", *rows)}


def test_equal_regions_have_one_id() -> None:
    seen = ReadLines()
    first, second = Shown("a", 0, 2), Shown("a", 2, 4)
    assert seen.ids([first, second, first], ["a#f", "a#f", "a#f"]) == ["a#f", "a#f-2", "a#f"]
    assert seen.regions == {}
    seen.add_region(first, "a#f")
    assert seen.ids([second, first], ["a#f", "a#f"]) == ["a#f-2", "a#f"]


@given(
    st.lists(st.sampled_from("abcde"), max_size=12),
    st.lists(st.sampled_from("abcde"), max_size=12),
    st.data(),
)
def test_a_row_that_counts_as_shown_has_a_text_that_was_shown(
    before: list[str], after: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(before)))
    last = data.draw(st.integers(first, len(before)))
    seen = ReadLines()
    region = seen.show("a", before, first, last)
    seen.add_region(region, "a#f")
    flags = seen.update("a", after)
    texts = before[first:last]
    for row, line in enumerate(after):
        if flags[row]:
            assert line in texts
            texts.remove(line)
    (moved,) = seen.regions.values()
    assert 0 <= moved.first_row <= moved.last_row <= len(after)
