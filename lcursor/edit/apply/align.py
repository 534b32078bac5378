"""Find lines that are quoted with mistakes, and pair them with the lines of the text. Pure.

Correctly quoted lines show where to look; around them lines are paired in order, so that most of
them match. Blank lines do not count, and brackets count little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from lcursor.edit.lines import has_text

MAX_LINES: Final = 400
"""Longer quotes are not searched for."""
MAX_ROWS: Final = 60
"""Lines with more occurrences do not show where to look."""
MAX_WINDOWS: Final = 10
MIN_RATIO: Final = 0.8
MIN_LETTERS: Final = 20
"""Letters and digits of correctly quoted lines below which a match may be chance."""
SAME_INDENT: Final = 0.001
"""Bonus for the same indentation: it decides between two brackets."""
SHORT_WEIGHT: Final = 0.25
"""Weight of a line with less than three letters and digits."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """A place, with its lines paired."""

    first_row: int
    last_row: int
    share: float
    """Share of the lines of both sides that are paired, by weight and similarity."""
    pairs: tuple[tuple[int, int], ...]
    """Indices of a quoted line and of its row."""
    exact_share: float
    """Share of the correctly quoted lines."""
    is_significant: bool
    """Enough of it is quoted correctly."""


def best(lines: Sequence[str], wanted: Sequence[str]) -> list[Alignment]:
    """Return where lines may be, the likeliest first; no two places share a pair.

    Cost: 30 ms for 20 lines in 20,000.
    """
    rows = [row for row, line in enumerate(lines) if has_text(line)]
    marks = [at for at, line in enumerate(wanted) if has_text(line)]
    if not marks or not rows or len(marks) > MAX_LINES:
        return []
    texts, quotes = [lines[row].rstrip() for row in rows], [wanted[at].rstrip() for at in marks]
    slack = max(4, len(quotes) // 4)
    bare = [text.strip() for text in texts], [text.strip() for text in quotes]
    found = []
    for shift in _shifts(*bare, slack):
        pairs = _paired(texts, quotes, shift, slack)
        if pairs:
            found.append(_alignment(*bare, pairs, rows, marks))
    found.sort(key=lambda one: -one.share)
    distinct: list[Alignment] = []
    for one in found:
        if all(not {*one.pairs} & {*other.pairs} for other in distinct):
            distinct.append(one)
    return distinct


def _shifts(texts: Sequence[str], quotes: Sequence[str], slack: int) -> list[int]:
    """Return the rows at which the quote may begin, by its correctly quoted lines."""
    wanted, places = defaultdict(list), defaultdict(list)
    for at, text in enumerate(quotes):
        wanted[text].append(at)
    for row, text in enumerate(texts):
        if text in wanted:
            places[text].append(row)
    votes: dict[int, float] = defaultdict(float)
    for text, ats in wanted.items():
        if len(places[text]) * len(ats) <= MAX_ROWS:
            for at in ats:
                for row in places[text]:
                    votes[row - at] += _weight(text)
    totals = {
        shift: sum(votes.get(shift + by, 0.0) for by in range(-slack, slack + 1)) for shift in votes
    }
    chosen: list[int] = []
    for shift in sorted(totals, key=lambda one: (-totals[one], -votes[one], one)):
        if len(chosen) < MAX_WINDOWS and all(abs(shift - each) > slack // 2 for each in chosen):
            chosen.append(shift)
    return chosen


def _paired(
    texts: Sequence[str], quotes: Sequence[str], shift: int, slack: int
) -> list[tuple[int, int, float]]:
    """Return pairs of a quoted line and a row near a shift, with their similarity."""
    low, high = max(shift - slack, 0), min(shift + len(quotes) + slack, len(texts))
    window = [text.strip() for text in texts[low:high]]
    width, exact = len(window), {*window}
    above = [0.0] * (width + 1)
    steps: list[list[int]] = []
    ratios: list[list[float]] = []
    for at, quoted in enumerate(quotes):
        text = quoted.strip()
        here, came, ratio = [above[0], *[0.0] * width], [0] * (width + 1), [0.0] * (width + 1)
        weight = _weight(text)
        for place in range(1, width + 1):
            value, step = above[place], 1  # the quoted line is missing
            if here[place - 1] > value:
                value, step = here[place - 1], 2  # the text's line is not quoted
            row = low + place - 1
            if abs(row - at - shift) <= slack:
                alike = _similarity(text, window[place - 1], text in exact)
                total = above[place - 1] + alike * weight + SAME_INDENT * (texts[row] == quoted)
                if alike and total > value:
                    value, step = total, 3
                    ratio[place] = alike
            here[place], came[place] = value, step
        steps.append(came)
        ratios.append(ratio)
        above = here
    pairs: list[tuple[int, int, float]] = []
    at, place = len(quotes), max(range(width + 1), key=lambda one: above[one])
    while at > 0 and place > 0:
        step = steps[at - 1][place]
        if step == 3:
            pairs.append((at - 1, low + place - 1, ratios[at - 1][place]))
        at, place = at - (step != 2), place - (step != 1)
    return pairs[::-1]


def _similarity(one: str, other: str, is_exact_nearby: bool) -> float:
    if one == other:
        return 1.0
    # A line that is quoted correctly nearby is not misquoted here.
    if is_exact_nearby or min(len(one), len(other)) < 4:
        return 0.0
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < MIN_RATIO or matcher.quick_ratio() < MIN_RATIO:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= MIN_RATIO else 0.0


def _alignment(
    texts: Sequence[str],
    quotes: Sequence[str],
    pairs: Sequence[tuple[int, int, float]],
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
        letters >= MIN_LETTERS and count >= 2,
    )


def _weight(text: str) -> float:
    return 1.0 if sum(map(str.isalnum, text)) >= 3 else SHORT_WEIGHT
