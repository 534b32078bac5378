"""The places where the documentation of a definition names it or its parameters. Any thread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lcursor.next_edit.names import Occurrence, ScopeNames

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

COMMENT: Final = re.compile(r"\s*(?:#|//|--|\*|/\*)")
COMPOUND: Final = re.compile(r"[^_]_[^_]|[a-z][A-Z]")
"""A name of several words."""
MAX_ROWS: Final = 40
"""Rows of a comment above a definition, or of a docstring, that are searched."""


def mentions(names: ScopeNames, declaration: Occurrence, name: str) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns, in characters, of a name in the documentation above or below.

    A parameter is found where it is documented as one: `@param name`, `:param name:`, or `name:`
    at the start of a line of a docstring. A definition whose name may be an ordinary word is found
    at the start of a line, or behind a backtick.
    """
    node = declaration.node.parent
    is_parameter = False
    while node is not None and not _is_definition(node):
        is_parameter = is_parameter or "parameter" in node.type
        node = node.parent
    if node is None:
        return
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    own = node.child_by_field_name("name")
    if is_parameter:
        documented = re.compile(rf"(?:[@:]param\s+(?:[\w.\[\]]+\s+)?){word}")
        plain = re.compile(rf"^\s*{word}(?=\s*(?:\([^)]*\))?:)")
        for row in _comment_rows(names, node):
            yield from _found(names, row, name, documented)
        for row in _docstring_rows(names, node):
            yield from _found(names, row, name, documented)
            yield from _found(names, row, name, plain)
    elif own is not None and own.start_byte <= declaration.node.start_byte < own.end_byte:
        is_word = not COMPOUND.search(name)
        pattern = re.compile(rf"^\W*{word}|`{word}" if is_word else word)
        for row in _comment_rows(names, node):
            yield from _found(names, row, name, pattern)


def _is_definition(node: Node) -> bool:
    return (
        node.child_by_field_name("body") is not None
        and (node.child_by_field_name("name") or node.child_by_field_name("parameters")) is not None
    )


def _found(
    names: ScopeNames, row: int, name: str, pattern: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(names.lines[row]):
        yield row, match.end() - len(name)


def _comment_rows(names: ScopeNames, node: Node) -> Iterator[int]:
    """Yield the rows of the comment directly above a definition, upwards."""
    row = node.start_point[0] - 1
    while row >= 0 and node.start_point[0] - row <= MAX_ROWS and COMMENT.match(names.lines[row]):
        yield row
        row -= 1


def _docstring_rows(names: ScopeNames, node: Node) -> Iterator[int]:
    """Yield the rows of the string at the start of a function's body."""
    body = node.child_by_field_name("body")
    first = body.named_children[0] if body is not None and body.named_children else None
    if first is None or first.type != "expression_statement":
        return
    if first.named_children and first.named_children[0].type == "string":
        last = min(first.end_point[0], first.start_point[0] + MAX_ROWS)
        yield from range(first.start_point[0], last + 1)
