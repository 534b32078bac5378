"""Syntax trees of texts; the last ones are kept. Any thread."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, symbols
from lcursor.next_edit.records import Lines

if TYPE_CHECKING:
    from lcursor.code.grammars import Node, Tree

MAX_TREES: Final = 32
MAX_BLOCKS, MAX_ROWS = 60, 300
"""Changed rows in a text that is parsed from the tree of another one; or rows between changes."""
_recent: deque[tuple[str, Lines, Tree]] = deque(maxlen=MAX_TREES)
"""The last parsed texts, newest first; a similar text is parsed from the tree of one of them."""


def encode(text: str) -> bytes:
    """Return a text as the bytes that a tree is about."""
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=MAX_TREES)
def tree(language: str, lines: Lines) -> tuple[Node, bytes] | None:
    """Return the root of a text's syntax tree and its bytes; None without a grammar."""
    data = encode("\n".join(lines))
    found = grammars.parse_tree(language, data, _similar(language, lines))
    if found is None:
        return None
    _recent.appendleft((language, lines, found))
    return found.root_node, data


def errors(language: str, lines: Lines) -> int:
    """Return the number of syntax errors in a text; 0 without a grammar."""
    found = tree(language, lines)
    return symbols.error_count(found[0]) if found is not None else 0


def _similar(language: str, lines: Lines) -> Tree | None:
    """Return the tree of a recent text that shares most lines, with the positions of this one."""
    for known, old, known_tree in tuple(_recent):
        blocks = _changed_rows(old, lines) if known == language else None
        if blocks is None:
            continue
        found = known_tree.copy()
        start = row = 0
        for first, end, new_end in blocks:
            start += _size(lines[row:first])
            found.edit(
                start_byte=start,
                old_end_byte=start + _size(old[first:end]) - (end == len(old)),
                new_end_byte=start + _size(lines[first:new_end]) - (new_end == len(lines)),
                start_point=(first, 0),
                old_end_point=_point(old, end),
                new_end_point=_point(lines, new_end),
            )
            row = first
        return found
    return None


def _changed_rows(old: Lines, new: Lines) -> list[tuple[int, int, int]] | None:
    """Return the changed blocks of rows, as first row, old and new end; None if they are many."""
    if len(old) == len(new):
        rows = [row for row, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
        return [(row, row + 1, row + 1) for row in rows] if len(rows) <= MAX_BLOCKS else None
    least = min(len(old), len(new)) - 1
    first = 0
    while first < least and old[first] == new[first]:
        first += 1
    same = 0
    while same < least - first and old[-1 - same] == new[-1 - same]:
        same += 1
    end, new_end = len(old) - same, len(new) - same
    return [(first, end, new_end)] if max(end, new_end) - first <= MAX_ROWS else None


def _size(lines: Lines) -> int:
    """Return the bytes of some lines with their ends."""
    return len(encode("\n".join(lines))) + 1 if lines else 0


def _point(lines: Lines, row: int) -> tuple[int, int]:
    """Return the start of a row; for the row behind the last one, the end of the text."""
    return (row, 0) if row < len(lines) else (row - 1, len(encode(lines[-1])))
