"""A turn as data: what was proposed for some files, and what of it is in force.

Owns the state and the one way to change it: `Turns.apply` of an operation, a plain table that
`ledger.py` writes down as it is. Pure: no clock, no file, no lock.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lcursor.edit.records import Change, Check, FileChange, FileKind, Lines
from lcursor.edit.turns import carry
from lcursor.edit.turns.oplog import Op
from lcursor.edit.turns.text import Text
from lcursor.protocol_edit import TurnState

VERSION = 1
"""Of the operations; lines of a higher one are left alone."""
CONTEXT_ROWS = 3


@dataclass(frozen=True, slots=True)
class Hunk:
    """A change of lines as it was made, at the row where it was made."""

    row: int
    old: Lines
    new: Lines
    above: Lines = ()
    """Up to three lines before it, after it was made."""
    below: Lines = ()


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to one file on disk."""

    path: str
    """As the turn has it."""
    kind: FileKind
    to: str = ""
    before: Text | None = None
    after: Text | None = None
    mode: int = 0
    """Permissions that it had or has."""
    hunks: tuple[Hunk, ...] = ()


@dataclass(slots=True)
class FileTurn:
    """What a turn proposed for a file, and what of that is in force."""

    change: FileChange
    marks: str = ""
    """Of the base, as `carry.marks` makes them; empty where nobody told the base."""
    open: int = 0
    """Hunks that wait for the user."""
    refused: list[Change] = field(default_factory=list)
    """Changes, or parts of changes, that the user does not want. Rows of the base that the editor
    had: after a restart not that of the proposal."""
    hunks: list[Hunk] = field(default_factory=list)
    """In force, in the order of their making."""
    taken: list[Hunk] = field(default_factory=list)
    """Taken back, in the same order."""
    is_made: bool = False
    """The file's creation, deletion or renaming is in force."""
    was_made: bool = False
    """It was, and was taken back."""
    kept: Text | None = None
    """Text of a file that was created or deleted."""
    mode: int = 0

    @property
    def is_applied(self) -> bool:
        """Whether something can be taken back."""
        return bool(self.hunks) or self.is_made

    @property
    def is_taken(self) -> bool:
        """Whether something can be made again."""
        return bool(self.taken) or self.was_made

    def wanted(self) -> tuple[Change, ...]:
        """Return the proposed changes but for those that were refused as a whole."""
        return self._sorted()[0]

    @property
    def is_partly_refused(self) -> bool:
        """Whether a part of a change was refused: what is left of it is known to the editor."""
        return self._sorted()[1]

    def _sorted(self) -> tuple[tuple[Change, ...], bool]:
        """Return the changes that nobody refused, and whether a refusal is of none of them."""
        left, is_other = list(self.change.changes), False
        for one in self.refused:
            same = [each for each in left if each.old == one.old and each.new == one.new]
            place = (one.first_row, one.last_row, one.old)  # the new lines may have been changed
            same += [each for each in left if (each.first_row, each.last_row, each.old) == place]
            near = min(same, key=lambda each: abs(each.first_row - one.first_row), default=None)
            if near is None:
                is_other = True
            else:
                left.remove(near)
        return tuple(left), is_other

    def rest(self) -> tuple[Change, ...]:
        """Return the proposed changes but for those in force, and those that were refused."""
        made = [(hunk.old, hunk.new) for hunk in self.hunks]
        left = []
        for change in self.wanted():
            if (change.old, change.new) in made:
                made.remove((change.old, change.new))
            else:
                left.append(change)
        return tuple(left)


@dataclass(slots=True)
class Turn:
    """One turn: what becomes undone as a whole."""

    key: str
    title: str
    at_s: float
    chat: str = ""
    files: list[FileTurn] = field(default_factory=list)
    applied_n: int = 0
    """Number of the operation that last put something of it in force."""
    undone_n: int = 0
    is_undone: bool = False
    settled: list[str] = field(default_factory=list)
    """Journals of writing that this turn has noted."""

    @property
    def open(self) -> int:
        """Hunks that wait for the user."""
        return sum(file.open for file in self.files)

    @property
    def is_applied(self) -> bool:
        """Whether something can be taken back."""
        return any(file.is_applied for file in self.files)

    @property
    def is_taken(self) -> bool:
        """Whether something can be made again."""
        return any(file.is_taken for file in self.files)

    @property
    def state(self) -> TurnState:
        """What it is for people."""
        if self.is_undone:
            return "undone"
        return "open" if self.open else "done"

    def file(self, path: str) -> FileTurn:
        """Return what it has about a file, by its path now or before.

        Compares paths as text: the log must mean the same whatever links are on the disk today.

        Raises:
            KeyError: nothing.
        """
        wanted = os.path.normpath(path)
        for file in self.files:
            names = (file.change.path, file.change.to)
            if any(name and os.path.normpath(name) == wanted for name in names):
                return file
        raise KeyError(path)


class Turns:
    """The turns of a project, as its operations left them."""

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        self.count = 0
        """Of operations."""
        self.fresh_n = 0
        """The last that put something new in force: what was undone before it stays so."""

    def apply(self, op: Mapping[str, Any]) -> None:
        """Change the state.

        Raises:
            KeyError, TypeError, ValueError: it makes no sense here.
        """
        do = {
            "begin": self._begin,
            "decided": self._decided,
            "wrote": self._wrote,
            "reverted": self._reverted,
            "closed": self._closed,
        }.get(op["op"])
        if do is None:
            raise ValueError(f"no such operation: {op['op']}")
        self.count += 1
        do(op)

    def _begin(self, op: Mapping[str, Any]) -> None:
        files = []
        for row in op["files"]:
            change = change_of(row)
            marks = str(row.get("marks", ""))
            files.append(FileTurn(change, marks, max(len(change.changes), 1)))
        self.turns[op["key"]] = Turn(
            str(op["key"]), str(op["title"]), float(op["at_s"]), str(op["chat"]), files
        )

    def _decided(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        file = turn.file(op["path"])
        hunks = hunks_of(op["accepted"])
        file.open = int(op["open"])
        file.refused += [_change_of(row) for row in op["rejected"]]
        if op["is_undone"]:
            for hunk in hunks:
                _take_out(file.hunks, hunk)
            return
        new = [hunk for hunk in hunks if not _is_known(file, hunk)]
        if new:
            file.hunks += new
            self._fresh(turn)

    def _wrote(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        for row in op["files"]:
            file = turn.file(row["path"])
            file.hunks += hunks_of(row["hunks"])
            file.is_made = row["kind"] != "edit"
            file.kept = text_of(row["kept"])
            file.mode = int(row["mode"])
            file.marks = file.marks or str(row.get("marks", ""))
            file.open = 0
        turn.settled.append(str(op["journal"]))
        self._fresh(turn)

    def _fresh(self, turn: Turn) -> None:
        turn.applied_n = self.fresh_n = self.count
        turn.is_undone = False

    def _reverted(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        for row in op["files"]:
            file = turn.file(row["path"])
            hunks = hunks_of(row["hunks"])
            if op["do"] == "undo":
                file.taken, file.hunks = hunks, []
                file.was_made, file.is_made = file.is_made, False
            else:
                file.hunks, file.taken = hunks, []
                file.is_made, file.was_made = file.was_made, False
        turn.settled.append(str(op["journal"]))
        # A file that was changed since may have stayed as it was: the rest is still to be done.
        turn.is_undone = not turn.is_applied
        if op["do"] == "undo":
            turn.undone_n = self.count
        else:
            turn.applied_n = self.count

    def _closed(self, op: Mapping[str, Any]) -> None:
        for file in self.turns[op["key"]].files:
            file.open = 0

    def undo_key(self) -> str:
        """Return the turn of which something was put in force last and still is; "" for none."""
        found = [turn for turn in self.turns.values() if turn.is_applied]
        return max(found, key=lambda turn: turn.applied_n).key if found else ""

    def redo_key(self) -> str:
        """Return the turn of which something was undone last; "" where something new was done."""
        found = [turn for turn in self.turns.values() if turn.is_undone or turn.is_taken]
        found = [turn for turn in found if turn.undone_n > self.fresh_n]
        return max(found, key=lambda turn: turn.undone_n).key if found else ""


def _is_known(file: FileTurn, hunk: Hunk) -> bool:
    """Return whether a hunk is in force already: it is told again when a turn was made again."""
    text = (hunk.old, hunk.new)
    proposed = sum((change.old, change.new) == text for change in file.change.changes)
    return 0 < proposed <= sum((each.old, each.new) == text for each in file.hunks)


def _take_out(hunks: list[Hunk], hunk: Hunk) -> None:
    """Take the last hunk that is like one out of a list: by its place, else by its text."""
    found = [at for at, each in enumerate(hunks) if (each.old, each.new) == (hunk.old, hunk.new)]
    if found:
        same = [at for at in found if hunks[at].row == hunk.row]
        del hunks[(same or found)[-1]]


def hunks_for(before: Sequence[str], changes: Sequence[Change]) -> tuple[Hunk, ...]:
    """Return changes of a text as they are made one after the other, the last of the text first.

    So each is at the row of the text as it was, and taking them back in the other order finds each
    where it was made.
    """
    lines = list(before)
    made = []
    for change in sorted(changes, key=lambda each: each.first_row, reverse=True):
        lines[change.first_row : change.last_row] = change.new
        made.append(hunk_at(lines, change.first_row, change.old, change.new))
    return tuple(made)


def hunk_at(lines: Sequence[str], row: int, old: Lines, new: Lines, rows: int = -1) -> Hunk:
    """Return a hunk with what is around it now.

    Args:
        lines: of the text.
        row: where it is.
        old: what it replaces.
        new: what it puts there.
        rows: that it has in the text now; -1 where that is `new`.
    """
    end = row + (len(new) if rows < 0 else rows)
    above = tuple(lines[max(row - CONTEXT_ROWS, 0) : row])
    return Hunk(row, old, new, above, tuple(lines[end : end + CONTEXT_ROWS]))


def in_base(file: FileTurn, hunks: Sequence[Hunk]) -> list[Change] | None:
    """Return hunks of a file as the proposed changes that they are, or the parts of one.

    The user may have taken a part of a change, and may have altered what it puts there.

    Returns:
        None where it is not sure which of them one is.
    """
    found: list[tuple[int, int, Change]] = []
    left, parts = list(file.change.changes), list[list[Hunk]]()
    for text in dict.fromkeys((hunk.old, hunk.new) for hunk in hunks):
        same = [hunk for hunk in hunks if (hunk.old, hunk.new) == text]
        meant = [change for change in left if (change.old, change.new) == text]
        if not meant:
            parts.append(same)
            continue
        if len(same) < len(meant):
            near = [change for hunk in same for change in _around(file.marks, hunk, meant)]
            meant = [change for change in meant if change in near]
        if len(same) != len(meant):
            return None
        left = [change for change in left if change not in meant]
        found += [(change.first_row, 0, change) for change in meant]
    for same in parts:
        places = [place for change in left for place in _within(change, same[0])]
        places = places or [place for change in left for place in _instead(change, same[0])]
        if len(places) != len(same):
            return None
        found += places
    made = [change for _, _, change in sorted(found, key=lambda each: each[:2])]
    pairs = itertools.pairwise(made)
    return None if any(a.last_row > b.first_row for a, b in pairs) else made


def _around(marks: str, hunk: Hunk, meant: Sequence[Change]) -> list[Change]:
    """Return those of some changes that have in the base what is around a hunk."""
    base = carry.split(marks)
    above, below = (carry.split(carry.marks(each)) for each in (hunk.above, hunk.below))
    return [
        change
        for change in meant
        if base[max(change.first_row - len(above), 0) : change.first_row] == above
        and base[change.last_row : change.last_row + len(below)] == below
    ]


def _within(change: Change, hunk: Hunk) -> list[tuple[int, int, Change]]:
    """Return the places in a change of which a hunk can be a part: row, row of the new text."""
    news = _standing(change.new, hunk.new) if hunk.new else [0]
    return [(place.first_row, at, place) for place in _replacing(change, hunk) for at in news]


def _instead(change: Change, hunk: Hunk) -> list[tuple[int, int, Change]]:
    """Return the places in a change whose new lines the user altered to those of a hunk."""
    return [(place.first_row, 0, place) for place in _replacing(change, hunk)]


def _replacing(change: Change, hunk: Hunk) -> list[Change]:
    """Return a hunk at each place in a change where its old lines stand."""
    if not hunk.old:
        at = change.first_row
        return [Change(at, at, (), hunk.new)] if not change.old else []
    rows = [change.first_row + at for at in _standing(change.old, hunk.old)]
    return [Change(row, row + len(hunk.old), hunk.old, hunk.new) for row in rows]


def _standing(lines: Lines, part: Lines) -> list[int]:
    size = len(part)
    return [at for at in range(len(lines) - size + 1) if lines[at : at + size] == part]


# To and from the tables that are written down.


def to_row(change: FileChange, base: Sequence[str] | None = None) -> Op:
    """Return what is proposed for a file as a table."""
    return {
        "path": change.path,
        "kind": change.kind,
        "to": change.to,
        "base": change.base,
        "changes": [asdict(each) for each in change.changes],
        "checks": [asdict(each) for each in change.checks],
        "marks": carry.marks(base) if base is not None else "",
    }


def change_of(row: Mapping[str, Any]) -> FileChange:
    """Return what `to_row` wrote."""
    kind: FileKind = row["kind"]
    if kind not in ("edit", "create", "delete", "rename"):
        raise ValueError(f"no such change of a file: {kind}")
    changes = tuple(_change_of(one) for one in row["changes"])
    checks = tuple(
        Check(str(one["name"]), bool(one["is_ok"]), str(one["text"]))
        for one in row.get("checks", ())  # older turns have none
    )
    return FileChange(str(row["path"]), kind, str(row["to"]), str(row["base"]), changes, checks)


def _change_of(row: Mapping[str, Any]) -> Change:
    return Change(
        int(row["first_row"]), int(row["last_row"]), _lines(row["old"]), _lines(row["new"])
    )


def done_row(done: Done) -> Op:
    """Return what was done to a file as a table."""
    kept = {"create": done.after, "delete": done.before}.get(done.kind)
    return {
        "path": done.path,
        "kind": done.kind,
        "kept": asdict(kept) if kept else None,
        "mode": done.mode,
        "hunks": [asdict(hunk) for hunk in done.hunks],
        "marks": carry.marks(done.before.lines) if done.before and done.hunks else "",
    }


def text_of(row: Mapping[str, Any] | None) -> Text | None:
    """Return a text that was written as a table."""
    if row is None:
        return None
    values = (str(row["newline"]), bool(row["has_bom"]), bool(row["ends"]), str(row["encoding"]))
    return Text(_lines(row["lines"]), *values)


def hunks_of(rows: Iterable[Mapping[str, Any]]) -> list[Hunk]:
    """Return hunks that were written as tables, or came over the wire."""
    return [
        Hunk(
            int(row["row"]),
            _lines(row["old"]),
            _lines(row["new"]),
            _lines(row["above"]),
            _lines(row["below"]),
        )
        for row in rows
    ]


def _lines(value: Any) -> Lines:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise TypeError("expected lines")
    return tuple(value)
