"""Syntax trees of texts; the last ones are kept. Any thread."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars
from lcursor.next_edit.records import Lines

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

MAX_TREES: Final = 16


def encode(text: str) -> bytes:
    """Return a text as the bytes that a tree is about."""
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=MAX_TREES)
def tree(language: str, lines: Lines) -> tuple[Node, bytes] | None:
    """Return the root of a text's syntax tree and its bytes; None without a grammar."""
    data = encode("\n".join(lines))
    root = grammars.parse(language, data)
    return (root, data) if root is not None else None
