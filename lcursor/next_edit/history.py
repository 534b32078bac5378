"""Earlier texts of a file, and where their rows are now. Pure; any thread."""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.next_edit.records import Edit, Lines


def text_before(lines: Lines, edits: Sequence[Edit]) -> Lines | None:
    """Return the text of a file before some edits of it; None if they do not fit.

    Args:
        lines: the current text.
        edits: all edits of the file since then, oldest first.
    """
    for edit in reversed(edits):
        end = edit.row + len(edit.new)
        if lines[edit.row : end] != edit.new:
            return None
        lines = lines[: edit.row] + edit.old + lines[end:]
    return lines


def current_row(row: int, edits: Sequence[Edit]) -> int | None:
    """Return the row of a line after some edits; None if it was replaced with other lines.

    A row of an edit that kept the number of lines is found again, with its new text.
    """
    for edit in edits:
        end = edit.row + len(edit.old)
        if row >= end:
            row += len(edit.new) - len(edit.old)
        elif row >= edit.row and len(edit.old) != len(edit.new):
            return None
    return row


def original_row(row: int, edits: Sequence[Edit]) -> int | None:
    """Return the row of a line before some edits; None if it was replaced with other lines."""
    for edit in reversed(edits):
        end = edit.row + len(edit.new)
        if row >= end:
            row += len(edit.old) - len(edit.new)
        elif row >= edit.row and len(edit.old) != len(edit.new):
            return None
    return row


def without_undone(edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits without those that a later edit reverted, and without the reverting ones."""
    found: list[Edit] = []
    for edit in edits:
        inverse = (edit.path, edit.row, edit.new, edit.old)
        if found and inverse == (found[-1].path, found[-1].row, found[-1].old, found[-1].new):
            found.pop()
        else:
            found.append(edit)
    return found
