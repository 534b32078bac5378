"""Rows that several mentions bring are in once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lcursor.context.item_builders import remove_overlaps
from lcursor.context.items import Item
from lcursor.protocol.chat import AttachmentKind

KINDS: list[AttachmentKind] = ["file", "dir", "buffer", "symbol", "codebase", "selection"]


def item(kind: AttachmentKind, name: str, first: int, rows: int) -> Item:
    text = "".join(f"{first + row}\n" for row in range(rows))
    key = f"{kind}:{name}:{first}-{first + rows}"
    return Item(key, kind, f"{name}:{first}", f"/{name}", first, text)


ITEMS = st.lists(
    st.builds(
        item, st.sampled_from(KINDS), st.sampled_from("ab"), st.integers(0, 8), st.integers(0, 8)
    ),
    max_size=8,
)


@given(ITEMS)
def test_no_row_is_lost_and_none_that_one_item_covers_is_in_twice(items: list[Item]) -> None:
    found = remove_overlaps(items, ())
    kept = [one for one in found if not one.is_left_out]

    def rows(some: list[Item]) -> set[tuple[str, str]]:
        return {(one.path, row) for one in some for row in one.text.split()}

    assert rows(kept) == rows(items)
    assert len({one.key for one in found}) == len(found)
    for one in kept:
        if one.kind == "selection" or not one.text:
            continue
        for other in kept:
            if other.kind in {"selection", "codebase"} or other.key == one.key or not other.text:
                continue
            is_inside = other.first_row <= one.first_row and one.end_row <= other.end_row
            assert not (other.path == one.path and is_inside), (one.key, other.key)


def test_a_dropped_item_covers_no_other() -> None:
    whole, part = item("file", "a", 0, 9), item("symbol", "a", 2, 3)
    assert remove_overlaps([whole, part], ())[1].note == "already included with a:0"
    assert not remove_overlaps([whole, part], [whole.key])[1].is_left_out


def test_one_that_can_be_read_takes_the_place_of_one_that_could_not() -> None:
    out = Item("file:a", "file", "a", note="there was no time left to read it", is_left_out=True)
    there = Item("file:a", "file", "a", "/a", 0, "x\n")
    assert remove_overlaps([out, there], ()) == [there]
    assert remove_overlaps([there, out], ()) == [there]
