"""Normalize a model's text for a region, to correct typical mistakes of models.

Models move everything to the left, drop trailing space, and repeat the lines above or below. In
doubt the text stays unchanged. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lcursor.changes import diff
from lcursor.changes.lines import contains_run, has_text, indent_of, trim
from lcursor.changes.records import Lines
from lcursor.edit.rewriting.task import Task

MIN_ECHO: Final = 2
"""Minimum of repeated non-blank lines that count as an echo of the surroundings."""
MIN_ECHO_CHARS: Final = 20
MAX_ECHO: Final = 400


class Normalizer:
    """Normalizes the new text of one region, complete or while it streams."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._held: list[str] = []
        self._shift: _Shift | None = None

    def feed(self, lines: Lines) -> Lines:
        """Return normalized lines of a stream, with a short delay at the start.

        The indentation is known from the second line at the earliest.
        """
        if self._shift is None:
            self._held += lines
            if sum(map(has_text, self._held)) < 3:
                return ()
            self._shift = _best_shift(self._task.old, self._held)
            lines, self._held = tuple(self._held), []
        return tuple(self._shift.apply(row, line) for row, line in enumerate(lines))

    def whole(self, new: Lines) -> Lines:
        """Return the normalized complete text."""
        old, task = self._task.old, self._task
        below, above = task.lines[task.region.last_row :], task.lines[: task.region.first_row]
        new = _without_blank_ends(old, new)
        new = _without_echo(old, new, below)
        new = _without_echo(old[::-1], new[::-1], above[::-1])[::-1]
        new = _without_blank_ends(old, new)
        if "".join(new).strip() and not "".join(old).strip():
            return _with_blank_lines_around(above, old, new, below)
        shift = _best_shift(old, new)
        if shift.cut != shift.add:
            first = next((row for row, line in enumerate(new) if has_text(line)), 0)
            new = tuple(shift.apply(row - first, line) for row, line in enumerate(new))
        return _with_trailing_space(old, new)


class _Shift:
    """A change of indentation, of all lines or of the first alone."""

    def __init__(self, cut: str, add: str, *, is_first_only: bool = False) -> None:
        self.cut, self.add, self.is_first_only = cut, add, is_first_only

    def apply(self, row: int, line: str) -> str:
        if (self.is_first_only and row > 0) or not has_text(line):
            return line
        return self.add + line[len(self.cut) :] if line.startswith(self.cut) else line


def _best_shift(old: Sequence[str], new: Sequence[str]) -> _Shift:
    """Return the shift that makes the most lines equal to lines of the old text."""
    first_old, first_new = next(filter(has_text, old), None), next(filter(has_text, new), None)
    none = _Shift("", "")
    if first_old is None or first_new is None:
        return none
    add, cut = indent_of(first_old), indent_of(first_new)
    if add == cut:
        return none
    known = set(old)
    rows = [line for line in new if has_text(line)]
    best, most = none, sum(line in known for line in rows)
    for shift in (_Shift(cut, add), _Shift(cut, add, is_first_only=True)):
        if not shift.is_first_only and any(not line.startswith(cut) for line in rows):
            continue
        hits = sum(shift.apply(row, line) in known for row, line in enumerate(rows))
        if hits > most:
            best, most = shift, hits
    is_deeper = len(cut) < len(add) and all(indent_of(line).startswith(add) for line in rows[1:])
    if best is none and most and is_deeper:
        return _Shift(cut, add, is_first_only=True)  # the code started right after the fence
    return best


def moved(old: Sequence[str], new: Sequence[str]) -> Lines:
    """Return lines shifted so that the first has the indentation of the old text."""
    add, cut = (indent_of(next(filter(has_text, lines), "")) for lines in (old, new))
    if add == cut or not all(line.startswith(cut) for line in new if has_text(line)):
        return tuple(new)
    return tuple(add + line[len(cut) :] if has_text(line) else line for line in new)


def _without_blank_ends(old: Lines, new: Lines) -> Lines:
    """Return a text without blank lines at ends where the old text had none."""
    first, last = 0, len(new)
    while first < last and not has_text(new[first]) and not (old and not has_text(old[0])):
        first += 1
    while last > first and not has_text(new[last - 1]) and not (old and not has_text(old[-1])):
        last -= 1
    return new[first:last]


def _with_blank_lines_around(above: Lines, old: Lines, new: Lines, below: Lines) -> Lines:
    """Return new code with the old number of blank lines before and after it."""
    before = len(above) - trim(above, 0, len(above))[1]
    after = trim(below, 0, len(below))[0]
    gap = before + len(old) + after
    head = gap - before if before < len(above) else 0
    tail = gap - after if after < len(below) else 0
    return ("",) * head + new + ("",) * tail


def _without_echo(old: Lines, new: Lines, below: Lines) -> Lines:
    """Return a text without final lines that repeat the lines after the region."""
    follow = [line.rstrip() for line in below[:MAX_ECHO] if has_text(line)]
    rows = [row for row, line in enumerate(new) if has_text(line)]
    texts = [new[row].rstrip() for row in rows]
    own = [line.rstrip() for line in old if has_text(line)]
    for count in range(min(len(texts), len(follow)), MIN_ECHO - 1, -1):
        tail = texts[-count:]
        if tail != follow[:count] or len("".join(tail)) < MIN_ECHO_CHARS:
            continue
        is_own = count == len(texts) or contains_run(own, tail)
        return new if is_own else new[: rows[-count]]
    return new


def _with_trailing_space(old: Lines, new: Lines) -> Lines:
    """Return a text with the trailing space of otherwise unchanged lines."""
    if not any(line != line.rstrip() for line in old):
        return new
    bare, now = [line.rstrip() for line in old], [line.rstrip() for line in new]
    if bare == now:
        return new  # nothing else has changed, so this is the requested change
    made: list[str] = []
    row = at = 0
    for change in diff.changes(bare, now):
        made += old[row : change.first_row]
        at += change.first_row - row
        made += new[at : at + len(change.new)]
        at += len(change.new)
        row = change.last_row
    return (*made, *old[row:])
