"""Whether a place is the one that a model read, or only looks like it. Pure; any thread.

What was read is pieces of files, as they were then. A piece that stands where it stood says where
its lines are. Of any other the lines around the quoted ones have to be around the place, and
nowhere else: by what they count, and a line that stands often counts little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from lcursor.context.items import Seen
from lcursor.edit.records import Lines

MOST_AROUND: Final = 20
"""Lines above, and as many below, by which a place is known; empty ones do not count."""
SLACK: Final = 2
"""So many times as many lines of the text are looked at: some may have come."""
LEAST_LETTERS: Final = 3
LITTLE: Final = 0.25
"""What a line with fewer letters counts."""
MARGIN: Final = 0.5
"""So much more the lines around a place must count; a line that stands once counts 1."""
COMMON: Final = 100
"""A line that stands so often hardly counts, and nothing is looked for at it."""
Rows = tuple[int, int]
Find = Callable[[Lines], Sequence[Rows]]
"""Returns where in a piece is what a reply means; more than one where that is not clear."""


def is_meant(
    lines: Lines, rows: Rows, pieces: Sequence[Seen], find: Find, *, is_whole: bool = False
) -> bool:
    """Return whether rows of a text are those that a reply means, by what its writer had read.

    Args:
        lines: of the text.
        rows: where the reply would be applied.
        pieces: of this file, and with an empty path what was only said; the newest first.
        find: finds what the reply means in a piece.
        is_whole: the rows are replaced unquoted: they must be what was read.
    """
    own = [piece for piece in pieces if piece.path]
    newest = 0
    for piece in own:
        if newest and piece.message != newest:
            break
        found = find(piece.lines)
        if not found:
            continue
        newest = piece.message
        if not any(_is_at(lines, rows, piece, there) for there in found):
            return False
        if len(found) > 1 and not _standing(lines, piece):
            return False
        if is_whole and not any(_are_same(lines, rows, piece, there) for there in found):
            return _was_said(lines[slice(*rows)], pieces)
    if newest or all(_standing(lines, piece) for piece in own):
        return True
    return _was_said(lines[slice(*rows)], pieces)


def one_of(lines: Lines, places: Sequence[Rows], pieces: Sequence[Seen], find: Find) -> Rows | None:
    """Return the one of several places that is the one that was read; None where none is for sure.

    Args:
        lines: of the text.
        places: rows that look alike.
        pieces: as for `is_meant`.
        find: finds what the reply means in a piece.
    """
    own = [piece for piece in pieces if piece.path]
    hits = [(piece, rows) for piece in own for rows in find(piece.lines)]
    hits = [hit for hit in hits if hit[0].message == hits[0][0].message]
    if len(hits) != 1:
        return None
    piece, there = hits[0]
    found = [rows for rows in places if _is_at(lines, rows, piece, there)]
    return found[0] if len(found) == 1 else None


def _is_at(lines: Lines, rows: Rows, piece: Seen, there: Rows) -> bool:
    """Return whether rows of a text are what became of rows of a piece."""
    if piece.first_row in _standing(lines, piece):
        return rows[0] == piece.first_row + there[0]
    above, below = _above(piece.lines, there[0]), _below(piece.lines, there[1])
    return _margin(lines, rows, above, below) >= MARGIN


def _standing(lines: Lines, piece: Seen) -> list[int]:
    """Return the rows at which a piece stands as it was read."""
    size = len(piece.lines)
    if not size:
        return []
    first = piece.lines[0]
    return [
        row
        for row in range(len(lines) - size + 1)
        if lines[row] == first and lines[row : row + size] == piece.lines
    ]


def _are_same(lines: Lines, rows: Rows, piece: Seen, there: Rows) -> bool:
    return _filled(lines[slice(*rows)]) == _filled(piece.lines[slice(*there)])


def _was_said(quoted: Sequence[str], pieces: Sequence[Seen]) -> bool:
    """Return whether lines stand in what was said in the chat: the model wrote them itself."""
    wanted = _filled(quoted)
    if not any(map(_letters, wanted)):
        return False
    for piece in pieces:
        texts = [] if piece.path else _filled(piece.lines)
        size = len(wanted)
        if any(texts[at : at + size] == wanted for at in range(len(texts) - size + 1)):
            return True
    return False


def _filled(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _above(lines: Sequence[str], row: int) -> list[str]:
    """Return the lines above a row, the nearest first."""
    return _filled(lines[:row])[: -MOST_AROUND - 1 : -1]


def _below(lines: Sequence[str], row: int) -> list[str]:
    return _filled(lines[row:])[:MOST_AROUND]


def _letters(line: str) -> bool:
    return sum(map(str.isalnum, line)) >= LEAST_LETTERS


def _margin(lines: Lines, rows: Rows, above: Sequence[str], below: Sequence[str]) -> float:
    """Return by how much more lines are around a place than around any other.

    Around the place only those count that are as far from it as they were; elsewhere all do that
    come in their order: who is mistaken here changes what nobody meant.
    """
    texts = [(row, line.strip()) for row, line in enumerate(lines) if line.strip()]
    counts = Counter(text for _, text in texts)
    upper = [(row, text) for row, text in texts if row < rows[0]][::-1]
    lower = [(row, text) for row, text in texts if row >= rows[1]]
    here, used = 0.0, set[int]()
    for side, wanted in ((upper, above), (lower, below)):
        for (row, text), line in zip(side, wanted, strict=False):
            if text == line:
                here += _weight(text, counts)
                used.add(row)
    rest = ["" if row in used else text for row, text in texts]
    there = _elsewhere(rest[::-1], above, counts) + _elsewhere(rest, below, counts)
    return here - there


def _elsewhere(texts: Sequence[str], wanted: Sequence[str], counts: Counter[str]) -> float:
    """Return the most that lines count that stand after each other anywhere in a text."""
    known, width, best = {*wanted}, MOST_AROUND * SLACK, 0.0
    for at, first in enumerate(texts):
        if first not in known or counts[first] > COMMON:
            continue
        window = texts[at : at + width]
        if sum(_weight(text, counts) for text in window if text in known) > best:
            best = max(best, _common(window, wanted, counts))
    return best


def _weight(text: str, counts: Counter[str]) -> float:
    return (1.0 if _letters(text) else LITTLE) / max(counts[text], 1)


def _common(texts: Sequence[str], wanted: Sequence[str], counts: Counter[str]) -> float:
    """Return the most that lines count which both have in this order."""
    best = [0.0] * (len(wanted) + 1)
    for text in texts:
        if text not in wanted:
            continue
        before, weight = 0.0, _weight(text, counts)
        for at, other in enumerate(wanted, 1):
            same = before + weight if text == other else 0.0
            before, best[at] = best[at], max(same, best[at], best[at - 1])
    return best[-1]
