"""Merges lines that leave some out with all of them, by the lines around each omission. Pure.

The line beside an omission must be there once: then it is certain where what is left out begins
and ends. A new line beside one could as well be an old line in its new form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from lcursor.edit import diff

ALIKE: Final = 0.6
"""As like as this a new line may be a kept one in its new form, and nobody can tell."""
ALIKE_BESIDE: Final = 0.45
LEAST_CHARS: Final = 4


class Unsure(Exception):
    """It could be meant in more than one way."""


def merged(
    base: Sequence[str],
    sketch: Sequence[str],
    gaps: Sequence[int],
    *,
    is_bold: bool,
    is_held: bool = False,
) -> list[str]:
    """Return the base with what the sketch changes.

    Args:
        base: all lines.
        sketch: them, with omissions.
        gaps: rows of the sketch that stand for others.
        is_held: what follows both is the same, so that nothing is missing at the end.
        is_bold: new lines beside an omission, at the beginning or the end, are taken for new.

    Raises:
        Unsure: an end of an omission is not held by a line that is there once.
    """
    pieces: list[Sequence[str]] = []
    start = 0
    for gap in [*gaps, len(sketch)]:
        pieces.append(sketch[start:gap])
        start = gap + 1
    written = {line.strip() for line in sketch}
    kept = [line.strip() for line in base if has_text(line) and line.strip() not in written]
    result: list[str] = []
    row = 0
    for place, piece in enumerate(pieces):
        is_first, is_last = place == 0, place == len(pieces) - 1
        if not any(map(has_text, piece)):
            result += base[row:] if is_last else ()
            continue
        spot = _Piece(base, row, piece, kept, is_first, is_last, is_bold, is_held)
        first, last = spot.rows()
        if first > row and is_first:
            raise Unsure
        left = base[row:first]
        if not is_first and not any(map(has_text, left)):
            raise Unsure  # it says that something is left out, and nothing is
        result += left
        result += _bare(piece, above=not is_first, below=not is_last)
        row = last
    if deleted(base, result):
        raise Unsure  # it may have been left out without a word
    return result


class _Piece:
    """One piece between omissions, and the rows that it takes the place of."""

    def __init__(
        self,
        base: Sequence[str],
        row: int,
        piece: Sequence[str],
        kept: Sequence[str],
        is_first: bool,
        is_last: bool,
        is_bold: bool,
        is_held: bool,
    ) -> None:
        self._base, self._row, self._piece, self._kept = base, row, piece, kept
        self._is_first, self._is_last = is_first, is_last
        self._is_bold, self._is_held = is_bold, is_held

    def rows(self) -> tuple[int, int]:
        """Return them.

        Raises:
            Unsure: a line that holds it is not there once.
        """
        base, piece = self._base, self._piece
        texts = [at for at, line in enumerate(piece) if has_text(line)]
        heads = [at for at in texts if self._anchor(at, 1) is not None]
        ends = [at for at in texts if self._anchor(at, -1) is not None]
        first = last = -1
        if self._is_first:
            first = self._row
        elif heads:
            first = self._anchor(heads[0], 1) or 0
            if heads[0] != texts[0]:
                self._refuse_forms(piece[: heads[0]], base[first - 1 : first])
        if self._is_last:
            last = len(base)
            if not self._is_first and not heads:
                return self._tail()
            if not self._is_held:
                self._refuse_open_end()
        elif ends:
            last = (self._anchor(ends[-1], -1) or 0) + 1
            if ends[-1] != texts[-1]:
                self._refuse_forms(piece[ends[-1] + 1 :], base[last : last + 1])
        elif self._is_first:
            return self._beginning()
        if first < 0 or last < 0 or first >= last:
            raise Unsure
        return first, last

    def _refuse_open_end(self) -> None:
        """Raise `Unsure` where lines of the base may follow what a text ends with."""
        there = [line.strip() for line in self._base if has_text(line)]
        if there[-1] != [line.strip() for line in self._piece if has_text(line)][-1]:
            raise Unsure

    def _tail(self) -> tuple[int, int]:
        """Return where a last piece begins whose lines, but for some at its end, are all new."""
        base, piece = self._base, self._piece
        first, at = len(base), len(piece)
        while True:
            while first > self._row and not has_text(base[first - 1]):
                first -= 1
            while at > 0 and not has_text(piece[at - 1]):
                at -= 1
            if first <= self._row or at == 0 or base[first - 1].strip() != piece[at - 1].strip():
                break
            first, at = first - 1, at - 1
        self._refuse_forms(piece[:at], base[first - 1 : first])
        return first, len(base)

    def _beginning(self) -> tuple[int, int]:
        """Return where a first piece ends whose lines, but for some at its beginning, are new."""
        base, piece = self._base, self._piece
        last, at = self._row, 0
        while True:
            while last < len(base) and not has_text(base[last]):
                last += 1
            while at < len(piece) and not has_text(piece[at]):
                at += 1
            if last >= len(base) or at >= len(piece) or base[last].strip() != piece[at].strip():
                break
            last, at = last + 1, at + 1
        self._refuse_forms(piece[at:], base[last : last + 1])
        if piece[-1].rstrip().endswith((":", "{", "(", "then", "do")):
            raise Unsure
        if last == self._row and base[last:] and base[last].lstrip().startswith(_FIRST):
            raise Unsure  # what must stand first would not any more
        while last > self._row and not has_text(base[last - 1]):
            last -= 1
        return self._row, last

    def _refuse_forms(self, lines: Sequence[str], beside: Sequence[str]) -> None:
        """Raise `Unsure` where new lines may be lines that stay, in another form.

        Args:
            lines: the new ones.
            beside: the one of those that stay that is next to them, and the likeliest.
        """
        texts = [line.strip() for line in lines if has_text(line)]
        if texts and not self._is_bold:
            raise Unsure
        near = [line.strip() for line in beside if line.strip() in self._kept]
        for text in texts:
            if near and (_target(text) == _target(near[0]) or _is_like(text, near, ALIKE_BESIDE)):
                raise Unsure
            if text in self._kept or _is_like(text, self._kept, ALIKE):
                raise Unsure

    def _anchor(self, at: int, step: int) -> int | None:
        """Return the one row of the base that is a line of the piece.

        Lines beside it, inwards, tell it from others like it.
        """
        base, piece = self._base, self._piece
        wanted = [line for line in (piece[at:] if step > 0 else piece[at::-1]) if has_text(line)]
        own = wanted[0]
        places = [place for place in range(self._row, len(base)) if base[place] == own]
        if len(places) == 1 and any(map(str.isalnum, own)):
            return places[0]
        for count in (2, 3, 4):
            if len(wanted) < count:
                break
            texts = [line.strip() for line in wanted[:count]]
            places = [place for place in places if _run(base, place, step, count) == texts]
            if len(places) == 1 and any(map(str.isalnum, "".join(texts))):
                return places[0]
        return None


_FIRST: Final = ('"', "'", "/*", "#!")


def _run(base: Sequence[str], row: int, step: int, count: int) -> list[str]:
    found: list[str] = []
    while 0 <= row < len(base) and len(found) < count:
        if has_text(base[row]):
            found.append(base[row].strip())
        row += step
    return found


def _bare(piece: Sequence[str], *, above: bool, below: bool) -> Sequence[str]:
    """Return a piece without empty lines beside an omission: those of the base are there."""
    first, last = 0, len(piece)
    while above and first < last and not has_text(piece[first]):
        first += 1
    while below and last > first and not has_text(piece[last - 1]):
        last -= 1
    return piece[first:last]


def _target(line: str) -> str:
    """Return what a line sets or calls, or all of it where it does neither."""
    found = re.match(r"[\w.\[\]\s]+?(?=\s*[=(:])", line)
    return found[0] if found else line


def _is_like(text: str, others: Sequence[str], least: float) -> bool:
    if len(text) < LEAST_CHARS:
        return False
    matcher = SequenceMatcher(None, "", text, autojunk=False)
    for other in others:
        matcher.set_seq1(other)
        ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
        if all(ratio() >= least for ratio in ratios):
            return True
    return False


def deleted(base: Sequence[str], made: Sequence[str]) -> int:
    """Return how many lines are gone that no others took the place of."""
    return sum(
        max(sum(map(has_text, change.old)) - sum(map(has_text, change.new)), 0)
        for change in diff.changes(base, made)
    )


def has_text(line: str) -> bool:
    """Return whether a line is not empty."""
    return bool(line.strip())
