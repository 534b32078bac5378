"""Brings the open hunks of a turn to the text as it is now, after the editor ended with them.

Where the text is what it was, or what it was with the accepted hunks in it, the rows are known;
else each hunk is looked for, and one that is not sure to be found is left out, with a word about
it. A check that was passed in another text is left out, too. Reads files; writes none. Any thread.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lcursor.edit.records import Change, FileChange, Lines, digest, lines_of
from lcursor.edit.turns import carry, text, turn
from lcursor.edit.turns.ledger import Ledger
from lcursor.edit.turns.turn import FileTurn
from lcursor.errors import EditFailed
from lcursor.protocol_edit import EditBuffer


@dataclass(frozen=True, slots=True)
class Resumed:
    """What is open of a turn, for the texts as they are."""

    files: tuple[FileChange, ...]
    problems: tuple[str, ...] = ()
    """What was left out, and why."""


def resume(ledger: Ledger, key: str, buffers: Sequence[EditBuffer] = ()) -> Resumed:
    """Return the open hunks of a turn.

    Args:
        ledger: of the project.
        key: of the turn.
        buffers: that are loaded; the other files are read.

    Raises:
        EditMissing: there is no such turn.
    """
    loaded = {os.path.realpath(each["path"]): lines_of(each["text"]) for each in buffers}
    files, problems = list[FileChange](), list[str]()
    for file in ledger.turn(key).files:
        if not file.open:
            continue
        change = file.change
        if change.kind == "create" and not os.path.lexists(change.path):
            files.append(change)
            continue
        lines = loaded.get(os.path.realpath(change.path))
        try:
            lines = text.read(change.path).lines if lines is None else lines
        except EditFailed as error:
            problems.append(str(error))
            continue
        found = placed(file, lines)
        if found is None or (change.kind != "edit" and len(found.changes) < len(file.wanted())):
            problems.append(f"{change.path} was changed since: nothing of the edit fits any more")
            continue
        files.append(found)
        left = max(len(file.wanted()), 1) - len(file.hunks)
        if 0 < len(found.changes) < left:
            lost = left - len(found.changes)
            many = "hunks fits" if lost == 1 else "hunks fit"
            problems.append(f"{change.path} was changed since: {lost} of its {many} no more")
    return Resumed(tuple(files), tuple(problems))


def placed(file: FileTurn, lines: Lines) -> FileChange | None:
    """Return what is open of a file, for its text as it is; None where nothing has its place."""
    change = file.change
    now = digest(lines)
    if now == change.base:
        wanted = file.wanted()  # what was accepted went with the buffer
        return replace(change, changes=wanted) if wanted or not change.changes else None
    accepted = turn.in_base(file, file.hunks) if file.marks else None
    if accepted is None:
        return None
    after, _ = carry.applied(carry.split(file.marks), accepted)
    found = carry.carry(after, lines, _beside(file.rest(), accepted))
    changes = tuple(each for each in found if each is not None and (each.old or each.new))
    pairs = itertools.pairwise(changes)
    if not changes or any(a.last_row > b.first_row for a, b in pairs):
        return None
    # What passed its checks did so in another text, unless nothing but the edit has changed it.
    is_same = carry.split(carry.marks(lines)) == after
    checks = tuple(each for each in change.checks if is_same or not each.is_ok)
    return replace(change, base=now, changes=changes, checks=checks)


def _beside(rest: Sequence[Change], made: Sequence[Change]) -> list[Change]:
    """Return changes of a text as changes of what others made of it, but for those they hit."""
    found = []
    for each in rest:
        by = 0
        for one in made:
            if one.last_row <= each.first_row:
                by += len(one.new) - len(one.old)
            elif one.first_row < each.last_row:
                break
        else:
            first, last = each.first_row + by, each.last_row + by
            found.append(Change(first, last, each.old, each.new))
    return found
