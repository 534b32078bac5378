"""Recognize code that is a whole file. Pure; any thread.

Code without the end of the file, or without some of its definitions, may be truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lcursor.changes import diff
from lcursor.changes.lines import stripped, trim
from lcursor.changes.records import Change, Lines
from lcursor.code import symbols
from lcursor.code.symbols import Symbol

MIN_RETAINED: Final = 0.5
"""Minimum share of a file's lines that remain in a whole file."""
MIN_LOOSE: Final = 3
"""Minimum lines outside of definitions that remain, if there are fewer than two definitions."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An interpretation of a block of code."""

    lines: Lines
    """The resulting file."""
    why: str
    is_certain: bool


def read_whole(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as a whole file."""
    old_definitions, named = symbols.all_of(lines, language), symbols.all_of(new, language)
    top = symbols.outermost(old_definitions)
    alone, loose = loose_lines(lines, top), loose_lines(new, symbols.outermost(named))
    retained = [line for line in alone if line in loose]
    changes = diff.changes(lines, new)
    gone = sum(len(stripped(change.old)) for change in changes)
    if 1 - gone / max(len(stripped(lines)), 1) < MIN_RETAINED or (alone and not retained):
        return None
    lost = {one.path for one in old_definitions} - {one.path for one in named}
    is_full = not lost - _renamed(changes, old_definitions, named)
    is_certain = is_full and (len(retained) >= MIN_LOOSE or len(top) >= 2 or not top)
    if not old_definitions:  # a missing definition would go unnoticed
        is_certain = is_certain and not any(map(_deletes, changes))
    is_certain = is_certain and has_end(lines, new) and _has_beginning(lines, changes)
    is_certain = is_certain and symbols.parses_no_worse(lines, new, language)
    why = "it is the whole file" if is_full else f"it is the file without {', '.join(sorted(lost))}"
    end, last = trim(new, 0, len(new))[1], trim(lines, 0, len(lines))[1]
    return Reading((*new[:end], *lines[last:]), why, is_certain)


def _deletes(change: Change) -> bool:
    """Return whether a change removes lines, or unindented lines."""
    old, new = ([line for line in part if line.strip()] for part in (change.old, change.new))
    outer, new_outer = ([line for line in part if not line[0].isspace()] for part in (old, new))
    return len(new) < len(old) or len(new_outer) < len(outer)


def _has_beginning(lines: Sequence[str], changes: Sequence[Change]) -> bool:
    """Return whether changes keep the first lines of a text, or replace them one by one."""
    if not changes or stripped(lines[: changes[0].first_row]):
        return True
    return len(stripped(changes[0].new)) >= len(stripped(changes[0].old))


def has_end(lines: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether a new text keeps or rewrites the end of the old one."""
    changes = diff.changes(lines, new)
    if not changes or stripped(lines[changes[-1].last_row :]):
        return True
    old, made = stripped(changes[-1].old), stripped(changes[-1].new)
    leaves = ("return", "raise", "yield")
    is_left = all(part[-1:] and part[-1].startswith(leaves) for part in (old, made))
    return len(made) >= len(old) or is_left


def _renamed(
    changes: Sequence[Change], known: Sequence[Symbol], named: Sequence[Symbol]
) -> set[str]:
    """Return the paths of replaced symbols."""
    ours, theirs = {one.path for one in known}, {one.path for one in named}
    renamed: set[str] = set()
    shift = 0
    for change in changes:
        rows = range(change.first_row, change.last_row)
        new_rows = range(change.first_row + shift, change.first_row + shift + len(change.new))
        gone = {one.path for one in known if one.own_first in rows} - theirs
        came = {one.path for one in named if one.own_first in new_rows} - ours
        renamed |= gone if len(came) >= len(gone) else set()
        shift += len(change.new) - len(change.old)
    return renamed


def loose_lines(lines: Sequence[str], known: Sequence[Symbol]) -> list[str]:
    """Return the stripped lines outside of symbols."""
    rows = {row for one in known for row in range(one.first, one.last)}
    return stripped([line for row, line in enumerate(lines) if row not in rows])
