"""Where hunks are in a text, where only they are known and not the text that they were made in.

A place is found by the lines themselves and by all that was around them, and only where it is the
one place; never by the number of a row alone. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.edit.records import Lines, digest
from lcursor.edit.turns.turn import CONTEXT_ROWS, Hunk, hunk_at


def made_exactly(lines: Lines, hunks: Sequence[Hunk], *, want: str = "") -> Lines | None:
    """Return a text with hunks made at the rows where they were made, in their order.

    Args:
        lines: of the text.
        hunks: `old` is what is there, `new` what shall be.
        want: digest of what must come out; "" where that does not matter.

    Returns:
        None where something else is there or comes out.
    """
    made = list(lines)
    for hunk in hunks:
        end = hunk.row + len(hunk.old)
        if not 0 <= hunk.row <= end <= len(made) or tuple(made[hunk.row : end]) != hunk.old:
            return None
        made[hunk.row : end] = hunk.new
    return None if want and digest(made) != want else tuple(made)


def made(lines: Lines, hunks: Sequence[Hunk]) -> tuple[Lines, list[Hunk]] | None:
    """Return a text with hunks made where they belong now, and the hunks as they were found.

    Args:
        lines: of the text.
        hunks: `old` is what is there, `new` what shall be; in the order of their making.

    Returns:
        None where the place of one is not sure.
    """
    text, found = list(lines), list[Hunk]()
    for hunk in hunks:
        rows = places(text, hunk.old, hunk.above, hunk.below)
        if len(rows) != 1:
            return None
        row = rows[0]
        text[row : row + len(hunk.old)] = hunk.new
        found.append(hunk_at(text, row, hunk.old, hunk.new))
    return tuple(text), found


def places(lines: Sequence[str], block: Lines, above: Lines, below: Lines) -> list[int]:
    """Return the rows at which a block stands with all that was around it; one is a sure place.

    Args:
        lines: of the text.
        block: lines that are looked for; none where something was taken away.
        above: up to three lines before it, as they were; fewer where the text began there.
        below: lines after it.
    """
    wanted = (*above, *block, *below)
    if not any(letter.isalnum() for line in wanted for letter in line):
        return []
    size = len(wanted)
    return [
        row + len(above)
        for row in range(len(lines) - size + 1)
        if lines[row] == wanted[0]
        and tuple(lines[row : row + size]) == wanted
        and (len(above) == CONTEXT_ROWS or row == 0)
        and (len(below) == CONTEXT_ROWS or row + size == len(lines))
    ]
