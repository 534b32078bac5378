"""Find lines that are quoted with mistakes, and pair them with the lines of the text. Pure.

Correctly quoted lines give the candidates; between them difflib pairs equal lines, and between
those similar ones are paired. Blank lines are ignored, and brackets have little weight.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from lcursor.changes.lines import has_text

MAX_LINES: Final = 400
"""Longer quotes are not searched for."""
MAX_ROWS: Final = 60
"""Lines with more occurrences give no candidates."""
MAX_WINDOWS: Final = 10
MIN_RATIO: Final = 0.8
MIN_ALPHANUMERIC: Final = 20
"""Minimum letters and digits in correctly quoted lines; with fewer a match may be chance."""
SHORT_WEIGHT: Final = 0.25
"""Weight of a line with fewer than four letters and digits."""

Pair = tuple[int, int, float]
"""Indices of a quoted line and of a line of the text, and their similarity."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """A candidate position with paired lines."""

    first_row: int
    last_row: int
    share: float
    """Share of paired lines on both sides, by weight and similarity."""
    pairs: tuple[tuple[int, int], ...]
    """Indices of a quoted line and of its row."""
    exact_share: float
    """Share of correctly quoted lines."""
    is_significant: bool
    """Whether enough lines are quoted correctly."""


def align(lines: Sequence[str], wanted: Sequence[str]) -> list[Alignment]:
    """Return possible positions of lines, the likeliest first; no two share a pair.

    Cost: 30 ms for 20 lines in 20,000.
    """
    rows = [row for row, line in enumerate(lines) if has_text(line)]
    marks = [at for at, line in enumerate(wanted) if has_text(line)]
    if len(marks) > MAX_LINES:
        return []
    texts, quotes = [lines[row].strip() for row in rows], [wanted[at].strip() for at in marks]
    slack = max(4, len(quotes) // 4)
    alignments = []
    for shift in _shifts(texts, quotes, slack):
        pairs = _pairs_at(quotes, texts, shift, slack)
        if pairs:
            alignments.append(_alignment(texts, quotes, pairs, rows, marks))
    alignments.sort(key=lambda one: -one.share)
    distinct: list[Alignment] = []
    for one in alignments:
        if all(not {*one.pairs} & {*other.pairs} for other in distinct):
            distinct.append(one)
    return distinct


def _shifts(texts: Sequence[str], quotes: Sequence[str], slack: int) -> list[int]:
    """Return the rows where the quote may start, by its correctly quoted lines."""
    rows_of = defaultdict[str, list[int]](list)
    for row, text in enumerate(texts):
        rows_of[text].append(row)
    votes = Counter[int]()
    for at, text in enumerate(quotes):
        if text in rows_of and len(rows_of[text]) <= MAX_ROWS:
            votes.update({row - at: 1 + 3 * (_weight(text) == 1.0) for row in rows_of[text]})
    chosen: list[int] = []
    for shift, _ in votes.most_common():
        if len(chosen) < MAX_WINDOWS and all(abs(shift - each) > slack // 2 for each in chosen):
            chosen.append(shift)
    return chosen


def _pairs_at(quotes: Sequence[str], texts: Sequence[str], shift: int, slack: int) -> list[Pair]:
    """Return pairs of a quoted line and a row near a shift, in order."""
    exact = [
        at
        for at, text in enumerate(quotes)
        if texts[max(shift + at, 0) : shift + at + 1] == [text] and _weight(text) == 1.0
    ]
    if not exact:
        return []
    at = exact[0]
    low, row = max(shift - slack, 0), shift + at
    above = _pairs(quotes[:at][::-1], texts[low:row][::-1])  # nearest lines first
    pairs = [(at - 1 - one, row - 1 - other, ratio) for one, other, ratio in reversed(above)]
    for at, end in zip(exact, [*exact[1:], len(quotes)], strict=True):
        row, high = shift + at, shift + end + (slack if end == len(quotes) else 0)
        below = _pairs(quotes[at + 1 : end], texts[row + 1 : high])
        pairs.append((at, row, 1.0))
        pairs += ((at + 1 + one, row + 1 + other, ratio) for one, other, ratio in below)
    return pairs


def _pairs(quotes: Sequence[str], texts: Sequence[str]) -> list[Pair]:
    """Return pairs of equal lines, and of similar ones between these, in order."""
    pairs: list[Pair] = []
    matcher = SequenceMatcher(None, quotes, texts, autojunk=False)
    for tag, first, last, low, high in matcher.get_opcodes():
        if tag == "equal":
            pairs += ((at, at - first + low, 1.0) for at in range(first, last))
        for at in range(first, last if tag == "replace" else first):
            ratios = [(_similarity(quotes[at], texts[row]), -row) for row in range(low, high)]
            ratio, row = max(ratios, default=(0.0, 0))
            if ratio >= MIN_RATIO:
                pairs.append((at, -row, ratio))
                low = 1 - row
    return pairs


def _similarity(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= MIN_RATIO else 0.0


def _alignment(
    texts: Sequence[str],
    quotes: Sequence[str],
    pairs: Sequence[Pair],
    rows: Sequence[int],
    marks: Sequence[int],
) -> Alignment:
    first, last = pairs[0][1], pairs[-1][1] + 1
    matched = sum(ratio * _weight(quotes[at]) for at, _, ratio in pairs)
    total = max(sum(map(_weight, quotes)), sum(map(_weight, texts[first:last])))
    right = [quotes[at] for at, _, ratio in pairs if ratio == 1.0]
    letters = sum(sum(map(str.isalnum, text)) for text in right)
    count = sum(_weight(text) == 1.0 for text in right)
    return Alignment(
        rows[first],
        rows[last - 1] + 1,
        matched / total,
        tuple((marks[at], rows[row]) for at, row, _ in pairs),
        sum(map(_weight, right)) / total,
        letters >= MIN_ALPHANUMERIC and count >= 2,
    )


def _weight(text: str) -> float:
    return 1.0 if sum(map(str.isalnum, text)) >= 4 else SHORT_WEIGHT
