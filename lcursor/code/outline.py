"""The outline of a class: its text without the bodies of its members. Pure; any thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MAX_CHARS: Final = 1500
"""Non-blank characters of an outline."""
MAX_OWN_CHARS: Final = 500
"""Of these, between the members: documentation, fields."""
LEFT_OUT: Final = "…"


def outline(
    lines: Sequence[str], first: int, end: int, members: Iterable[tuple[int, int, int]]
) -> str:
    """Return the rows of a class without the bodies of its members.

    Args:
        members: first row, row after the signature, row after the end of each, in order.
    """
    kept: list[str] = []
    total = own = 0

    def keep(row: int, is_own: bool) -> bool:
        """Add a row; return False if the limit is reached."""
        nonlocal total, own
        line = lines[row]
        size = len(line) - line.count(" ")
        if total + size > MAX_CHARS or (is_own and own + size > MAX_OWN_CHARS):
            return False
        if size or (kept and kept[-1].strip()):  # one empty row is enough
            kept.append(line)
        total += size
        own += size if is_own else 0
        return True

    def leave(row: int) -> None:
        nonlocal total
        if total < MAX_CHARS and (not kept or kept[-1].strip() != LEFT_OUT):
            line = lines[row]
            kept.append(line[: len(line) - len(line.lstrip())] + LEFT_OUT)
            total += 1

    def between(start: int, stop: int) -> None:
        for row in range(start, stop):
            if not keep(row, is_own=row > first):
                leave(row)
                return

    row = first
    for start, signature_end, stop in members:
        if start < row:  # on a row that was dealt with
            continue
        between(row, start)
        for at in range(start, min(signature_end, stop)):
            if not keep(at, is_own=False):
                leave(at)
                return "\n".join(kept)
        if signature_end < stop:
            leave(signature_end)
        row = max(stop, start + 1)
    between(row, end)
    return "\n".join(kept)
