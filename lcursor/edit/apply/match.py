"""Finds lines that a reply quotes in a text, and fits what shall stand there instead.

    find(["def f():", "    return 1"], ["return 1"], ["return 2"])
    -> Match(1, 2, "indent", ("    return 2",))

In tiers, each of which forgives more than the one before it: exact; whitespace; punctuation; nearly
the same. None takes the first of several places, or relies on a line number. What the reply only
quotes stays as it is in the text; what it changes must be there as it was quoted, but for
whitespace and quotation marks. Pure; any thread.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lcursor.edit import diff
from lcursor.edit.apply.align import Aligned, best
from lcursor.edit.apply.indents import Indents, indent_of
from lcursor.edit.records import Change, Lines

Tier = Literal["exact", "trailing", "indent", "relative", "blank", "quotes", "like"]

MIN_LETTERS: Final = 4
"""Fewer letters and digits say nothing about a place: `}`, `end`."""
COMMON: Final = frozenset(
    [
        "end",
        "endif",
        "fi",
        "done",
        "else",
        "pass",
        "do",
        "begin",
        "try",
        "break",
        "continue",
        "return",
        "then",
        "esac",
        "finally",
    ]
)
"""Lines that stand anywhere."""
MIN_SHARE: Final = 0.8
MIN_GAP: Final = 0.15
"""So much better than any other place the best must be, where lines are only alike."""
MAX_PLACES: Final = 20
APPLIED_LINES: Final = 3
"""A result of so many lines that is there already may be the same change made before."""

_QUOTES: Final = str.maketrans('`\u2018\u2019\u201c\u201d"', "''''''")


@dataclass(frozen=True, slots=True)
class Match:
    """Rows of a text, and what they shall be."""

    first_row: int
    last_row: int
    tier: Tier
    new: Lines
    """All of it: what was not to be changed as it is in the text."""


@dataclass(frozen=True, slots=True)
class Several:
    """Places of which any could be meant; or one that is not sure enough."""

    places: tuple[Match, ...]
    why: str = ""


def find(
    lines: Sequence[str],
    wanted: Sequence[str],
    new: Sequence[str] = (),
) -> Match | Several | None:
    """Find lines in a text, and fit what shall stand there instead.

    Args:
        lines: of the text.
        wanted: what is quoted of it.
        new: what `wanted` becomes.

    Returns:
        The one place; several of which any may be meant; None where it is nowhere, or where a
        line that changes is not what was quoted.

    Cost: 20 ms in 20,000 lines for the first tiers, up to a second for the others.
    """
    wanted, new = _stripped(wanted, new)
    if not any(line.strip() for line in wanted):
        return None
    for tier, key in _TIERS:
        found, count = _at_tier(lines, wanted, new, tier, key)
        if found and count > 1:
            return Several(tuple(found[:MAX_PLACES]), "it is there more than once")
        if found:
            return _judged(lines, wanted, new, found[0])
    return _alike(lines, wanted, new)


def _judged(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str], place: Match
) -> Match | Several:
    """Decide whether the only place on its tier is sure."""
    if _is_little(wanted, place.tier):
        return Several((place,), "it is too little to be sure of")
    if place.tier in {"exact", "trailing"} and not wanted[0][:1].isspace():
        others = _windows(lines, wanted, str.strip)
        if len(others) > 1:
            rest = tuple(
                made
                for row in others
                if (made := _made(lines, row, wanted, new, "relative")) is not None
            )
            if len(rest) > 1:
                return Several(rest[:MAX_PLACES], "it is there again, further to the right")
    if place.tier == "indent" and _is_odd(lines, place, wanted):
        return Several((place,), "it is indented by one blank less or more")
    if _is_made(lines, place, wanted, new):
        return Several((place,), "the same change seems to be made already, elsewhere")
    return place


def _is_odd(lines: Sequence[str], place: Match, wanted: Sequence[str]) -> bool:
    """Return whether lines are off by one blank, as those of a diff that lost its marks."""
    rows = range(place.first_row, place.last_row)
    return any(
        abs(len(indent_of(lines[row])) - len(indent_of(line))) == 1
        and not lines[row].startswith("\t")
        for row, line in zip(rows, wanted, strict=True)
        if line.strip()
    )


def _stripped(wanted: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take empty lines that both begin or end with off both."""
    old, made = list(wanted), list(new)
    while old and made and not old[0].strip() and not made[0].strip():
        del old[0], made[0]
    while old and made and not old[-1].strip() and not made[-1].strip():
        del old[-1], made[-1]
    return old, made


def _at_tier(
    lines: Sequence[str],
    wanted: Sequence[str],
    new: Sequence[str],
    tier: Tier,
    key: Callable[[str], str],
) -> tuple[list[Match], int]:
    """Return the places on one tier where the change can be made, and how many there are at all."""
    made: list[Match | None]
    if tier == "blank":
        made = [
            _merged(lines, first, last, wanted, new, pairs, tier)
            for first, last, pairs in _loose_windows(lines, wanted)
        ]
    else:
        made = []
        for row in _windows(lines, wanted, key):
            is_odd = tier == "indent" and not _is_offset(lines, row, wanted)
            made.append(_made(lines, row, wanted, new, "relative" if is_odd else tier))
    return [place for place in made if place is not None], len(made)


def _windows(lines: Sequence[str], wanted: Sequence[str], key: Callable[[str], str]) -> list[int]:
    """Return every row where the lines stand, in the eyes of `key`."""
    keys = [key(line) for line in wanted]
    pivot = max(range(len(keys)), key=lambda at: len(keys[at]))
    text = keys[pivot]
    count = len(keys)
    return [
        row - pivot
        for row, line in enumerate(lines)
        if key(line) == text
        and row >= pivot
        and row - pivot + count <= len(lines)
        and all(key(lines[row - pivot + at]) == keys[at] for at in range(count))
    ]


def _loose_windows(
    lines: Sequence[str], wanted: Sequence[str]
) -> list[tuple[int, int, dict[int, int]]]:
    """Return windows where the lines stand, if empty ones do not count; with who is who."""
    rows = [row for row, line in enumerate(lines) if line.strip()]
    marks = [at for at, line in enumerate(wanted) if line.strip()]
    texts = [lines[row] for row in rows]
    some = [wanted[at] for at in marks]
    found = []
    for start in _windows(texts, some, str.strip):
        pairs = {at: rows[start + place] for place, at in enumerate(marks)}
        found.append((rows[start], rows[start + len(marks) - 1] + 1, pairs))
    return found


def _is_offset(lines: Sequence[str], row: int, wanted: Sequence[str]) -> bool:
    """Return whether all lines are as far to the left or right as each other."""
    offsets = set()
    for at, line in enumerate(wanted):
        if not line.strip():
            continue
        there, here = indent_of(lines[row + at]), indent_of(line)
        if there.endswith(here):
            offsets.add(("+", there[: len(there) - len(here)]))
        elif here.endswith(there):
            offsets.add(("-", here[: len(here) - len(there)]))
        else:
            return False
        if there == here:
            offsets.discard(("-", ""))
    return len(offsets) == 1


def _made(
    lines: Sequence[str], row: int, wanted: Sequence[str], new: Sequence[str], tier: Tier
) -> Match | None:
    if tier == "exact":
        return Match(row, row + len(wanted), tier, tuple(new))
    pairs = {at: row + at for at in range(len(wanted))}
    return _merged(lines, row, row + len(wanted), wanted, new, pairs, tier)


def _merged(
    lines: Sequence[str],
    first: int,
    last: int,
    wanted: Sequence[str],
    new: Sequence[str],
    pairs: dict[int, int],
    tier: Tier,
) -> Match | None:
    """Make in the text what makes the new lines of those wanted; the rest of it stays.

    Args:
        lines: of the text.
        first: of the rows that stand for what is wanted.
        last: behind them.
        wanted: what was quoted.
        new: what it becomes.
        pairs: which row is which of the lines wanted.
        tier: how it was found.

    Returns:
        None where a line that changes is not in the text as it was quoted, or where new lines
        could go to more than one row.
    """
    moved = Indents(lines, [(wanted[at], lines[row]) for at, row in sorted(pairs.items())], new)
    if not moved.is_sound:
        return None
    result: list[str] = []
    row = first
    for change in diff.changes(wanted, new):
        rows = _rows_of(lines, change, wanted, pairs, first, last)
        if rows is None or rows[0] < row:
            return None
        result += lines[row : rows[0]]
        made = [moved.fit(line) for line in change.new]
        if any(line is None for line in made):
            return None
        result += (line for line in made if line is not None)
        row = rows[1]
    result += lines[row:last]
    return Match(first, last, tier, tuple(result))


def _rows_of(
    lines: Sequence[str],
    change: Change,
    wanted: Sequence[str],
    pairs: dict[int, int],
    first: int,
    last: int,
) -> tuple[int, int] | None:
    """Return the rows of the text that a change of what was quoted is about."""
    olds = [at for at in range(change.first_row, change.last_row) if wanted[at].strip()]
    if olds:
        rows = [pairs.get(at, -1) for at in olds]
        if -1 in rows or any(
            not _is_same(lines[row], wanted[at]) for at, row in zip(olds, rows, strict=True)
        ):
            return None
        start, end = rows[0], rows[-1] + 1
        there = [row for row in range(start, end) if lines[row].strip()]
        if there != rows:
            return None  # something stands between that was not quoted
        for at in range(change.first_row, olds[0]):  # empty lines above
            del at
            if start > first and not lines[start - 1].strip():
                start -= 1
        for at in range(olds[-1] + 1, change.last_row):
            del at
            if end < last and not lines[end].strip():
                end += 1
        return start, end
    above = next((at for at in range(change.first_row - 1, -1, -1) if wanted[at].strip()), None)
    below = next((at for at in range(change.last_row, len(wanted)) if wanted[at].strip()), None)
    top = pairs.get(above, -1) if above is not None else -2
    end = pairs.get(below, -1) if below is not None else -2
    if -1 in (top, end):
        return None
    blanks = 0 if above is None else change.first_row - above - 1
    under = 0 if below is None else below - change.last_row
    start = first if top == -2 else top + 1
    stop = last if end == -2 else end
    if any(lines[row].strip() for row in range(start, stop)):
        # Something came in between: new lines stay at the side that they touched.
        if change.old or (blanks == 0) == (under == 0):
            return None
        at = start if blanks == 0 else stop
        beside = at if blanks == 0 else at - 1
        return None if lines[beside].strip() else (at, at)
    if top == -2 and stop - start > len(change.old):
        start = stop - len(change.old)
    elif end == -2:
        stop = start + max(len(change.old), min(blanks, stop - start))
    at = min(start + blanks, stop)
    return at, min(at + len(change.old), stop)


def _alike(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]
) -> Match | Several | None:
    """Find lines that are mostly there."""
    found = best(lines, wanted)
    if not found or found[0].share < MIN_SHARE:
        return None
    chosen = found[0]
    if not chosen.is_telling:
        return None
    near = [
        one
        for one in found[1:]
        if chosen.share - one.share < MIN_GAP or chosen.exact_share - one.exact_share < MIN_GAP
    ]
    if near:
        places = [_of(lines, one, wanted, new, "like") for one in (chosen, *near)]
        sure = tuple(place for place in places if place is not None)
        return Several(sure[:MAX_PLACES], "places are alike") if sure else None
    place = _of(lines, chosen, wanted, new, "like")
    if place is not None and _is_made(lines, place, wanted, new):
        return Several((place,), "the same change seems to be made already, elsewhere")
    return place


def _of(
    lines: Sequence[str], one: Aligned, wanted: Sequence[str], new: Sequence[str], tier: Tier
) -> Match | None:
    pairs = dict(one.pairs)
    if _is_mixed_up(lines, one, wanted, new):
        return None
    return _merged(lines, one.first_row, one.last_row, wanted, new, pairs, tier)


def _is_mixed_up(
    lines: Sequence[str], one: Aligned, wanted: Sequence[str], new: Sequence[str]
) -> bool:
    """Return whether a line that was not quoted looks like one that changes, or is beside it."""
    paired = {row for _, row in one.pairs}
    others = {
        lines[row].strip() for row in range(one.first_row, one.last_row) if row not in paired
    } - {""}
    return any(
        line.strip() in others
        for change in diff.changes(wanted, new)
        for line in wanted[max(change.first_row - 1, 0) : change.last_row + 1]
    )


def _is_made(lines: Sequence[str], place: Match, wanted: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether what shall be stands elsewhere in the text already, all of it."""
    filled = [line for line in new if line.strip()]
    if len(filled) < APPLIED_LINES or len(new) < len(wanted) // 2:
        return False
    rows = _windows(lines, new, str.strip)
    return any(row + len(new) <= place.first_row or row >= place.last_row for row in rows)


def _is_same(line: str, quoted: str) -> bool:
    """Return whether a line that changes is what was quoted, so that nothing unseen is lost."""
    one, other = line.strip(), quoted.strip()
    if one == other or one == html.unescape(other):
        return True
    return one.translate(_QUOTES) == other.translate(_QUOTES)


def _key(line: str) -> str:
    """Return a line without what models get wrong in quoting one."""
    text = html.unescape(line.strip()) if "&" in line else line.strip()
    return re.sub(r"\s+", " ", text.translate(_QUOTES)).rstrip(",; ")


_TIERS: Final[tuple[tuple[Tier, Callable[[str], str]], ...]] = (
    ("exact", str),
    ("trailing", str.rstrip),
    ("indent", str.strip),
    ("blank", str.strip),
    ("quotes", _key),
)


def _is_little(wanted: Sequence[str], tier: Tier) -> bool:
    """Return whether lines say too little about a place."""
    text = " ".join(line.strip() for line in wanted if line.strip())
    if tier == "exact":
        return _letters(wanted) < 2 or text.rstrip(":;,") in COMMON
    return _letters(wanted) < MIN_LETTERS


def _letters(lines: Sequence[str]) -> int:
    return sum(sum(map(str.isalnum, line)) for line in lines)
