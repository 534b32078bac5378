"""Syntax trees of texts; the last ones are kept. Any thread."""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, symbols
from lcursor.next_edit.records import Lines

if TYPE_CHECKING:
    from lcursor.code.grammars import Node, Tree

MAX_TREES: Final = 16
_recent: deque[tuple[str, Lines, Tree, bytes]] = deque(maxlen=MAX_TREES)
"""The last parsed texts, newest first; a similar text is parsed from the tree of one of them."""


def encode(text: str) -> bytes:
    """Return a text as the bytes that a tree is about."""
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=MAX_TREES)
def tree(language: str, lines: Lines) -> tuple[Node, bytes] | None:
    """Return the root of a text's syntax tree and its bytes; None without a grammar."""
    data = encode("\n".join(lines))
    found = grammars.parse_tree(language, data, _similar(language, lines, data))
    if found is None:
        return None
    _recent.appendleft((language, lines, found, data))
    return found.root_node, data


def errors(language: str, lines: Lines) -> int:
    """Return the number of syntax errors in a text; 0 without a grammar."""
    found = tree(language, lines)
    return symbols.error_count(found[0]) if found is not None else 0


def _similar(language: str, lines: Lines, data: bytes) -> Tree | None:
    """Return the tree of a recent text that shares most lines, with the positions of this one."""
    for known, old, known_tree, old_data in tuple(_recent):
        least = min(len(old), len(lines)) - 1
        if known != language or abs(len(old) - len(lines)) > least // 2:
            continue
        first = 0
        while first < least and old[first] == lines[first]:
            first += 1
        same = 0
        while same < least - first and old[-1 - same] == lines[-1 - same]:
            same += 1
        if first + same < least // 2:
            continue
        start = len(encode("\n".join((*lines[:first], ""))))
        rest = len(encode("\n".join(("", *lines[len(lines) - same :])))) - 1 if same else 0
        found = known_tree.copy()
        found.edit(
            start_byte=start,
            old_end_byte=len(old_data) - rest,
            new_end_byte=len(data) - rest,
            start_point=(first, 0),
            old_end_point=_end_point(old, same),
            new_end_point=_end_point(lines, same),
        )
        return found
    return None


def _end_point(lines: Lines, same: int) -> tuple[int, int]:
    """Return the row and byte column before the last lines of a text."""
    return (len(lines) - same, 0) if same else (len(lines) - 1, len(encode(lines[-1])))
