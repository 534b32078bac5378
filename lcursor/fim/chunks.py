"""Pieces of files that may be shown to the model: their borders, and their similarity.

Pure functions of text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["visited", "edited", "yanked", "import", "diagnostics", "changes", "retrieved"]
Words = Counter[str]

SINGLE = frozenset({"import", "diagnostics", "changes"})
"""Kinds of which a file has one chunk: a newer one replaces it, an empty one removes it."""
AROUND_CURSOR = frozenset({"visited", "edited"})
"""Kinds that are lines around a cursor, so that their ends are arbitrary."""
MAX_LINES = 64
MIN_LINES = 3


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file.

    Attributes:
        path: the path that the model sees, relative to the project.
        first_row: row of its first line in the file.
        at_ms: when it was added, on a monotonic clock.
    """

    path: str
    first_row: int
    text: str
    kind: Kind
    at_ms: float = 0.0


def clip(chunk: Chunk) -> Chunk:
    """Cut a chunk to size, at borders of the code where that loses few lines."""
    lines = chunk.text.split("\n")
    first, end = 0, len(lines)
    if end > MAX_LINES:
        first = (end - MAX_LINES) // 2 if chunk.kind in AROUND_CURSOR else 0
        end = first + MAX_LINES
    if chunk.kind in AROUND_CURSOR:
        first, end = _at_borders(lines, first, end, chunk.first_row == 0)
    while first < end and not lines[first].strip():
        first += 1
    while first < end and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[first:end])
    return replace(chunk, text=text, first_row=chunk.first_row + first)


def _at_borders(lines: list[str], first: int, end: int, is_top: bool) -> tuple[int, int]:
    """Move both ends inwards to a border, by at most a quarter of the lines.

    A border is before a line without indentation that begins something, or else after a blank line.
    """
    slack = (end - first) // 4
    if not (is_top and first == 0):
        first = _first_border(lines, range(first, first + slack + 1), first)
    end = _first_border(lines, range(end, end - slack - 1, -1), end)
    return first, end


def _first_border(lines: list[str], rows: range, otherwise: int) -> int:
    for begins in (_begins, _follows_blank):
        found = next((row for row in rows if row < len(lines) and begins(lines, row)), None)
        if found is not None:
            return found
    return otherwise


def _begins(lines: list[str], row: int) -> bool:
    starts_here = re.match(r"[^\s)\]}]", lines[row]) is not None
    return starts_here and (row == 0 or re.match(r"[^\s@#/\-*]", lines[row - 1]) is None)


def _follows_blank(lines: list[str], row: int) -> bool:
    return bool(lines[row].strip()) and row > 0 and not lines[row - 1].strip()


def words(text: str) -> Words:
    """Count the words of a text."""
    return Counter(re.findall(r"\w+", text))


def dice(one: Words, other: Words) -> float:
    """Return the Dice similarity of two texts by their words, 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def share_in(text: str, window: Container[str]) -> float:
    """Return the share of the lines of a text that are in a window as well."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return sum(line in window for line in lines) / len(lines) if lines else 0.0
