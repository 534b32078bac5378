"""The outline of a class: its text without the bodies of its members. Pure; any thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MAX_CHARS: Final = 1500
"""Maximum non-blank characters of an outline."""
MAX_OWN_CHARS: Final = 500
"""Maximum of these between the members: documentation, fields."""
ELISION: Final = "…"


def outline(
    lines: Sequence[str], first: int, end: int, members: Iterable[tuple[int, int, int]]
) -> str:
    """Return the rows of a class without the bodies of its members.

    Args:
        members: for each, in order: first row, row after the signature, row after the end.
    """
    result: list[str] = []
    total = own_size = 0

    def add(row: int, is_own: bool) -> bool:
        """Add a row; return False if the limit is reached."""
        nonlocal total, own_size
        line = lines[row]
        size = len(line) - line.count(" ")
        if total + size > MAX_CHARS or (is_own and own_size + size > MAX_OWN_CHARS):
            return False
        if size or (result and result[-1].strip()):  # never two empty rows in a row
            result.append(line)
        total += size
        own_size += size if is_own else 0
        return True

    def omit(row: int) -> None:
        nonlocal total
        if total < MAX_CHARS and (not result or result[-1].strip() != ELISION):
            line = lines[row]
            result.append(line[: len(line) - len(line.lstrip())] + ELISION)
            total += 1

    def add_between(start: int, stop: int) -> None:
        for row in range(start, stop):
            if not add(row, is_own=row > first):
                omit(row)
                return

    row = first
    for start, signature_end, stop in members:
        if start < row:  # overlaps a member that was added
            continue
        add_between(row, start)
        for at in range(start, min(signature_end, stop)):
            if not add(at, is_own=False):
                omit(at)
                return "\n".join(result)
        if signature_end < stop:
            omit(signature_end)
        row = max(stop, start + 1)
    add_between(row, end)
    return "\n".join(result)
