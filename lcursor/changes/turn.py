"""A turn as data: the proposed changes of some files, and their state. Pure."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any, Final, Literal

from lcursor.changes import diff
from lcursor.changes.attributes import Attributes
from lcursor.changes.records import Change, FileChange, Lines
from lcursor.protocol.edit import EditHunk, TurnState
from lcursor.storage import json_text, stored

VERSION: Final = 6
"""Version of the stored form; turns of version 5 have no run, of version 4 neither attributes nor a
digest."""
Action = Literal["write", "undo", "redo"]
"""A change of files on disk."""


@dataclass(slots=True)
class FileTurn:
    """The proposed changes of a file, and which of them are applied.

    The text after the turn is the base with `pieces` in place of the changes.
    """

    change: FileChange
    base: str = ""
    """Image of the lines that the changes refer to; "" if unknown."""
    before: str = ""
    """Image of the lines without the turn, if the base of resumed hunks includes parts of it."""
    pieces: list[Lines] = field(default_factory=list)
    """For each change its current lines: old, new or a mixture."""
    rejected: list[Change] = field(default_factory=list)
    """Changes, or parts of changes, that the user rejected."""
    open: int = -1
    """Number of open hunks."""
    is_lost: bool = False
    """Whether the position of an accepted hunk is unclear, so that nothing can be undone."""
    is_made: bool = False
    """Whether the file was created, deleted or renamed."""
    is_undone: bool = False
    removed: str = ""
    """Image of the bytes of a deleted file."""
    attributes: Attributes | None = None
    """Its attributes."""
    was_empty: bool | None = None
    """Whether the file had no bytes, rather than a blank line; None if the editor wrote it."""
    left: str = ""
    """Image of the lines as an agent left them in its copy; "" if no agent made the turn."""

    def __post_init__(self) -> None:
        self.pieces = self.pieces or [each.old for each in self.change.changes]
        if self.open < 0:
            self.open = max(len(self.pieces), 1)

    @property
    def has_effect(self) -> bool:
        """Whether the turn changed the file, undone or not."""
        return bool(self.applied() or self.before or self.is_made or self.is_lost)

    def pieces_before(self, *, is_fresh: bool) -> list[Lines]:
        """Return the pieces that a decision changes; undone changes are not part of a fresh one."""
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
        """Return the proposed changes that were not completely rejected."""
        rejected = {_key(each) for each in self.rejected}
        return tuple(each for each in self.change.changes if _key(each) not in rejected)

    @property
    def is_partly_rejected(self) -> bool:
        """Whether part of a change was rejected, so that only the editor has the rest."""
        return not {*map(_key, self.rejected)} <= {*map(_key, self.change.changes)}

    def rest(self) -> tuple[Change, ...]:
        """Return the proposed changes that are neither applied, even partly, nor rejected."""
        done = {_key(each) for each in self.applied()}
        return tuple(each for each in self.wanted() if _key(each) not in done)


@dataclass(slots=True)
class Writing:
    """An unfinished transaction on files."""

    name: str
    """Unique name, part of the names of its temporary files."""
    action: Action
    files: list[FileTurn]
    """Their state after it."""
    in_place: dict[str, str]
    """Images of the new bytes of files that are overwritten, by real path."""
    old: dict[str, str] = field(default_factory=dict)
    """Images of their old bytes, and of those of `reused`."""
    reused: dict[str, str] = field(default_factory=dict)
    """Images of the new bytes of files that get the name of another one, by real path."""


@dataclass(slots=True)
class Turn:
    """An edit, the unit of undo."""

    key: str
    title: str
    at_s: float
    chat: str
    files: list[FileTurn]
    applied_n: int = 0
    """Number of the history's step that last applied part of it."""
    undone_n: int = 0
    fresh_n: int = 0
    """Like `applied_n`, but without redo steps: turns undone earlier stay undone."""
    writing: Writing | None = None
    run: str = ""
    """Key of the agent's run that made it."""

    @property
    def open(self) -> int:
        """Number of open hunks."""
        return sum(file.open for file in self.files)

    @property
    def paths(self) -> list[str]:
        """The current and former paths of its files."""
        changes = [file.change for file in self.files]
        return [path for each in changes for path in (each.path, each.to) if path]

    @property
    def is_applied(self) -> bool:
        """Whether something can be undone."""
        return any(file.has_effect and not file.is_undone for file in self.files)

    @property
    def is_undone(self) -> bool:
        """Whether something can be redone."""
        return any(file.has_effect and file.is_undone for file in self.files)

    @property
    def state(self) -> TurnState:
        """The state to show to the user."""
        if self.is_undone and not self.is_applied:
            return "undone"
        return "open" if self.open else "done"

    def index(self, path: str) -> int:
        """Return the index of a file by its current or former path; raise KeyError for none."""
        real = os.path.realpath(path)
        for at, file in enumerate(self.files):
            names = (file.change.path, file.change.to)
            if any(name and os.path.realpath(name) == real for name in names):
                return at
        raise KeyError(path)

    def end_writing(self, number: int, *, is_done: bool) -> None:
        """End the transaction on files; `number` is that of this step."""
        writing, self.writing = self.writing, None
        if writing is None or not is_done:
            return
        for file in writing.files:
            self.files[self.index(file.change.path)] = file
        if writing.action == "undo":
            self.undone_n = number
        else:
            self.applied_n = number
        if writing.action == "write":
            self.fresh_n = number

    def images(self) -> set[str]:
        """Return the keys of all referenced images."""
        writing = self.writing
        files = [*self.files, *(writing.files if writing else ())]
        keys = {key for file in files for key in (file.base, file.before, file.removed, file.left)}
        if writing is not None:
            keys |= {*writing.in_place.values(), *writing.old.values(), *writing.reused.values()}
        return keys


def _key(change: Change) -> tuple[int, int, Lines]:
    return change.first_row, change.last_row, change.old


# The positions of a buffer's hunks in the proposal.


def locate_hunks(
    file: FileTurn, base: Lines, hunks: Sequence[EditHunk], *, is_undone: bool
) -> tuple[list[Lines], bool, bool]:
    """Return the pieces of a file after the user accepted hunks, or undid them with `u`.

    A hunk may be part of a proposed change, and the user may have edited its lines.

    Returns:
        The pieces, whether any hunk is new, and whether the position of any is unclear.
    """
    pieces = file.pieces_before(is_fresh=bool(hunks) and not is_undone)
    is_fresh = is_lost = False
    if file.is_undone and is_undone:  # another editor undid the turn; this one reloaded the file
        return pieces, is_fresh, is_lost
    for hunk in hunks:
        text = tuple(hunk["old"]), tuple(hunk["new"])
        was, will = text[::-1] if is_undone else text
        locations = _locations(file, base, pieces, hunk, was, is_undone)
        if len(locations) == 1:
            at, row = locations[0]
            pieces[at] = pieces[at][:row] + will + pieces[at][row + len(was) :]
            is_fresh = is_fresh or not is_undone
        elif locations or not any(  # the editor repeats hunks after undo and redo
            (each.old, each.new) == text and pieces[at] == will
            for at, each in enumerate(file.change.changes)
        ):
            is_lost = True
    return pieces, is_fresh, is_lost


def _locations(
    file: FileTurn,
    base: Lines,
    pieces: Sequence[Lines],
    hunk: EditHunk,
    was: Lines,
    is_undone: bool,
) -> list[tuple[int, int]]:
    """Return the possible pieces and rows of a hunk: several if unclear.

    A whole change takes precedence, then the surroundings of the hunk, then its row.
    """
    changes, text = file.change.changes, (tuple(hunk["old"]), tuple(hunk["new"]))
    pairs = [*zip(changes, pieces, strict=True)]
    lines = diff.apply(base, [replace(each, new=piece) for each, piece in pairs])
    grown = accumulate((len(piece) - len(each.old) for each, piece in pairs), initial=0)
    firsts = [each.first_row + by for each, by in zip(changes, grown, strict=False)]

    def score(at: int, row: int) -> tuple[bool, int, bool]:
        is_whole = (changes[at].old, changes[at].new) == text and pieces[at] == was
        row += firsts[at]
        end, above, below = row + len(was), hunk["above"], hunk["below"]
        near = [*zip(above[::-1], lines[max(row - len(above), 0) : row][::-1], strict=False)]
        near += zip(below, lines[end : end + len(below)], strict=False)
        return is_whole, sum(one == other for one, other in near), row == hunk["row"]

    scores = {
        (at, row): score(at, row)
        for at, piece in enumerate(pieces)
        if was or is_undone or not changes[at].old or piece
        for row in range(len(piece) - len(was) + 1)
        if piece[row : row + len(was)] == was
    }
    best = max(scores.values(), default=None)
    return [location for location in scores if scores[location] == best]


# The stored form.


def to_bytes(turn: Turn) -> bytes:
    """Return the stored form of a turn."""
    row = {"v": VERSION, **asdict(turn)}
    return _encode({**row, "digest": _digest(row)})


def from_bytes(data: bytes) -> Turn:
    """Return a turn from its stored form.

    Raises:
        ValueError, TypeError, KeyError: it is damaged, or of a newer version.
    """
    row = dict(json_text.parse(data))
    version, expected = row["v"], row.pop("digest", "")
    if version > VERSION:
        raise ValueError("written by a newer version")
    if version >= 5 and expected != _digest(row):
        raise ValueError("it is damaged")
    turn = stored.load(Turn, row)
    files = [*zip(turn.files, row["files"], strict=True)]
    if turn.writing is not None:
        files += zip(turn.writing.files, row["writing"]["files"], strict=True)
    for file, known in files:
        _complete(file, known)
    return turn


def _complete(file: FileTurn, row: Mapping[str, Any]) -> None:
    """Check a file of a turn, and take over what version 4 stored."""
    if len(file.pieces) != len(file.change.changes):
        raise ValueError("a change has no state")
    if any("\0" in path for path in (file.change.path, file.change.to)):
        raise ValueError("a path has a null byte")
    if row.get("mode", -1) >= 0 and file.removed:
        file.attributes = Attributes(row["mode"])


def _encode(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _digest(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(_encode(row)).hexdigest()


def change_of(row: Mapping[str, Any]) -> Change:
    """Return a change from a message."""
    return Change(row["first_row"], row["last_row"], tuple(row["old"]), tuple(row["new"]))
