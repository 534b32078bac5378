"""What items cost, and what would have to go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.context import budget, layout
from lcursor.context.budget import Counter, Line, bill, fitted, suggest
from lcursor.context.items import Item
from lcursor.protocol_chat import AttachmentKind


def words(text: str) -> tuple[int, bool]:
    return len(text.split()), True


def item(kind: AttachmentKind, name: str, size: int = 10, *, is_left_out: bool = False) -> Item:
    text = "w " * size
    return Item(f"{kind}:{name}", kind, name, "", 0, "" if is_left_out else text, "", is_left_out)


def test_a_bill_names_all_and_counts_what_is_in_as_it_is_written() -> None:
    items = [item("file", "a"), item("file", "b", is_left_out=True)]
    made = bill(items, words, 100)
    assert [line.tokens for line in made.lines] == [words(layout.block(items[0]))[0], 0]
    assert made.total == made.lines[0].tokens
    assert made.left_out == (items[1],)
    assert made.fits
    assert made.is_exact
    assert made.suggestion == ()


def test_an_unknown_limit_is_never_over() -> None:
    made = bill([item("file", "a", 1000)], words)
    assert (made.over, made.fits, made.suggestion) == (0, True, ())


def test_what_nobody_named_goes_first_and_no_more_than_must() -> None:
    items = [
        item("selection", "s", 5),
        item("codebase", "c1", 10),
        item("codebase", "c2", 50),
        item("dir", "d", 30),
        item("file", "f", 30),
    ]
    total = bill(items, words).total
    assert bill(items, words, total - 20).suggestion == ("codebase:c2",)
    assert bill(items, words, total - 60).suggestion == ("codebase:c2", "codebase:c1")
    assert "selection:s" in bill(items, words, 1).suggestion


LINES = st.lists(
    st.tuples(st.sampled_from(budget.DROPPED_FIRST), st.integers(0, 50), st.booleans()), max_size=12
)


@given(LINES, st.integers(1, 400))
def test_a_suggestion_saves_enough_and_has_nothing_needless(
    rows: list[tuple[AttachmentKind, int, bool]], over: int
) -> None:
    lines = [
        Line(item(kind, str(number), is_left_out=out), 0 if out else tokens, True)
        for number, (kind, tokens, out) in enumerate(rows)
    ]
    cost = {line.item.key: line.tokens for line in lines}
    chosen = suggest(lines, over)
    saved = sum(cost[key] for key in chosen)
    assert saved >= min(over, sum(cost.values()))
    if saved >= over:
        assert all(saved - cost[key] < over for key in chosen)
    assert not any(line.item.is_left_out for line in lines if line.item.key in chosen)


def test_what_is_left_out_for_room_says_so() -> None:
    items = [item("file", "a", 5), item("codebase", "c", 500)]
    kept = fitted(items, words, 100)
    assert kept[0] == items[0]
    assert kept[1].is_left_out
    assert kept[1].note.startswith("no room: 50")
    assert bill(kept, words, 100).fits


def test_a_text_is_counted_once_but_an_estimate_again() -> None:
    asked: list[str] = []

    def count(text: str) -> tuple[int, bool]:
        asked.append(text)
        return 1, text != "rough"

    counter = Counter(count)
    for text in ("a", "a", "rough", "rough", "a"):
        counter(text)
    assert asked == ["a", "rough", "rough"]


@pytest.mark.parametrize("kind", budget.DROPPED_FIRST)
def test_each_kind_has_its_place_in_both_orders(kind: str) -> None:
    assert kind in layout.ORDER
    assert sorted(layout.ORDER) == sorted(budget.DROPPED_FIRST)
