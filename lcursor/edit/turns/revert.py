"""Takes turns back and makes them again: exactly what they changed, with all that came since kept.

A text that is still as the turn left it is put back as it was; else each hunk is looked for, and a
file in which one is not sure to be found stays as it is, with a word about it. Files that a buffer
has are given back as changes for the buffer; the others are written, all or none. Blocks on the
disk; any thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lcursor.edit import diff
from lcursor.edit.records import Change, FileChange, Lines, digest, lines_of
from lcursor.edit.turns import anchor, carry, journal, text, turn, writing
from lcursor.edit.turns.ledger import Ledger
from lcursor.edit.turns.text import Text
from lcursor.edit.turns.turn import FileTurn, Hunk, Turn
from lcursor.edit.turns.writing import Act
from lcursor.errors import EditFailed, EditMissing
from lcursor.protocol_edit import EditBuffer

STAYS = "stays as it is"
CHANGED = f"was changed since, and {STAYS}"


@dataclass(frozen=True, slots=True)
class Reverted:
    """What came of it."""

    key: str
    title: str
    files: tuple[FileChange, ...] = ()
    """For buffers, whose text each is made for; nothing of it is done yet."""
    paths: tuple[str, ...] = ()
    """That were written, made or deleted."""
    problems: tuple[str, ...] = ()
    """What stays as it is, and why."""


@dataclass(slots=True)
class _Part:
    """What becomes of one file of a turn."""

    file: FileTurn
    hunks: list[Hunk] = field(default_factory=list)
    """As they are found in the next revert, in the order of their making."""
    act: Act | None = None
    buffer: FileChange | None = None


class _Kept(Exception):
    """A file stays as it is."""


def revert(ledger: Ledger, key: str, do: str, buffers: Sequence[EditBuffer]) -> Reverted:
    """Take a turn back, or make it again; on disk it is done when this returns.

    Args:
        ledger: of the project.
        key: of the turn; "" is the last that can be.
        do: `undo` or `redo`.
        buffers: the loaded ones among its files.

    Raises:
        EditMissing: there is no such turn, or nothing of it can be taken back.
        EditUnsaved: the files or the ledger cannot be written; all is as before.
        EditFailed: a file must not be written; all is as before.
    """
    loaded = {os.path.realpath(each["path"]): lines_of(each["text"]) for each in buffers}
    with writing.holding(ledger) as folder:
        key = key or (ledger.undo_key() if do == "undo" else ledger.redo_key())
        if not key:
            words = "taken back" if do == "undo" else "made again"
            raise EditMissing(f"there is no turn that can be {words}", "See :LCursor edits")
        found = ledger.turn(key)
        parts, problems = _parts(found, do, loaded)
        if not parts:
            if not problems:
                words = "in force" if do == "undo" else "taken back"
                raise EditMissing(f"nothing of this turn is {words}", "See :LCursor edits")
            return Reverted(key, found.title, problems=tuple(problems))
        marks = {part.file.change.path: part.hunks for part in parts}

        def settle(name: str) -> None:
            ledger.reverted(key, do, marks, name)

        acts = [part.act for part in parts if part.act is not None]
        journal.carry_out(writing.planned(acts, ledger.root, outside=True), folder, settle)
    return Reverted(
        key,
        found.title,
        tuple(part.buffer for part in parts if part.buffer is not None),
        tuple(path for act in acts for path in (act.path, act.to) if path),
        tuple(problems),
    )


def _parts(found: Turn, do: str, loaded: Mapping[str, Lines]) -> tuple[list[_Part], list[str]]:
    """Return what is to be done, and what stays as it is."""
    parts, problems = [], []
    for file in found.files:
        if not (file.is_applied if do == "undo" else file.is_taken):
            continue
        try:
            parts.append(_part(file, do, loaded))
        except _Kept as kept:
            problems.append(str(kept))
        except EditFailed as error:
            problems.append(str(error))
    return parts, problems


def _part(file: FileTurn, do: str, loaded: Mapping[str, Lines]) -> _Part:
    kind, is_undo = file.change.kind, do == "undo"
    is_moved = file.is_made if is_undo else file.was_made
    if is_moved and kind in ("create", "delete"):
        return _whole(file, loaded, is_there=(kind == "create") == is_undo)
    here, there = file.change.path, ""
    if is_moved and kind == "rename":
        here, there = (file.change.to, here) if is_undo else (here, file.change.to)
        if os.path.lexists(there):
            raise _Kept(f"{there} is there, so {here} cannot have that name; it {STAYS}")
    lines = loaded.get(os.path.realpath(here))
    part = _Part(file)
    if lines is None or there:
        part.act = _on_disk(part, here, there, is_undo, has_buffer=lines is not None)
    if lines is not None:
        found = _turned(file, lines, is_undo)
        if found is None:
            raise _Kept(f"{here} {CHANGED}")
        made, part.hunks = found
        changes = diff.changes(lines, made)
        kind = "rename" if there else "edit"
        part.buffer = FileChange(here, kind, there, digest(lines), changes)
    return part


def _whole(file: FileTurn, loaded: Mapping[str, Lines], *, is_there: bool) -> _Part:
    """Take away a file that the turn made, or bring back one that it took away; or the reverse."""
    path, kept = file.change.path, file.kept
    if kept is None:
        raise _Kept(f"what was in {path} is not known any more")
    lines = loaded.get(os.path.realpath(path))
    now: Text | None = None
    if os.path.lexists(path):
        now = text.read(path)
    part = _Part(file)
    if not is_there:
        if now is None:
            part.act = Act("create", path, after=kept, mode=file.mode)
        elif now != kept:
            raise _Kept(f"{path} is there with another text, and {STAYS}")
        return part
    if (now is not None and now != kept) or (lines is not None and digest(lines) != kept.digest):
        raise _Kept(f"{path} {CHANGED}")
    if now is not None:
        part.act = Act("delete", path, before=now)
    if lines is not None:
        part.buffer = FileChange(path, "delete", "", digest(lines), diff.changes(lines, ()))
    return part


def _on_disk(part: _Part, here: str, there: str, is_undo: bool, *, has_buffer: bool) -> Act | None:
    """Return what is to be done to a file on disk; fill in the hunks."""
    file = part.file
    hunks = file.hunks if is_undo else file.taken
    if there and not hunks:
        if not os.path.lexists(here):
            raise _Kept(f"there is no file {here} any more")
        return Act("rename", here, there)
    if not os.path.lexists(here):
        found = _turned(file, (), is_undo) if file.change.kind == "create" else None
        if found is None:
            raise _Kept(f"there is no file {here} any more")
        made, part.hunks = found
        return Act("create", here, after=Text(made)) if made else None
    before = text.read(here)
    found = _turned(file, before.lines, is_undo)
    if found is None:
        if has_buffer:
            return Act("rename", here, there)  # its text is the buffer's
        raise _Kept(f"{here} {CHANGED}")
    made, part.hunks = found
    if file.change.kind == "create" and is_undo and made in ((), ("",)):
        return Act("delete", here, before=before)  # a buffer had made it
    if made in ((), ("",)):
        made = ()  # a file without a byte is the likelier one
    return Act("rename" if there else "edit", here, there, before, before.with_lines(made))


def _turned(file: FileTurn, lines: Lines, is_undo: bool) -> tuple[Lines, list[Hunk]] | None:
    """Return a text with a file's hunks taken back or made again, and the hunks as found there.

    None where a place is not sure.
    """
    base, hunks = file.change.base, file.hunks if is_undo else file.taken
    back = [_swapped(hunk) for hunk in hunks[::-1]]
    if is_undo and base:
        # Several at once may have been told in the order of the text, each with its last row.
        for order in (back, sorted(back, key=lambda hunk: -hunk.row)):
            exact = anchor.made_exactly(lines, order, want=base)
            if exact is not None:
                return exact, list(hunks)
    changes = turn.in_base(file, hunks)
    if changes is not None and not is_undo and digest(lines) == base:
        return diff.apply(lines, changes), list(hunks)
    if changes is not None and (file.marks or not base):
        made = _carried(file, lines, changes, is_undo)
        return None if made is None else (made, list(hunks))
    if is_undo:
        found = anchor.made(lines, back)
        return found and (found[0], [_swapped(hunk) for hunk in found[1]][::-1])
    return anchor.made(lines, hunks)


def _carried(
    file: FileTurn, lines: Lines, changes: Sequence[Change], is_undo: bool
) -> Lines | None:
    """Return a text with changes of its base taken back or made; None where that is not sure."""
    base = carry.split(file.marks)
    after, back = carry.applied(base, changes)
    old, wanted = (after, back) if is_undo else (base, changes)
    found = [each for each in carry.carry(old, lines, wanted) if each is not None]
    if len(found) < len(wanted):
        return None
    with contextlib.suppress(ValueError):
        return diff.apply(lines, found)
    return None  # two of them came to one place


def _swapped(hunk: Hunk) -> Hunk:
    return replace(hunk, old=hunk.new, new=hunk.old)
