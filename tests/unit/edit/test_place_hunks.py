"""Turns as data: which proposed change a hunk is, and what is told twice."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.edit.checkpoints.turn import FileTurn, Turns, place_hunks, to_row
from lcursor.edit.records import Change, FileChange, Lines, digest
from lcursor.protocol_edit import EditHunk
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
def test_which_change_a_hunk_is(hunks: list[EditHunk], expected: list[Lines] | None) -> None:
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL))
    found, _, is_lost = place_hunks(file, BASE, hunks, is_undone=False)
    assert (None if is_lost else found) == expected


def test_hunks_are_taken_back_and_told_again() -> None:
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL))
    both = [hunk("b", "B", row=1), hunk("b", "B", row=3)]
    file.pieces, is_fresh, _ = place_hunks(file, BASE, both, is_undone=False)
    assert is_fresh
    assert place_hunks(file, BASE, both, is_undone=False) == (file.pieces, False, False)
    found = place_hunks(file, BASE, both[1:], is_undone=True)
    assert found == (pieces((1, "B")), False, False)
    file.is_undone = True  # as it was told before
    assert place_hunks(file, BASE, both[:1], is_undone=False)[0] == pieces((1, "B"))


def begun(*paths: str, key: str = "k", turns: Turns | None = None) -> Turns:
    turns = turns or Turns()
    rows = [to_row(FileChange(path, base=digest(BASE), changes=ALL), "") for path in paths]
    op = {"op": "begin", "key": key, "title": "", "chat": "", "at_s": 1.0, "files": rows}
    turns.apply(op)
    return turns


def decided(path: str = "a", key: str = "k", **more: Any) -> dict[str, Any]:
    op = {"op": "decided", "key": key, "path": path, "pieces": [[3, ["C", "D", "E", "f"]]]}
    fresh = {"rejected": [], "open": 0, "is_fresh": True, "is_lost": False}
    return {**op, **fresh, **more}


def reverted(turns: Turns, do: str, *paths: str) -> None:
    rows = [{"path": path} for path in paths]
    turns.apply({"op": "writing", "key": "two", "id": "1", "do": do, "files": rows})
    turns.apply({"op": "written", "key": "two", "id": "1"})


def test_a_turn_that_was_undone_in_part_is_undone_next() -> None:
    turns = begun("a", "b", key="before")
    begun("a", "b", key="two", turns=turns)
    for key in ("before", "two"):
        for path in ("a", "b"):
            turns.apply(decided(path, key))
    reverted(turns, "undo", "a")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "two")
    states = [turns.turns["two"].state]
    reverted(turns, "undo", "b")
    assert (turns.undo_key(), turns.redo_key()) == ("before", "two")
    assert [*states, turns.turns["two"].state] == ["done", "undone"]
    reverted(turns, "redo", "b")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "two")
    reverted(turns, "redo", "a")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "")


def test_what_is_neither_accepted_nor_rejected_is_open() -> None:
    turns = begun("a")
    (file,) = turns.turns["k"].files
    turns.apply(decided(open=3))
    assert file.rest() == (INSERTED, FIRST, SECOND)
    row = {"first_row": 1, "last_row": 2, "old": ["b"], "new": ["B"]}
    turns.apply(decided(open=2, rejected=[row]))
    assert file.rest() == (INSERTED, SECOND)
    assert not file.is_partly_rejected
    turns.apply(decided(pieces=[[3, list(LONG.old)]], open=3, is_fresh=False))
    assert file.rest() == (INSERTED, SECOND, LONG)
    assert turns.turns["k"].state == "open"
    turns.apply(decided(rejected=[{**row, "first_row": 4, "last_row": 5, "old": ["c"]}]))
    assert file.is_partly_rejected


@pytest.mark.parametrize(
    "op",
    [
        {"op": "what", "key": "k"},
        {"op": "decided", "key": "none"},
        {"op": "begin", "key": "j"},
        {"op": "written", "key": "k", "id": "1"},
        decided(path="other"),
        decided(pieces=[[4, ["a"]]]),
        decided(pieces=[[3, "a"]]),
        decided(pieces=["a", "b", "c", "d"]),
        decided(rejected=[{"first_row": 1}]),
    ],
)
def test_what_makes_no_sense_changes_nothing(op: dict[str, Any]) -> None:
    turns = begun("a")
    with pytest.raises((KeyError, TypeError, ValueError)):
        turns.apply(op)
    assert list(turns.turns) == ["k"]
    assert not turns.turns["k"].is_applied


def test_an_undone_turn_ignores_hunks_that_are_taken_back() -> None:
    """Another editor undid it, and this one read the file again: it can still be redone."""
    file = FileTurn(FileChange("a", base=digest(BASE), changes=ALL), is_undone=True)
    file.pieces = list(pieces((3, "C D E f")))
    found = place_hunks(file, BASE, [hunk("c d e", "C D E f")], is_undone=True)
    assert found == (pieces((3, "C D E f")), False, False)
