"""Find the lines that a reply quotes in a text, and fit the new lines to that place.

    find(["def f():", "    return 1"], ["return 1"], ["return 2"])
    -> Match(1, 2, "indent", ("    return 2",))

Each tier forgives more than the one before: exact; whitespace; punctuation; similar lines. No tier
chooses the first of several places, or relies on a line number. Lines that the reply only quotes
stay as they are in the text; lines that it changes must be as quoted, except for whitespace and
quotation marks. Pure; any thread.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lcursor.edit import diff
from lcursor.edit.apply.align import Alignment, best
from lcursor.edit.apply.indents import IndentMap
from lcursor.edit.lines import has_text, indent_of, stripped
from lcursor.edit.records import Change, Lines

Tier = Literal["exact", "trailing", "indent", "relative", "blank", "quotes", "like"]

MIN_LETTERS: Final = 4
"""Letters and digits below which lines identify no place: `}`, `end`."""
_COMMON_WORDS: Final = (
    "end endif fi done else pass do begin try break continue return then esac finally"
)
COMMON: Final = frozenset(_COMMON_WORDS.split())
"""Lines that occur anywhere."""
MIN_SHARE: Final = 0.8
MIN_GAP: Final = 0.15
"""Minimum lead of the best place over the next one, if lines are only similar."""
MAX_PLACES: Final = 20
MIN_APPLIED_LINES: Final = 3
"""A result of so many lines that exists already may be the same change, applied before."""
AGAIN: Final = "the same change seems to be made already, elsewhere"

_QUOTES: Final = str.maketrans('`\u2018\u2019\u201c\u201d"', "''''''")


@dataclass(frozen=True, slots=True)
class Match:
    """Rows of a text, and the lines that replace them."""

    first_row: int
    last_row: int
    tier: Tier
    new: Lines
    """With the unchanged lines as they are in the text."""


@dataclass(frozen=True, slots=True)
class Several:
    """Several possible places; or one that is not certain."""

    places: tuple[Match, ...]
    why: str = ""


def find(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str] = ()
) -> Match | Several | None:
    """Find lines in a text, and fit their replacement.

    Args:
        lines: of the text.
        wanted: the quoted lines.
        new: what they become.

    Returns:
        The place; several possible ones; None if there is none, or if a line that changes is not
        as quoted.

    Cost: 20 ms in 20,000 lines for the first tiers, up to a second for the others.
    """
    wanted, new = _without_common_blank_ends(wanted, new)
    if not any(map(has_text, wanted)):
        return None
    for tier, key in _TIERS:
        found, count = _at_tier(lines, wanted, new, tier, key)
        if found and count > 1:
            return Several(tuple(found[:MAX_PLACES]), "it is there more than once")
        if found:
            return _certain_or_not(lines, wanted, new, found[0])
    return _find_similar(lines, wanted, new)


def _certain_or_not(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str], place: Match
) -> Match | Several:
    """Return the only place of a tier as certain or not."""
    if _says_little(wanted, place.tier):
        return Several((place,), "it is too little to be sure of")
    if place.tier in {"exact", "trailing"} and not wanted[0][:1].isspace():
        others = _windows(lines, wanted, str.strip)
        if len(others) > 1:
            found = (_fitted(lines, row, wanted, new, "relative") for row in others)
            rest = tuple(each for each in found if each is not None)
            if len(rest) > 1:
                return Several(rest[:MAX_PLACES], "it is there again, further to the right")
    if place.tier == "indent" and _is_off_by_one(lines, place, wanted):
        return Several((place,), "it is indented by one blank less or more")
    return Several((place,), AGAIN) if _is_applied(lines, place, wanted, new) else place


def _is_off_by_one(lines: Sequence[str], place: Match, wanted: Sequence[str]) -> bool:
    """Return whether the indentation differs by one space, as in a diff that lost its marks."""
    rows = range(place.first_row, place.last_row)
    return any(
        abs(len(indent_of(lines[row])) - len(indent_of(line))) == 1
        and not lines[row].startswith("\t")
        for row, line in zip(rows, wanted, strict=True)
        if has_text(line)
    )


def _without_common_blank_ends(
    wanted: Sequence[str], new: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Remove blank lines that both texts begin or end with from both."""
    old, made = list(wanted), list(new)
    while old and made and not has_text(old[0]) and not has_text(made[0]):
        del old[0], made[0]
    while old and made and not has_text(old[-1]) and not has_text(made[-1]):
        del old[-1], made[-1]
    return old, made


def _at_tier(
    lines: Sequence[str],
    wanted: Sequence[str],
    new: Sequence[str],
    tier: Tier,
    key: Callable[[str], str],
) -> tuple[list[Match], int]:
    """Return the places of a tier where the change can be made, and the number of all places."""
    made: list[Match | None] = []
    if tier == "blank":  # blank lines do not count
        rows = [row for row, line in enumerate(lines) if has_text(line)]
        marks = [at for at, line in enumerate(wanted) if has_text(line)]
        texts, quoted = [lines[row] for row in rows], [wanted[at] for at in marks]
        for start in _windows(texts, quoted, key):
            pairs = {at: rows[start + place] for place, at in enumerate(marks)}
            span = rows[start], rows[start + len(marks) - 1] + 1
            made.append(_merge(lines, span, wanted, new, pairs, tier))
    else:
        for row in _windows(lines, wanted, key):
            is_uneven = tier == "indent" and not _has_even_offset(lines, row, wanted)
            made.append(_fitted(lines, row, wanted, new, "relative" if is_uneven else tier))
    return [place for place in made if place is not None], len(made)


def _windows(lines: Sequence[str], wanted: Sequence[str], key: Callable[[str], str]) -> list[int]:
    """Return every row where the lines are, compared by a key."""
    keys = [key(line) for line in wanted]
    pivot = max(range(len(keys)), key=lambda at: len(keys[at]))
    count = len(keys)
    return [
        row - pivot
        for row, line in enumerate(lines)
        if key(line) == keys[pivot]
        and row >= pivot
        and row - pivot + count <= len(lines)
        and all(key(lines[row - pivot + at]) == keys[at] for at in range(count))
    ]


def _has_even_offset(lines: Sequence[str], row: int, wanted: Sequence[str]) -> bool:
    """Return whether all lines are indented by the same amount more, or less."""
    offsets = set()
    for at, line in enumerate(wanted):
        if not has_text(line):
            continue
        there, here = indent_of(lines[row + at]), indent_of(line)
        if there.endswith(here):
            offsets.add(("+", there[: len(there) - len(here)]))
        elif here.endswith(there):
            offsets.add(("-", here[: len(here) - len(there)]))
        else:
            return False
    return len(offsets) == 1


def _fitted(
    lines: Sequence[str], row: int, wanted: Sequence[str], new: Sequence[str], tier: Tier
) -> Match | None:
    span = row, row + len(wanted)
    if tier == "exact":
        return Match(*span, tier, tuple(new))
    return _merge(lines, span, wanted, new, {at: row + at for at in range(len(wanted))}, tier)


def _merge(
    lines: Sequence[str],
    span: tuple[int, int],
    wanted: Sequence[str],
    new: Sequence[str],
    pairs: dict[int, int],
    tier: Tier,
) -> Match | None:
    """Make in the text the changes that make the new lines of the quoted ones.

    Args:
        lines: of the text.
        span: rows of the quoted lines.
        wanted: the quoted lines.
        new: what they become.
        pairs: the row of each quoted line.
        tier: how they were found.

    Returns:
        None if a line that changes is not as quoted, or if new lines could go to several rows.
    """
    indents = IndentMap(lines, [(wanted[at], lines[row]) for at, row in sorted(pairs.items())], new)
    if not indents.is_consistent:
        return None
    result: list[str] = []
    row = span[0]
    for change in diff.changes(wanted, new):
        rows = _rows_of(lines, change, wanted, pairs, span)
        made = indents.fit_all(change.new)
        if rows is None or rows[0] < row or made is None:
            return None
        result += [*lines[row : rows[0]], *made]
        row = rows[1]
    return Match(*span, tier, (*result, *lines[row : span[1]]))


def _rows_of(
    lines: Sequence[str],
    change: Change,
    wanted: Sequence[str],
    pairs: dict[int, int],
    span: tuple[int, int],
) -> tuple[int, int] | None:
    """Return the rows of the text for a change of the quoted lines."""
    olds = [at for at in range(change.first_row, change.last_row) if has_text(wanted[at])]
    if olds:
        return _rows_of_replacement(lines, change, wanted, pairs, span, olds)
    above = next((at for at in range(change.first_row - 1, -1, -1) if has_text(wanted[at])), None)
    below = next((at for at in range(change.last_row, len(wanted)) if has_text(wanted[at])), None)
    top = None if above is None else pairs.get(above, -1)
    end = None if below is None else pairs.get(below, -1)
    if -1 in (top, end):
        return None
    blank_above = 0 if above is None else change.first_row - above - 1
    blank_below = 0 if below is None else below - change.last_row
    start, stop = span[0] if top is None else top + 1, span[1] if end is None else end
    if any(map(has_text, lines[start:stop])):
        # The text has more lines there: new ones go to the side that they touched.
        if change.old or (blank_above == 0) == (blank_below == 0):
            return None
        at = start if blank_above == 0 else stop
        return None if has_text(lines[at if blank_above == 0 else at - 1]) else (at, at)
    if top is None and stop - start > len(change.old):
        start = stop - len(change.old)
    elif end is None:
        stop = start + max(len(change.old), min(blank_above, stop - start))
    at = min(start + blank_above, stop)
    return at, min(at + len(change.old), stop)


def _rows_of_replacement(
    lines: Sequence[str],
    change: Change,
    wanted: Sequence[str],
    pairs: dict[int, int],
    span: tuple[int, int],
    olds: Sequence[int],
) -> tuple[int, int] | None:
    """Return the rows of quoted lines that are replaced, with the blank lines around them."""
    rows = [pairs.get(at, -1) for at in olds]
    if -1 in rows or not all(
        _is_same(lines[row], wanted[at]) for at, row in zip(olds, rows, strict=True)
    ):
        return None
    start, end = rows[0], rows[-1] + 1
    if [row for row in range(start, end) if has_text(lines[row])] != rows:
        return None  # there are lines between that were not quoted
    for _ in range(change.first_row, olds[0]):
        start -= start > span[0] and not has_text(lines[start - 1])
    for _ in range(olds[-1] + 1, change.last_row):
        end += end < span[1] and not has_text(lines[end])
    return start, end


def _find_similar(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]
) -> Match | Several | None:
    """Find lines most of which are in the text."""
    found = best(lines, wanted)
    if not found or found[0].share < MIN_SHARE or not found[0].is_significant:
        return None
    chosen = found[0]
    near = [
        one
        for one in found[1:]
        if chosen.share - one.share < MIN_GAP or chosen.exact_share - one.exact_share < MIN_GAP
    ]
    if near:
        places = [_from_alignment(lines, one, wanted, new) for one in (chosen, *near)]
        certain = tuple(place for place in places if place is not None)
        return Several(certain[:MAX_PLACES], "places are alike") if certain else None
    place = _from_alignment(lines, chosen, wanted, new)
    if place is not None and _is_applied(lines, place, wanted, new):
        return Several((place,), AGAIN)
    return place


def _from_alignment(
    lines: Sequence[str], one: Alignment, wanted: Sequence[str], new: Sequence[str]
) -> Match | None:
    """Merge at an aligned place; None if a line that was not quoted looks like one that changes."""
    paired = {row for _, row in one.pairs}
    rows = range(one.first_row, one.last_row)
    unquoted = {*stripped([lines[row] for row in rows if row not in paired])}
    for change in diff.changes(wanted, new):
        near = wanted[max(change.first_row - 1, 0) : change.last_row + 1]
        if unquoted & {*stripped(near)}:
            return None
    return _merge(lines, (one.first_row, one.last_row), wanted, new, dict(one.pairs), "like")


def _is_applied(
    lines: Sequence[str], place: Match, wanted: Sequence[str], new: Sequence[str]
) -> bool:
    """Return whether all new lines are elsewhere in the text already."""
    if len(stripped(new)) < MIN_APPLIED_LINES or len(new) < len(wanted) // 2:
        return False
    rows = _windows(lines, new, str.strip)
    return any(row + len(new) <= place.first_row or row >= place.last_row for row in rows)


def _is_same(line: str, quoted: str) -> bool:
    """Return whether a line that changes is as quoted, so that nothing unseen is lost."""
    one, other = line.strip(), quoted.strip()
    is_equal = one == other or one == html.unescape(other)
    return is_equal or one.translate(_QUOTES) == other.translate(_QUOTES)


def _normalized(line: str) -> str:
    """Return a line without what models get wrong when they quote it."""
    text = html.unescape(line.strip()) if "&" in line else line.strip()
    return re.sub(r"\s+", " ", text.translate(_QUOTES)).rstrip(",; ")


_TIERS: Final[tuple[tuple[Tier, Callable[[str], str]], ...]] = (
    ("exact", str),
    ("trailing", str.rstrip),
    ("indent", str.strip),
    ("blank", str.strip),
    ("quotes", _normalized),
)


def _says_little(wanted: Sequence[str], tier: Tier) -> bool:
    """Return whether lines identify no place."""
    text = " ".join(stripped(wanted))
    letters = sum(map(str.isalnum, text))
    if tier == "exact":
        return letters < 2 or text.rstrip(":;,") in COMMON
    return letters < MIN_LETTERS
