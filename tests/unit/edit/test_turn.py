"""Turns as data: which proposed change a hunk is, and what is told twice."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.edit.records import Change, FileChange, Lines, digest
from lcursor.edit.turns import carry
from lcursor.edit.turns.turn import FileTurn, Hunk, Turns, hunk_at, hunks_for, in_base, to_row

BASE: Lines = ("a", "b", "a", "b", "c", "d", "e")
INSERTED = Change(0, 0, (), ("x", "y", "y"))
FIRST, SECOND = Change(1, 2, ("b",), ("B",)), Change(3, 4, ("b",), ("B",))
LONG = Change(4, 7, ("c", "d", "e"), ("C", "D", "e", "f"))
ALL = (INSERTED, FIRST, SECOND, LONG)


def file() -> FileTurn:
    return FileTurn(FileChange("a", base=digest(BASE), changes=ALL), carry.marks(BASE))


def hunk(old: Lines, new: Lines, above: Lines = (), below: Lines = ()) -> Hunk:
    return Hunk(9, old, new, above, below)


@pytest.mark.parametrize(
    ("hunks", "expected"),
    [
        (list(hunks_for(BASE, ALL)), list(ALL)),
        ([hunk(LONG.old, LONG.new)], [LONG]),
        # Of two that are alike, both, or the one that is known by what is around it.
        ([hunk(("b",), ("B",)), hunk(("b",), ("B",))], [FIRST, SECOND]),
        ([hunk_at(("a", "b", "a", "B", "c", "d", "e"), 3, ("b",), ("B",))], [SECOND]),
        ([hunk(("b",), ("B",), ("z",), ("z",))], None),
        # A part of one.
        ([hunk(("d",), ("D",))], [Change(5, 6, ("d",), ("D",))]),
        ([hunk((), ("x",))], [Change(0, 0, (), ("x",))]),
        ([hunk((), ("y",))], None),
        ([hunk((), ("y",)), hunk((), ("y",))], [Change(0, 0, (), ("y",))] * 2),
        (
            [hunk(("d",), ("D",)), hunk(("c",), ("C",))],
            [Change(4, 5, ("c",), ("C",)), Change(5, 6, ("d",), ("D",))],
        ),
        # What the user altered before he took it.
        ([hunk(("d", "e"), ("mine",))], [Change(5, 7, ("d", "e"), ("mine",))]),
        ([hunk((), ("mine",))], [Change(0, 0, (), ("mine",))]),
        ([hunk(("b",), ("mine",))], None),
        ([hunk(("nothing",), ("of it",))], None),
        ([hunk(LONG.old, LONG.new), hunk(("d",), ("D",))], None),
    ],
)
def test_which_change_a_hunk_is(hunks: list[Hunk], expected: list[Change] | None) -> None:
    assert in_base(file(), hunks) == expected


def begun() -> Turns:
    turns = Turns()
    row = to_row(file().change, BASE)
    turns.apply({"op": "begin", "key": "k", "title": "", "chat": "", "at_s": 1.0, "files": [row]})
    return turns


def decided(*hunks: Hunk, is_undone: bool = False, **more: Any) -> dict[str, Any]:
    rows = [
        {"row": one.row, "old": one.old, "new": one.new, "above": (), "below": ()} for one in hunks
    ]
    op = {"op": "decided", "key": "k", "path": "a", "accepted": rows, "rejected": [], "open": 0}
    return {**op, "is_undone": is_undone, **more}


def test_what_is_told_twice_counts_once() -> None:
    turns = begun()
    (found,) = turns.turns["k"].files
    both = hunk(("b",), ("B",))
    turns.apply(decided(both))
    turns.apply(decided(both))
    turns.apply(decided(both))  # there are two of them
    assert len(found.hunks) == 2
    turns.apply(
        {"op": "reverted", "key": "k", "do": "undo", "journal": "", "files": []}
        | {"files": [{"path": "a", "hunks": decided(both, both)["accepted"]}]}
    )
    turns.apply(decided(both, both, is_undone=True, open=2))  # as the editor saw it
    assert (found.hunks, len(found.taken), turns.redo_key()) == ([], 2, "k")
    turns.apply(
        {"op": "reverted", "key": "k", "do": "redo", "journal": "", "files": []}
        | {"files": [{"path": "a", "hunks": decided(both, both)["accepted"]}]}
    )
    turns.apply(decided(both, both))
    assert (len(found.hunks), turns.undo_key()) == (2, "k")


def test_a_turn_that_was_undone_in_part_is_undone_next() -> None:
    turns = Turns()
    for key in ("before", "two"):
        rows = [to_row(FileChange(path, changes=(FIRST,))) for path in ("a", "b")]
        turns.apply(
            {"op": "begin", "v": 1, "key": key, "title": "", "chat": "", "at_s": 0.0, "files": rows}
        )
        for path in ("a", "b"):
            turns.apply(decided(hunk(FIRST.old, FIRST.new), key=key, path=path))

    def reverted(do: str, *paths: str) -> None:
        rows = [
            {"path": path, "hunks": decided(hunk(FIRST.old, FIRST.new))["accepted"]}
            for path in paths
        ]
        turns.apply({"op": "reverted", "key": "two", "do": do, "journal": "", "files": rows})

    reverted("undo", "a")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "two")
    assert not turns.turns["two"].is_undone
    reverted("undo", "b")
    assert (turns.undo_key(), turns.redo_key()) == ("before", "two")
    assert turns.turns["two"].is_undone
    reverted("redo", "b")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "two")
    reverted("redo", "a")
    assert (turns.undo_key(), turns.redo_key()) == ("two", "")


def test_what_was_taken_back_with_u_is_open_again() -> None:
    turns = begun()
    (found,) = turns.turns["k"].files
    turns.apply(decided(hunk(LONG.old, LONG.new), hunk(("b",), ("B",)), open=2))
    assert found.rest() == (INSERTED, SECOND)
    turns.apply(decided(hunk(LONG.old, LONG.new), is_undone=True, open=3))
    assert found.rest() == (INSERTED, SECOND, LONG)
    assert turns.turns["k"].state == "open"


@pytest.mark.parametrize(
    "op",
    [
        {"op": "what", "key": "k"},
        {"op": "decided", "key": "none"},
        {"op": "begin", "key": "j"},
        decided(path="other"),
        decided(accepted=[{"row": 1}]),
        decided(accepted=[{"row": 1, "old": "a", "new": [], "above": [], "below": []}]),
    ],
)
def test_what_makes_no_sense_changes_nothing(op: dict[str, Any]) -> None:
    turns = begun()
    with pytest.raises((KeyError, TypeError, ValueError)):
        turns.apply(op)
    assert list(turns.turns) == ["k"]
    assert not turns.turns["k"].is_applied
