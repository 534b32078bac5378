"""Find the quoted lines of a reply in a text, and apply its changes there.

    find(["def f():", "    return 1"], ["return 1"], ["return 2"])
    -> Match(1, 2, "whitespace", ("    return 2",))

The tiers are increasingly tolerant: exact lines; different whitespace and blank lines; different
punctuation; similar lines. No tier picks the first of several matches, or relies on line numbers.
Context lines keep the text's form; changed lines must be as quoted, except for whitespace and
quotation marks. Pure; any thread.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from lcursor.changes import diff
from lcursor.changes.apply.indents import IndentMap
from lcursor.changes.apply.similar import Alignment, align
from lcursor.changes.lines import has_text, stripped
from lcursor.changes.records import Lines

Tier = Literal["exact", "whitespace", "punctuation", "similar"]

MIN_ALPHANUMERIC: Final = 4
"""Lines with fewer letters and digits, such as `}` or `end`, identify no position."""
_COMMON_WORDS: Final = (
    "end endif fi done else pass do begin try break continue return then esac finally"
)
COMMON: Final = frozenset(_COMMON_WORDS.split())
"""Lines that are common everywhere."""
MIN_SHARE: Final = 0.8
MIN_GAP: Final = 0.15
"""Minimum lead of the best match over the next one, if lines are only similar."""
MAX_MATCHES: Final = 20
MIN_APPLIED_LINES: Final = 3
"""With at least this many result lines in the text, the change may have been applied before."""
MIN_ALIKE: Final = 0.5
"""Minimum similarity of changed lines to the lines that replace them."""
AGAIN: Final = "the same change seems to be made already, elsewhere"
LOST_BLANK: Final = "the reply leaves out a blank line between two lines that it changes"

_QUOTES: Final = str.maketrans('`\u2018\u2019\u201c\u201d"', "''''''")


@dataclass(frozen=True, slots=True)
class Match:
    """Rows of a text, and their replacement."""

    first_row: int
    last_row: int
    tier: Tier
    new: Lines
    """The replacement, with unchanged lines in the text's form."""
    doubt: str = ""
    """Why the new lines are not certain."""


@dataclass(frozen=True, slots=True)
class Several:
    """Several possible matches, or an uncertain one."""

    matches: tuple[Match, ...]
    why: str = ""


def find(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str] = ()
) -> Match | Several | None:
    """Find lines in a text, and apply their change.

    Returns None if there is no match, or if a changed line differs from its quote. Cost: 20 ms in
    20,000 lines for the first tiers, up to a second for similar lines.
    """
    wanted, new = _without_common_blank_ends(wanted, new)
    if not any(map(has_text, wanted)):
        return None
    matches = [Match(row, row + len(wanted), "exact", (*new,)) for row in _windows(lines, wanted)]
    if matches:
        return _certain_or_not(lines, wanted, new, matches)
    rows = [row for row, line in enumerate(lines) if has_text(line)]
    quoted = [line for line in wanted if has_text(line)]
    for tier, key in _TIERS:
        starts = _windows([key(lines[row]) for row in rows], [*map(key, quoted)])
        made = [_merge(lines, rows[at : at + len(quoted)], wanted, new, tier) for at in starts]
        matches = [match for match in made if match is not None]
        if len(made) > 1 and matches:
            return Several(tuple(matches[:MAX_MATCHES]), "it was found more than once")
        if matches:
            return _certain_or_not(lines, wanted, new, matches)
    return _find_similar(lines, wanted, new)


def _without_common_blank_ends(
    wanted: Sequence[str], new: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Remove leading and trailing blank lines that both texts have."""
    old, new_lines = list(wanted), list(new)
    for end in (0, -1):
        while old and new_lines and not has_text(old[end]) and not has_text(new_lines[end]):
            del old[end], new_lines[end]
    return old, new_lines


def _windows(texts: Sequence[str], quoted: Sequence[str]) -> list[int]:
    """Return every row where the quoted lines start."""
    count, wanted = len(quoted), [*quoted]
    pivot = max(range(count), key=lambda at: len(wanted[at]))
    starts = [row - pivot for row, text in enumerate(texts) if text == wanted[pivot]]
    return [at for at in starts if at >= 0 and [*texts[at : at + count]] == wanted]


def _certain_or_not(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str], found: Sequence[Match]
) -> Match | Several:
    """Return the matches of a tier as one certain match, or as several to choose from."""
    if len(found) > 1:
        return Several(tuple(found[:MAX_MATCHES]), "it was found more than once")
    (match,) = found
    if match.doubt:
        return Several((match,), match.doubt)
    if _says_little(wanted, match.tier):
        return Several((match,), "the quote is too short to be certain")
    if match.tier == "exact" and not wanted[0][:1].isspace():
        rows = _windows([line.strip() for line in lines], [line.strip() for line in wanted])
        spans = ([row + at for at, line in enumerate(wanted) if has_text(line)] for row in rows)
        made = (_merge(lines, span, wanted, new, "whitespace") for span in spans)
        rest = tuple(each for each in made if each is not None)
        if len(rest) > 1:
            return Several(rest[:MAX_MATCHES], "it was also found with more indentation")
    return Several((match,), AGAIN) if _is_applied(lines, match, wanted, new) else match


def _says_little(wanted: Sequence[str], tier: Tier) -> bool:
    """Return whether lines are too common to identify a position."""
    text = " ".join(stripped(wanted))
    letters = sum(map(str.isalnum, text))
    if tier == "exact":
        return letters < 2 or text.rstrip(":;,") in COMMON
    return letters < MIN_ALPHANUMERIC


def _is_applied(
    lines: Sequence[str], match: Match, wanted: Sequence[str], new: Sequence[str]
) -> bool:
    """Return whether all new lines already exist elsewhere in the text."""
    if len(stripped(new)) < MIN_APPLIED_LINES or len(new) < len(wanted) // 2:
        return False
    rows = _windows([line.strip() for line in lines], [line.strip() for line in new])
    return any(row + len(new) <= match.first_row or row >= match.last_row for row in rows)


# Applying a change at a match.


def _merge(
    lines: Sequence[str],
    rows: Sequence[int | None],
    wanted: Sequence[str],
    new: Sequence[str],
    tier: Tier,
) -> Match | None:
    """Apply to the text the change from the quoted to the new lines; None if ambiguous.

    Blank lines keep the text's form, except around changed lines. `rows` has the row of each quoted
    line that is not blank, None if the text does not have it.
    """
    (olds, old_gaps), (news, new_gaps) = _without_blank(wanted), _without_blank(new)
    paired = [(quoted, row) for quoted, row in zip(olds, rows, strict=True) if row is not None]
    indents = IndentMap(lines, [(quoted, lines[row]) for quoted, row in paired], new)
    if not indents.is_consistent:
        return None
    first, end = paired[0][1], paired[-1][1] + 1
    result: list[str] = []
    doubt = ""
    row = first
    for i, i_end, j, j_end in diff.spans(olds, news):
        changed = [each for each in rows[i:i_end] if each is not None]
        if len(changed) < i_end - i or not all(
            _is_same(lines[row], old) for row, old in zip(changed, olds[i:], strict=False)
        ):
            return None
        top, stop = rows[i - 1] if i else first - 1, rows[i_end] if i_end < len(rows) else end
        if changed and (top is None or any(map(has_text, lines[top + 1 : changed[0]]))):
            top = changed[0] - 1  # next to unquoted lines
            while top >= first and not has_text(lines[top]):
                top -= 1
        if changed and (stop is None or any(map(has_text, lines[changed[-1] + 1 : stop]))):
            stop = changed[-1] + 1
            while stop < end and not has_text(lines[stop]):
                stop += 1
        inner = _inner_gaps(
            _Spaced(olds[i:i_end], old_gaps[i + 1 : i_end]),
            _Spaced(news[j:j_end], new_gaps[j + 1 : j_end]),
            [below - above - 1 for above, below in pairwise(changed)],
        )
        if inner is None:
            doubt, inner = LOST_BLANK, new_gaps[j + 1 : j_end]
        made = indents.fit_all(_with_gaps(news[j:j_end], inner))
        if top is None or stop is None or made is None:
            return None
        start = top + 1
        between = [row for row in range(start, stop) if has_text(lines[row])]
        if between != changed:  # unquoted lines: new ones go to the adjacent side
            is_above, is_below = new_gaps[j] == 0, new_gaps[j_end] == 0
            if changed or is_above == is_below:
                return None
            start, stop = (start, start) if is_above else (stop, stop)
        result += lines[row:start]
        above = lines[start : changed[0]] if changed else lines[start:stop]
        below = lines[changed[-1] + 1 : stop] if changed else above
        result += _between(above, below, (old_gaps[i], old_gaps[i_end]),
                               made, (new_gaps[j], new_gaps[j_end]))  # fmt: skip
        row = stop
    return Match(first, end, tier, (*result, *lines[row:end]), doubt)


class _Spaced(NamedTuple):
    """Non-blank lines, and the number of blank lines between each two."""

    lines: Sequence[str]
    gaps: Sequence[int]


def _inner_gaps(old: _Spaced, new: _Spaced, present: Sequence[int]) -> list[int] | None:
    """Return the blank lines between new lines, with unquoted ones; None if ambiguous.

    `present` has the numbers of blank lines between the old lines in the text.
    """
    gaps = [*new.gaps]
    for at, (count, quoted) in enumerate(zip(present, old.gaps, strict=False), 1):
        if not new.lines or count == quoted:
            continue
        split = _split(old.lines[:at], old.lines[at:], new.lines)
        if split is None:
            return None
        if gaps[split - 1] == quoted:
            gaps[split - 1] = count
    return gaps


def _split(above: Sequence[str], below: Sequence[str], new: Sequence[str]) -> int | None:
    """Return how many of the new lines replace the lines above; None if ambiguous."""
    candidates = [
        (min(_similarity(above, new[:at]), _similarity(below, new[at:])), at)
        for at in range(1, len(new))
    ]
    candidates.sort(reverse=True)
    if not candidates or candidates[0][0] < MIN_ALIKE:
        return None
    is_clear = len(candidates) == 1 or candidates[0][0] - candidates[1][0] >= MIN_GAP
    return candidates[0][1] if is_clear else None


def _similarity(one: Sequence[str], other: Sequence[str]) -> float:
    texts = ["\n".join(stripped(lines)) for lines in (one, other)]
    return SequenceMatcher(None, texts[0], texts[1]).ratio()


def _without_blank(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the non-blank lines, and the numbers of blank lines before and after each."""
    texts, gaps = list[str](), [0]
    for line in lines:
        if has_text(line):
            texts.append(line)
            gaps.append(0)
        else:
            gaps[-1] += 1
    return texts, gaps


def _with_gaps(texts: Sequence[str], gaps: Sequence[int]) -> list[str]:
    """Return lines with blank lines between them."""
    result = [*texts[:1]]
    for text, gap in zip(texts[1:], gaps, strict=True):
        result += [*[""] * gap, text]
    return result


def _between(
    above: Sequence[str],
    below: Sequence[str],
    old_gaps: tuple[int, int],
    made: Sequence[str],
    new_gaps: tuple[int, int],
) -> list[str]:
    """Return new lines with the blank lines of the text, or of the reply, above and below."""
    if made:
        top = above if new_gaps[0] == old_gaps[0] else [""] * new_gaps[0]
        end = below if new_gaps[1] == old_gaps[1] else [""] * new_gaps[1]
        return [*top, *made, *end]
    gap = new_gaps[0]
    if gap == sum(old_gaps) and above is not below:
        return [*above, *below]
    return [*(above if gap == old_gaps[0] else below if gap == old_gaps[1] else [""] * gap)]


def _is_same(line: str, quoted: str) -> bool:
    """Return whether a changed line is as quoted, so that no unseen text is lost."""
    one, other = line.strip(), quoted.strip()
    is_equal = one == other or one == html.unescape(other)
    return is_equal or one.translate(_QUOTES) == other.translate(_QUOTES)


def _normalized(line: str) -> str:
    """Return a line without details that models often quote wrongly."""
    text = html.unescape(line.strip()) if "&" in line else line.strip()
    return re.sub(r"\s+", " ", text.translate(_QUOTES)).rstrip(",; ")


_TIERS: Final[tuple[tuple[Tier, Callable[[str], str]], ...]] = (
    ("whitespace", str.strip),
    ("punctuation", _normalized),
)


# Similar lines.


def _find_similar(
    lines: Sequence[str], wanted: Sequence[str], new: Sequence[str]
) -> Match | Several | None:
    """Find lines if most of them are in the text."""
    aligned = align(lines, wanted)
    if not aligned or aligned[0].share < MIN_SHARE or not aligned[0].is_significant:
        return None
    chosen = aligned[0]
    near = [
        one
        for one in aligned[1:]
        if chosen.share - one.share < MIN_GAP or chosen.exact_share - one.exact_share < MIN_GAP
    ]
    made = [_merge_similar(lines, one, wanted, new) for one in (chosen, *near)]
    matches = tuple(match for match in made if match is not None)
    if near:
        return Several(matches[:MAX_MATCHES], "several places are similar") if matches else None
    if not matches:
        return None
    why = matches[0].doubt or (AGAIN if _is_applied(lines, matches[0], wanted, new) else "")
    return Several(matches, why) if why else matches[0]


def _merge_similar(
    lines: Sequence[str], one: Alignment, wanted: Sequence[str], new: Sequence[str]
) -> Match | None:
    """Merge at an alignment; None if an unquoted line resembles a changed one."""
    rows = {row for _, row in one.pairs}
    texts = [lines[row] for row in range(one.first_row, one.last_row) if row not in rows]
    unquoted = {*stripped(texts)}
    for change in diff.changes(wanted, new):
        near = wanted[max(change.first_row - 1, 0) : change.last_row + 1]
        if unquoted & {*stripped(near)}:
            return None
    row_of = dict(one.pairs)
    quoted = [row_of.get(at) for at, line in enumerate(wanted) if has_text(line)]
    return _merge(lines, quoted, wanted, new, "similar")
