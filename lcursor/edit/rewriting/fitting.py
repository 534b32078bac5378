"""A region's new text, as it fits into the file: what models do to the edges of a text is undone.

They move all of it to the left, drop blanks at the ends of lines, and write once more what stands
above or below. Where it is not certain that they did, the text stays as it came. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lcursor.edit import diff
from lcursor.edit.records import Lines
from lcursor.edit.rewriting.task import Task

MIN_ECHO: Final = 2
"""Lines with something in them that must be written again before they are taken for an echo."""
MIN_ECHO_CHARS: Final = 20


class Fitter:
    """Fits one region's new text, whole or as it comes.

    Args:
        task: what was asked for.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._held: list[str] = []
        self._shift: _Shift | None = None

    def more(self, lines: Lines) -> Lines:
        """Return lines that have come, as they will look; the first are held back a little.

        Where the text belongs is seen from its second line at the earliest.
        """
        if self._shift is None:
            self._held += lines
            if sum(bool(line.strip()) for line in self._held) < 3:
                return ()
            self._shift = _best(self._task.old, self._held)
            lines, self._held = tuple(self._held), []
        return tuple(self._shift.of(row, line) for row, line in enumerate(lines))

    def whole(self, new: Lines) -> Lines:
        """Return the whole text as it fits."""
        old, task = self._task.old, self._task
        new = _without_blank_ends(old, new)
        below = task.lines[task.region.last_row :]
        above = task.lines[: task.region.first_row]
        new = _without_echo(old, new, below)
        new = _without_echo(old[::-1], new[::-1], above[::-1])[::-1]
        new = _without_blank_ends(old, new)
        if "".join(new).strip() and not "".join(old).strip():
            return _apart(above, old, new, below)
        shift = _best(old, new)
        if shift.from_ != shift.to:
            first = next((row for row, line in enumerate(new) if line.strip()), 0)
            new = tuple(shift.of(row - first, line) for row, line in enumerate(new))
        return _with_line_ends(old, new)


class _Shift:
    """Moves lines from one margin to another."""

    def __init__(self, from_: str, to: str, *, is_first_only: bool = False) -> None:
        self.from_, self.to, self._is_first_only = from_, to, is_first_only

    def of(self, row: int, line: str) -> str:
        """Return a line as it is after it; blank ones stay."""
        if (self._is_first_only and row > 0) or not line.strip():
            return line
        return self.to + line[len(self.from_) :] if line.startswith(self.from_) else line


def _best(old: Sequence[str], new: Sequence[str]) -> _Shift:
    """Return the move after which most lines are lines of the old text; none where that is none."""
    first_old = next((line for line in old if line.strip()), None)
    first_new = next((line for line in new if line.strip()), None)
    none = _Shift("", "")
    if first_old is None or first_new is None:
        return none
    to, from_ = _margin(first_old), _margin(first_new)
    if to == from_:
        return none
    known = set(old)
    rows = [line for line in new if line.strip()]
    best, most = none, sum(line in known for line in rows)
    for shift in (_Shift(from_, to), _Shift(from_, to, is_first_only=True)):
        if any(not line.startswith(from_) for line in rows) and not shift._is_first_only:
            continue
        hits = sum(shift.of(row, line) in known for row, line in enumerate(rows))
        if hits > most:
            best, most = shift, hits
    is_deeper = len(from_) < len(to) and all(_margin(line).startswith(to) for line in rows[1:])
    if best is none and most and is_deeper:
        return _Shift(from_, to, is_first_only=True)  # it began right behind the fence
    return best


def _without_blank_ends(old: Lines, new: Lines) -> Lines:
    """Return a text without blank lines at its ends where the old one had none."""
    first, last = 0, len(new)
    while first < last and not new[first].strip() and not (old and not old[0].strip()):
        first += 1
    while last > first and not new[last - 1].strip() and not (old and not old[-1].strip()):
        last -= 1
    return new[first:last]


def _apart(above: Lines, old: Lines, new: Lines, below: Lines) -> Lines:
    """Return new code with as many blank lines to both sides as there were where it goes."""
    before, after = _blanks(above[::-1]), _blanks(below)
    gap = before + len(old) + after
    head = gap - before if before < len(above) else 0
    tail = gap - after if after < len(below) else 0
    return ("",) * head + new + ("",) * tail


def _blanks(lines: Lines) -> int:
    """Return how many blank lines a text begins with."""
    return next((row for row, line in enumerate(lines) if line.strip()), len(lines))


def _without_echo(old: Lines, new: Lines, below: Lines) -> Lines:
    """Return a text without the lines at its end that are those which follow the region."""
    follow = list(_some(below[:400]))
    if not follow:
        return new
    rows = [row for row, line in enumerate(new) if line.strip()]
    texts = [new[row].rstrip() for row in rows]
    own = [line.rstrip() for line in old if line.strip()]
    for count in range(min(len(texts), len(follow)), MIN_ECHO - 1, -1):
        tail = texts[-count:]
        if tail != follow[:count] or len("".join(tail)) < MIN_ECHO_CHARS:
            continue
        if count == len(texts) or _has(own, tail):  # it was, or may be, the region's own
            return new
        return new[: rows[-count]]
    return new


def _some(lines: Lines) -> Iterator[str]:
    return (line.rstrip() for line in lines if line.strip())


def _has(lines: Sequence[str], part: Sequence[str]) -> bool:
    return any(
        list(lines[row : row + len(part)]) == list(part)
        for row in range(len(lines) - len(part) + 1)
    )


def _with_line_ends(old: Lines, new: Lines) -> Lines:
    """Return a text with the blanks at the ends of those lines that are otherwise as they were."""
    if not any(line != line.rstrip() for line in old):
        return new
    bare, now = [line.rstrip() for line in old], [line.rstrip() for line in new]
    if bare == now:
        return new  # nothing else was changed, so this is what was asked for
    made: list[str] = []
    row = at = 0
    for change in diff.changes(bare, now):
        kept = change.first_row - row
        made += old[row : change.first_row]
        at += kept
        made += new[at : at + len(change.new)]
        at += len(change.new)
        row = change.last_row
    return (*made, *old[row:])


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
