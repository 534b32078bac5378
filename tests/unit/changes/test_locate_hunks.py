"""Turns as data: which proposed change a hunk is, and what is told twice."""

from __future__ import annotations

import pytest

from lcursor.changes.records import Change, FileChange, Lines, digest
from lcursor.changes.turn import FileTurn, locate_hunks
from lcursor.protocol.edit import EditHunk
from tests.unit.edit.desk import hunk_at

BASE: Lines = ("a", "b", "a", "b", "c", "d", "e")
INSERTED = Change(0, 0, (), ("x", "y", "y"))
FIRST, SECOND = Change(1, 2, ("b",), ("B",)), Change(3, 4, ("b",), ("B",))
LONG = Change(4, 7, ("c", "d", "e"), ("C", "D", "E", "f"))
ALL = (INSERTED, FIRST, SECOND, LONG)
OLD = [(), ("b",), ("b",), ("c", "d", "e")]


def hunk(old: str, new: str, above: str = "", below: str = "", row: int = 9) -> EditHunk:
    return {
        "row": row,
        "old": old.split(),
        "new": new.split(),
        "above": above.split(),
        "below": below.split(),
    }


def pieces(*made: tuple[int, str]) -> list[Lines]:
    return [tuple(dict(made).get(at, " ".join(each)).split()) for at, each in enumerate(OLD)]


@pytest.mark.parametrize(
    ("hunks", "expected"),
    [
        ([hunk("c d e", "C D E f")], pieces((3, "C D E f"))),
        # Of two that are alike, both, or the one that is known by what is around it, or by its row.
        ([hunk("b", "B", row=1), hunk("b", "B", row=3)], pieces((1, "B"), (2, "B"))),
        ([hunk_at(("a", "b", "a", "B", "c", "d", "e"), 3, ("b",), ("B",))], pieces((2, "B"))),
        ([hunk("b", "B", row=3)], pieces((2, "B"))),
        ([hunk("b", "B", "z", "z")], None),
        # Part of one.
        ([hunk("d", "D")], pieces((3, "c D e"))),
        ([hunk("", "x")], None),
        ([hunk("", "x", row=0)], pieces((0, "x"))),
        ([hunk("d", "D"), hunk("c", "C")], pieces((3, "C D e"))),
        # What the user altered before he accepted it.
        ([hunk("d e", "mine")], pieces((3, "c mine"))),
        ([hunk("b", "mine", row=77)], None),
        ([hunk("nothing", "of it")], None),
        ([hunk("c d e", "C D E f"), hunk("d", "D")], None),
    ],
)
def test_a_hunk_is_matched_to_a_proposed_change(
    hunks: list[EditHunk], expected: list[Lines] | None
) -> None:
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL))
    found, _, is_lost = locate_hunks(file, BASE, hunks, is_undone=False)
    assert (None if is_lost else found) == expected


def test_hunks_are_undone_and_reported_again() -> None:
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL))
    both = [hunk("b", "B", row=1), hunk("b", "B", row=3)]
    file.pieces, is_fresh, _ = locate_hunks(file, BASE, both, is_undone=False)
    assert is_fresh
    assert locate_hunks(file, BASE, both, is_undone=False) == (file.pieces, False, False)
    found = locate_hunks(file, BASE, both[1:], is_undone=True)
    assert found == (pieces((1, "B")), False, False)
    file.is_undone = True  # as it was told before
    assert locate_hunks(file, BASE, both[:1], is_undone=False)[0] == pieces((1, "B"))


def test_hunks_neither_accepted_nor_rejected_are_open() -> None:
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL))
    file.pieces = pieces((3, "C D E f"))
    assert file.rest() == (INSERTED, FIRST, SECOND)
    file.rejected.append(FIRST)
    assert file.rest() == (INSERTED, SECOND)
    assert not file.is_partly_rejected
    file.pieces = pieces()
    assert file.rest() == (INSERTED, SECOND, LONG)
    file.rejected.append(Change(4, 5, ("c",), ("C",)))
    assert file.is_partly_rejected


def test_an_undone_turn_ignores_hunks_that_are_taken_back() -> None:
    """Another editor undid it, and this one read the file again: it can still be redone."""
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL), is_undone=True)
    file.pieces = list(pieces((3, "C D E f")))
    found = locate_hunks(file, BASE, [hunk("c d e", "C D E f")], is_undone=True)
    assert found == (pieces((3, "C D E f")), False, False)
