"""Code in a fence that is all of a file, or looks so. Pure; any thread.

A file whose end, or whose definitions, are missing is no whole file: something was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lcursor.code import symbols
from lcursor.code.symbols import Symbol
from lcursor.edit import diff
from lcursor.edit.records import Change, Lines

MIN_KEPT: Final = 0.5
"""A text that keeps less of a file is not the file."""
MAX_LOOSE_LOST: Final = 0.3
MAX_GONE: Final = 12
"""So many lines may go at one place, in a text whose definitions are known; more, and a model may
have left them out."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a piece of code."""

    lines: Lines
    """The file then."""
    why: str
    is_sure: bool


def whole(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as all of the file."""
    inner = symbols.all_of(lines, language), symbols.all_of(new, language)
    known, named = symbols.outermost(inner[0]), symbols.outermost(inner[1])
    alone, said = loose(lines, known), loose(new, named)
    kept = [line for line in alone if line in {*said}]
    lost = {one.path for one in inner[0]} - {one.path for one in inner[1]}
    texts = [line.strip() for line in lines if line.strip()]
    changes = diff.changes(lines, new)
    gone = sum(sum(map(_has_text, change.old)) for change in changes)
    share = 1 - gone / max(len(texts), 1)
    if share < MIN_KEPT or (alone and not kept):
        return None
    lost_share = 1 - len(kept) / len(alone) if alone else 0.0
    begins, ends = edges(lines, new)
    renamed = _renamed(lines, new, *inner)
    is_full = not lost - renamed and (lost_share <= MAX_LOOSE_LOST or (begins and ends))
    has_much = len(known) >= 2 or len(kept) >= 3 or not known
    if not is_full and not (begins and len(named) >= len(known) / 2):
        return None
    is_sure = is_full and has_much and begins and ends
    if inner[0]:
        is_sure = is_sure and all(_lost(one) <= MAX_GONE for one in changes)
    else:  # as without a grammar: a definition that is missing would not be noticed
        is_sure = is_sure and not any(_lost(one) or _lost(_margin(one)) for one in changes)
    is_sure = is_sure and symbols.parses_no_worse(lines, new, language)
    why = "it is the whole file" if is_full else f"it is the file without {', '.join(sorted(lost))}"
    return Reading((*_bare(new), *tail(lines)), why, is_sure)


def _lost(change: Change) -> int:
    """Return how many lines a change deletes without replacing them; below 0 where it adds some."""
    return sum(map(_has_text, change.old)) - sum(map(_has_text, change.new))


def _margin(change: Change) -> Change:
    """Return a change without its indented lines: what is left begins and ends blocks."""
    old, new = (
        tuple(row for row in part if not row[:1].isspace()) for part in (change.old, change.new)
    )
    return replace(change, old=old, new=new)


def edges(lines: Sequence[str], new: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a text begins, and ends, where another does, and nothing is lost there."""
    changes = diff.changes(_bare(lines), _bare(new))
    if not changes:
        return True, True
    first, last = changes[0], changes[-1]
    counts = [sum(map(_has_text, part)) for part in (first.old, first.new)]
    begins = any(map(_has_text, lines[: first.first_row])) or counts[0] <= counts[1]
    ends = any(map(_has_text, lines[last.last_row :])) or _is_whole_end(last)
    return begins, ends


def _is_whole_end(change: Change) -> bool:
    """Return whether lines at the end were written anew, not just cut off."""
    old = [line.strip() for line in change.old if line.strip()]
    new = [line.strip() for line in change.new if line.strip()]
    if not new:
        return not old
    leaves = ("return", "raise", "yield")
    return len(new) >= len(old) or (old[-1].startswith(leaves) and new[-1].startswith(leaves))


def _renamed(
    lines: Sequence[str], new: Sequence[str], known: Sequence[Symbol], named: Sequence[Symbol]
) -> set[str]:
    """Return the names of symbols in whose place others stand."""
    ours, theirs = {one.path for one in known}, {one.path for one in named}
    found: set[str] = set()
    shift = 0
    for change in diff.changes(lines, new):
        gone = {
            one.path
            for one in known
            if change.first_row <= one.own_first < change.last_row and one.path not in theirs
        }
        start = change.first_row + shift
        came = {
            one.path
            for one in named
            if start <= one.own_first < start + len(change.new) and one.path not in ours
        }
        if len(came) >= len(gone):
            found |= gone
        shift += len(change.new) - len(change.old)
    return found


def _bare(lines: Sequence[str]) -> Sequence[str]:
    return lines[: len(lines) - len(tail(lines))]


def tail(lines: Sequence[str]) -> Sequence[str]:
    """Return the empty lines at the end of a text: no reply says anything about them."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[end:]


def loose(lines: Sequence[str], known: Sequence[Symbol]) -> list[str]:
    """Return the lines that no symbol has in it, without blanks around."""
    rows = {row for one in known for row in range(one.first, one.last)}
    return [line.strip() for row, line in enumerate(lines) if line.strip() and row not in rows]


def _has_text(line: str) -> bool:
    return bool(line.strip())
