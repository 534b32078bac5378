"""A turn as data: the proposed changes of some files, and which of them are applied.

The state only changes by `Turns.apply` of an operation, a plain table that `history.py` records.
Pure: no clock, no file, no lock.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from lcursor.edit import diff
from lcursor.edit.checkpoints.oplog import Op
from lcursor.edit.records import Change, Check, FileChange, FileKind, Lines
from lcursor.protocol_edit import EditHunk, TurnState

VERSION: Final = 2
"""Of the operations."""
Action = Literal["write", "undo", "redo"]
"""What is done to files on disk."""


@dataclass(slots=True)
class FileTurn:
    """The proposed changes of a file, and which of them are applied.

    The text after the turn is the base with `pieces` in place of the changes. If open hunks were
    resumed in another text, the parts that were applied before are in `layers`.
    """

    change: FileChange
    base: str = ""
    """Image of the lines that the changes refer to; "" if unknown."""
    pieces: list[Lines] = field(default_factory=list)
    """For each change its present lines: the old ones, the new ones, or a mixture."""
    layers: list[tuple[str, str]] = field(default_factory=list)
    """Images before and after the applied changes, for each time that the base was replaced."""
    rejected: list[Change] = field(default_factory=list)
    """Changes, or parts of changes, that the user rejected."""
    open: int = 0
    """Number of open hunks."""
    is_lost: bool = False
    """The place of an accepted hunk is unclear: nothing can be undone."""
    is_made: bool = False
    """The file was created, deleted or renamed, which may be undone."""
    is_undone: bool = False
    removed: str = ""
    """Image of the bytes of a deleted file."""
    mode: int = -1
    """Its permissions."""

    def __post_init__(self) -> None:
        if not self.pieces:
            self.pieces = [each.old for each in self.change.changes]

    @property
    def has_effect(self) -> bool:
        """Whether the turn changed the file, undone or not."""
        return bool(self.applied() or self.layers or self.is_made or self.is_lost)

    def pieces_before(self, *, is_fresh: bool) -> list[Lines]:
        """Return the pieces that a decision changes: a fresh one starts after undone changes."""
        if self.is_undone and is_fresh:
            return [each.old for each in self.change.changes]
        return list(self.pieces)

    def applied(self) -> list[Change]:
        """Return the applied changes of the base."""
        pairs = zip(self.change.changes, self.pieces, strict=True)
        return [
            Change(each.first_row, each.last_row, each.old, piece)
            for each, piece in pairs
            if piece != each.old
        ]

    def wanted(self) -> tuple[Change, ...]:
        """Return the proposed changes that were not rejected as a whole."""
        refused = {(each.first_row, each.last_row, each.old) for each in self.rejected}
        return tuple(
            each
            for each in self.change.changes
            if (each.first_row, each.last_row, each.old) not in refused
        )

    @property
    def is_partly_rejected(self) -> bool:
        """Whether part of a change was rejected, so that only the editor knows the rest."""
        places = {(each.first_row, each.last_row, each.old) for each in self.change.changes}
        return any(
            (each.first_row, each.last_row, each.old) not in places for each in self.rejected
        )

    def rest(self) -> tuple[Change, ...]:
        """Return the proposed changes that are neither applied, even in part, nor rejected."""
        done = {(each.first_row, each.old) for each in self.applied()}
        return tuple(each for each in self.wanted() if (each.first_row, each.old) not in done)


@dataclass(slots=True)
class Turn:
    """A turn, which is undone as a whole."""

    key: str
    title: str
    at_s: float
    chat: str = ""
    files: list[FileTurn] = field(default_factory=list)
    applied_n: int = 0
    """Number of the operation that last applied something of it."""
    undone_n: int = 0
    writing: Op | None = None
    """The transaction on files that has not ended yet."""

    @property
    def open(self) -> int:
        """Number of open hunks."""
        return sum(file.open for file in self.files)

    @property
    def is_applied(self) -> bool:
        """Whether something can be undone."""
        return any(file.has_effect and not file.is_undone for file in self.files)

    @property
    def is_taken(self) -> bool:
        """Whether something can be redone."""
        return any(file.has_effect and file.is_undone for file in self.files)

    @property
    def state(self) -> TurnState:
        """Its state, for the user."""
        if self.is_taken and not self.is_applied:
            return "undone"
        return "open" if self.open else "done"

    def file(self, path: str) -> FileTurn:
        """Return the record of a file by its present or former path.

        Compares paths as text, as links on the disk may change.

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
    """The turns of a project."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all turns."""
        self.turns: dict[str, Turn] = {}
        self.count = 0
        """Of operations."""
        self.fresh_n = 0
        """Number of the last one that applied something new; earlier undone turns stay undone."""

    def apply(self, op: Mapping[str, Any]) -> None:
        """Change the state.

        Raises:
            KeyError, TypeError, ValueError: it makes no sense here.
        """
        do = {
            "begin": self._begin,
            "decided": self._decided,
            "rebased": self._rebased,
            "writing": self._writing,
            "written": self._written,
            "failed": self._failed,
        }.get(op["op"])
        if do is None:
            raise ValueError(f"no such operation: {op['op']}")
        self.count += 1
        do(op)

    def _begin(self, op: Mapping[str, Any]) -> None:
        files = [_file_of(row) for row in op["files"]]
        self.turns[op["key"]] = Turn(
            str(op["key"]), str(op["title"]), float(op["at_s"]), str(op["chat"]), files
        )

    def _decided(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        file = turn.file(op["path"])
        pieces = file.pieces_before(is_fresh=op["is_fresh"])
        for at, lines in op["pieces"]:
            if not 0 <= int(at) < len(pieces):
                raise ValueError("this is a piece of something else")
            pieces[int(at)] = _lines(lines)
        refused = [_change_of(row) for row in op["rejected"]]
        file.open = int(op["open"])
        file.rejected += refused
        if op["is_fresh"]:
            if file.is_undone:  # what was undone before is not in force with what is new
                file.layers, file.is_undone, file.is_made = [], False, False
            turn.applied_n = self.fresh_n = self.count
        file.pieces = pieces
        file.is_lost = file.is_lost or bool(op["is_lost"])

    def _rebased(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        known = turn.file(op["path"])
        made = _file_of(op["file"])
        made.layers = [*known.layers, *((str(a), str(b)) for a, b in op["layers"])]
        made.open, made.is_lost = known.open, known.is_lost
        turn.files[turn.files.index(known)] = made

    def _writing(self, op: Mapping[str, Any]) -> None:
        self.turns[op["key"]].writing = dict(op)

    def _failed(self, op: Mapping[str, Any]) -> None:
        self.turns[op["key"]].writing = None

    def _written(self, op: Mapping[str, Any]) -> None:
        turn = self.turns[op["key"]]
        begun, turn.writing = turn.writing, None
        if begun is None or begun["id"] != op["id"]:
            raise ValueError("nothing was being written")
        for row in begun["files"]:
            file = turn.file(row["path"])
            if begun["do"] == "write":
                done = {(each.first_row, each.old) for each in map(_change_of, row["changes"])}
                file.pieces = [
                    each.new if (each.first_row, each.old) in done else piece
                    for each, piece in zip(file.change.changes, file.pieces, strict=True)
                ]
                file.is_made = file.change.kind != "edit"
                file.removed, file.mode = str(row["removed"]), int(row["mode"])
                file.base = file.base or str(row["base"])
                file.open, file.is_undone = 0, False
            else:
                file.is_undone = begun["do"] == "undo"
        if begun["do"] == "undo":
            turn.undone_n = self.count
        else:
            turn.applied_n = self.count
        if begun["do"] == "write":
            self.fresh_n = self.count

    def undo_key(self) -> str:
        """Return the key of the last applied turn, "" for none."""
        found = [turn for turn in self.turns.values() if turn.is_applied]
        return max(found, key=lambda turn: turn.applied_n).key if found else ""

    def redo_key(self) -> str:
        """Return the key of the last undone turn, "" if something new was applied since."""
        found = [turn for turn in self.turns.values() if turn.is_taken]
        found = [turn for turn in found if turn.undone_n > self.fresh_n]
        return max(found, key=lambda turn: turn.undone_n).key if found else ""


# The place of a buffer's hunks in the proposal.


def place_hunks(
    file: FileTurn, base: Lines, hunks: Sequence[EditHunk], *, is_undone: bool
) -> tuple[list[Lines], bool, bool]:
    """Return the pieces of a file after the user accepted hunks, or undid them with `u`.

    A hunk may be part of a proposed change, and the user may have altered its lines. Of equal
    places the one with the hunk's surroundings is chosen, else the one at its row.

    Args:
        file: with the proposal.
        base: the lines that it refers to.
        hunks: from the editor.
        is_undone: they were undone.

    Returns:
        The pieces, whether any hunk is new, and whether the place of one is unclear.
    """
    pieces = file.pieces_before(is_fresh=bool(hunks) and not is_undone)
    is_fresh = is_lost = False
    if file.is_undone and is_undone:  # another editor undid the turn; this one read the file again
        return pieces, is_fresh, is_lost
    for hunk in hunks:
        was, will = tuple(hunk["old"]), tuple(hunk["new"])
        if is_undone:
            was, will = will, was
        places = _places(file, pieces, was, (tuple(hunk["old"]), tuple(hunk["new"])), is_undone)
        if not places:
            is_lost = is_lost or not _is_known(file, pieces, hunk, will)
            continue
        found = places[0] if len(places) == 1 else _nearest(file, base, pieces, hunk, was, places)
        if found is None:
            is_lost = True
            continue
        at, row = found
        pieces[at] = pieces[at][:row] + will + pieces[at][row + len(was) :]
        is_fresh = is_fresh or not is_undone
    return pieces, is_fresh, is_lost


def _places(
    file: FileTurn,
    pieces: Sequence[Lines],
    was: Lines,
    text: tuple[Lines, Lines],
    is_undone: bool,
) -> list[tuple[int, int]]:
    """Return the pieces and rows where lines are; whole changes take precedence."""
    whole = [
        (at, 0)
        for at, each in enumerate(file.change.changes)
        if (each.old, each.new) == text and pieces[at] == was
    ]
    if whole:
        return whole
    return [
        (at, row)
        for at, piece in enumerate(pieces)
        if was or is_undone or not file.change.changes[at].old or piece
        for row in range(len(piece) - len(was) + 1)
        if piece[row : row + len(was)] == was
    ]


def _is_known(file: FileTurn, pieces: Sequence[Lines], hunk: EditHunk, will: Lines) -> bool:
    """Return whether a hunk is known already: the editor repeats it after undo and redo."""
    text = (tuple(hunk["old"]), tuple(hunk["new"]))
    return any(
        (each.old, each.new) == text and pieces[at] == will
        for at, each in enumerate(file.change.changes)
    )


def _nearest(
    file: FileTurn,
    base: Lines,
    pieces: Sequence[Lines],
    hunk: EditHunk,
    was: Lines,
    places: Sequence[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the place with the surroundings of a hunk; None if that is unclear."""
    changes = [
        Change(each.first_row, each.last_row, each.old, piece)
        for each, piece in zip(file.change.changes, pieces, strict=True)
    ]
    lines = diff.apply(base, changes)
    firsts, grown = [], 0
    for each in changes:
        firsts.append(each.first_row + grown)
        grown += len(each.new) - len(each.old)

    def score(place: tuple[int, int]) -> tuple[int, bool]:
        row = firsts[place[0]] + place[1]
        above, below = lines[:row][::-1], lines[row + len(was) :]
        pairs = [*zip(hunk["above"][::-1], above, strict=False)]
        pairs += zip(hunk["below"], below, strict=False)
        return sum(one == other for one, other in pairs), row == hunk["row"]

    best = max(map(score, places))
    found = [place for place in places if score(place) == best]
    return found[0] if len(found) == 1 else None


# Conversion to and from the recorded tables.


def to_row(change: FileChange, image: str) -> Op:
    """Return the proposal for a file as a table."""
    return {**asdict(change), "image": image}


def _file_of(row: Mapping[str, Any]) -> FileTurn:
    kind: FileKind = row["kind"]
    if kind not in ("edit", "create", "delete", "rename"):
        raise ValueError(f"no such change of a file: {kind}")
    changes = tuple(_change_of(one) for one in row["changes"])
    checks = tuple(
        Check(str(one["name"]), bool(one["is_ok"]), str(one["text"])) for one in row["checks"]
    )
    path, to, base = str(row["path"]), str(row["to"]), str(row["base"])
    change = FileChange(path, kind, to, base, changes, checks)
    return FileTurn(change, str(row["image"]), open=max(len(changes), 1))


def _change_of(row: Mapping[str, Any]) -> Change:
    return Change(
        int(row["first_row"]), int(row["last_row"]), _lines(row["old"]), _lines(row["new"])
    )


def _lines(value: Any) -> Lines:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise TypeError("expected lines")
    return tuple(value)
