"""Changes of one text carried over to what became of it: a merge of three texts, line by line.

Of the older text only marks of its lines are needed. A change whose lines were touched since is not
carried, nor one of which it is not sure which of several equal places it means: the two texts are
compared from their beginnings and from their ends, and both must come to the same. Pure; any
thread.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

from lcursor.edit.records import Change, Lines

MARK_CHARS: Final = 8
MOST_STEPS: Final = 800
"""Lines that may have come or gone since; of more it is not said what became of what."""
Rows = tuple[int, int]
Edit = tuple[int, int, int, int]
"""Rows of the one text and of the other, that take each other's place."""


def marks(lines: Sequence[str]) -> str:
    """Return what lines are known again by, eight characters for each."""
    known: dict[str, str] = {}
    for line in lines:
        if line not in known:
            data = line.encode("utf-8", "surrogatepass")
            known[line] = base64.b64encode(hashlib.blake2b(data, digest_size=6).digest()).decode()
    return "".join(known[line] for line in lines)


def split(text: str) -> list[str]:
    """Return the marks that `marks` joined."""
    return [text[at : at + MARK_CHARS] for at in range(0, len(text), MARK_CHARS)]


def applied(base: Sequence[str], changes: Sequence[Change]) -> tuple[list[str], list[Change]]:
    """Return the marks of a text after changes, and the changes that take them back.

    Args:
        base: marks of the text before.
        changes: of it, in the order of their rows.
    """
    after, back, row = list[str](), list[Change](), 0
    for change in changes:
        after += base[row : change.first_row]
        first = len(after)
        after += split(marks(change.new))
        back.append(Change(first, len(after), change.new, change.old))
        row = change.last_row
    after += base[row:]
    return after, back


def carry(old: Sequence[str], lines: Lines, changes: Sequence[Change]) -> list[Change | None]:
    """Return changes of an older text as changes of the text as it is.

    Args:
        old: marks of the older text.
        lines: what became of it.
        changes: of the older text.

    Returns:
        None for each that is not to be carried; one that somebody made already is of no lines.

    Cost: two differences of the whole text; 60 ms for 20,000 lines.
    """
    now = split(marks(lines))
    forth = _edits(old, now)
    turned = _edits(old[::-1], now[::-1])
    if forth is None or turned is None:
        return [None] * len(changes)
    size, end = len(old), len(now)
    back = [
        (size - last, size - first, end - to, end - start)
        for first, last, start, to in turned[::-1]
    ]
    found: list[Change | None] = []
    for change in changes:
        new = split(marks(change.new))
        rows = [_done(old, now, change, new, edits) for edits in (forth, back)]
        if rows[0] is not None and rows[1] is not None:
            found.append(Change(rows[0], rows[0], (), ()))
            continue
        one, other = (_place(change, edits) for edits in (forth, back))
        is_half_done = any(row is not None for row in rows)
        if is_half_done or one is None or other is None or _made(lines, change, one) is None:
            found.append(None)
        elif one == other or _made(lines, change, one) == _made(lines, change, other):
            found.append(Change(*one, change.old, change.new))
        else:
            found.append(None)
    return found


def _done(
    old: Sequence[str],
    now: Sequence[str],
    change: Change,
    new: Sequence[str],
    edits: Sequence[Edit],
) -> int | None:
    """Return the row where an edit made just a change; None where none did."""
    near = [edit for edit in edits if edit[0] <= change.last_row and edit[1] >= change.first_row]
    if not near:
        return None
    first, last = min(near[0][0], change.first_row), max(near[-1][1], change.last_row)
    start, to = near[0][2] - (near[0][0] - first), near[-1][3] + (last - near[-1][1])
    made = [*old[first : change.first_row], *new, *old[change.last_row : last]]
    return start if list(now[start:to]) == made else None


def _edits(old: Sequence[str], new: Sequence[str]) -> list[Edit] | None:
    """Return the fewest lines that differ, in order; None where there are too many.

    The fewest, and not what reads best: lines that were only added to are always found again.

    Source: E. Myers, An O(ND) Difference Algorithm and Its Variations.
    """
    first, last, to = 0, len(old), len(new)
    while first < min(last, to) and old[first] == new[first]:
        first += 1
    while last > first and to > first and old[last - 1] == new[to - 1]:
        last, to = last - 1, to - 1
    rows, others = last - first, to - first
    reach, trace = {1: 0}, list[dict[int, int]]()
    for step in range(min(rows + others, MOST_STEPS) + 1):
        trace.append(dict(reach))
        for diagonal in range(-step, step + 1, 2):
            x = reach.get(diagonal - 1, -1) + 1
            if diagonal == -step or (diagonal != step and x <= reach[diagonal + 1]):
                x = reach[diagonal + 1]
            y = x - diagonal
            while 0 <= x < rows and 0 <= y < others and old[first + x] == new[first + y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            if x >= rows and y >= others:
                return _walked(trace, rows, others, first)
    return None


def _walked(trace: Sequence[dict[int, int]], x: int, y: int, first: int) -> list[Edit]:
    """Return the edits of a path, which is followed from its end."""
    edits = list[Edit]()
    for step in range(len(trace) - 1, 0, -1):
        reach, diagonal = trace[step], x - y
        is_added = diagonal == -step or (
            diagonal != step and reach[diagonal - 1] < reach[diagonal + 1]
        )
        before = diagonal + 1 if is_added else diagonal - 1
        x, y = reach[before], reach[before] - before
        edit = (first + x, first + x + (not is_added), first + y, first + y + is_added)
        if edits and (edit[1], edit[3]) == (edits[-1][0], edits[-1][2]):
            edit = (edit[0], edits[-1][1], edit[2], edits[-1][3])
            edits.pop()
        edits.append(edit)
    return edits[::-1]


def _place(change: Change, edits: Sequence[Edit]) -> Rows | None:
    """Return the rows of a change after some edits; None where one of them touched it."""
    by = 0
    for first, last, start, to in edits:
        is_here = (first, last) == (change.last_row, change.first_row)
        if last <= change.first_row and not is_here:
            by += (to - start) - (last - first)
        elif first < change.last_row:
            return None
    return change.first_row + by, change.last_row + by


def _made(lines: Lines, change: Change, rows: Rows) -> Lines | None:
    """Return a text with a change made; None where what it replaces is not there."""
    first, last = rows
    if lines[first:last] != change.old:
        return None
    return (*lines[:first], *change.new, *lines[last:])
