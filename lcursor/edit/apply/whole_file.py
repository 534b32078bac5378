"""Recognize code that is a whole file. Pure; any thread.

Code without the end of the file, or without some of its definitions, was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lcursor.code import symbols
from lcursor.code.symbols import Symbol
from lcursor.edit import diff
from lcursor.edit.lines import has_text, stripped, trim
from lcursor.edit.records import Change, Lines

MIN_KEPT: Final = 0.5
"""Share of a file's lines that a whole file keeps."""
MAX_LOOSE_LOST: Final = 0.3
MAX_DELETED: Final = 12
"""Lines that may be deleted at one place; more, and a model may have left them out."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read a piece of code."""

    lines: Lines
    """The resulting file."""
    why: str
    is_certain: bool


def read_whole(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as a whole file."""
    known, named = symbols.all_of(lines, language), symbols.all_of(new, language)
    top, new_top = symbols.outermost(known), symbols.outermost(named)
    alone = loose_lines(lines, top)
    kept = [line for line in alone if line in {*loose_lines(new, new_top)}]
    changes = diff.changes(lines, new)
    gone = sum(len(stripped(change.old)) for change in changes)
    share = 1 - gone / max(len(stripped(lines)), 1)
    if share < MIN_KEPT or (alone and not kept):
        return None
    lost = {one.path for one in known} - {one.path for one in named}
    lost_share = 1 - len(kept) / len(alone) if alone else 0.0
    begins, ends = has_edges(lines, new)
    missing = lost - _renamed(changes, known, named)
    is_full = not missing and (lost_share <= MAX_LOOSE_LOST or (begins and ends))
    has_much = len(top) >= 2 or len(kept) >= 3 or not top
    if not is_full and not (begins and len(new_top) >= len(top) / 2):
        return None
    is_certain = is_full and has_much and begins and ends
    if known:
        is_certain = is_certain and all(_deleted(one) <= MAX_DELETED for one in changes)
    else:  # nothing would show that a definition is missing
        is_certain = is_certain and all(
            _deleted(one) == 0 and _deleted(one, is_unindented=True) == 0 for one in changes
        )
    is_certain = is_certain and symbols.parses_no_worse(lines, new, language)
    why = "it is the whole file" if is_full else f"it is the file without {', '.join(sorted(lost))}"
    end, last = trim(new, 0, len(new))[1], trim(lines, 0, len(lines))[1]
    return Reading((*new[:end], *lines[last:]), why, is_certain)


def _deleted(change: Change, *, is_unindented: bool = False) -> int:
    """Return how many more lines a change deletes than it adds; of all, or of unindented ones."""
    counts = [
        sum(has_text(line) and not (is_unindented and line[:1].isspace()) for line in part)
        for part in (change.old, change.new)
    ]
    return counts[0] - counts[1]


def has_edges(lines: Sequence[str], new: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a new text has the beginning, and the end, of the old one."""
    lines, new = (part[: trim(part, 0, len(part))[1]] for part in (lines, new))
    changes = diff.changes(lines, new)
    if not changes:
        return True, True
    first, last = changes[0], changes[-1]
    begins = any(map(has_text, lines[: first.first_row])) or _deleted(first) <= 0
    ends = any(map(has_text, lines[last.last_row :])) or _is_rewritten_end(last)
    return begins, ends


def _is_rewritten_end(change: Change) -> bool:
    """Return whether the last lines were rewritten, not cut off."""
    old, new = stripped(change.old), stripped(change.new)
    if not new:
        return not old
    leaves = ("return", "raise", "yield")
    return len(new) >= len(old) or (old[-1].startswith(leaves) and new[-1].startswith(leaves))


def _renamed(
    changes: Sequence[Change], known: Sequence[Symbol], named: Sequence[Symbol]
) -> set[str]:
    """Return the paths of symbols that were replaced by others."""
    ours, theirs = {one.path for one in known}, {one.path for one in named}
    found: set[str] = set()
    shift = 0
    for change in changes:
        rows = range(change.first_row, change.last_row)
        start = change.first_row + shift
        gone = {one.path for one in known if one.own_first in rows} - theirs
        rows = range(start, start + len(change.new))
        came = {one.path for one in named if one.own_first in rows} - ours
        if len(came) >= len(gone):
            found |= gone
        shift += len(change.new) - len(change.old)
    return found


def loose_lines(lines: Sequence[str], known: Sequence[Symbol]) -> list[str]:
    """Return the stripped lines that are in no symbol."""
    rows = {row for one in known for row in range(one.first, one.last)}
    return [line.strip() for row, line in enumerate(lines) if has_text(line) and row not in rows]
