"""The nested definitions in a text.

From a syntax tree, or without one from rows that look like definitions. Pure; any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, line_definitions

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

CLASSES: Final = frozenset({
    "class", "enum", "extension", "impl", "interface", "object", "protocol", "struct", "trait",
    "union",
})  # fmt: skip
"""Kinds whose functions are methods."""
CONTAINERS: Final = CLASSES | {"module"}
"""Kinds with members and an outline."""
HAVE_CLAUSES: Final = frozenset({"elixir", "haskell"})
"""Languages in which consecutive clauses form one function."""

MAX_SCOPE_CHARS: Final = 200
SCOPE: Final = " > "
SCOPE_SHARE: Final = 0.8
"""Share of some rows that a definition must contain to be their scope."""
TOP: Final = -1

_LEADING: Final = ("#", "//", "/*", "*", "--", "@", ";", "[", "(*", "{-", "<!--", "%")
"""Starts of comments, decorators and attributes, which belong to the definition below them."""


@dataclass(slots=True)
class Definition:
    """A definition and its rows."""

    name: str
    kind: str
    first: int
    """First row, including the comment and decorators above it."""
    own_first: int
    name_row: int
    end: int
    index: int
    """Its position in the list of all definitions."""
    parent: int
    """Position of the definition that contains it, or TOP."""
    scope: str
    node: Node | None = None

    @property
    def path(self) -> str:
        """Its name after those of the definitions that contain it."""
        return f"{self.scope}{SCOPE}{self.name}" if self.scope else self.name


def definitions_in_tree(
    language: str,
    root: Node,
    data: bytes,
    lines: Sequence[str],
    within: tuple[int, int] | None = None,
) -> list[Definition]:
    """Return the definitions in a syntax tree, in source order.

    Args:
        within: byte range that a definition must overlap; None is everywhere.
    """
    has_clauses = language in HAVE_CLAUSES
    definitions: list[Definition] = []
    around: list[tuple[int, int, int]] = []  # index, start and end in bytes
    before: dict[int, Definition] = {}  # the last child of each
    for node, name, row, kind, owner in grammars.definitions(language, root, data, within):
        if not name:
            continue
        start, stop = node.start_byte, node.end_byte
        # One node may define several names: `int a, b;`.
        while around and (around[-1][2] <= start or around[-1][1:] == (start, stop)):
            around.pop()
        parent = around[-1][0] if around else TOP
        outer = definitions[parent] if around else None
        own_kind = _kind(kind, name, outer, owner)
        first = node.start_point[0]
        stop_row, stop_column = node.end_point
        end = min(stop_row + 1 if stop_column or stop_row == first else stop_row, len(lines))
        last = before.get(parent)
        if has_clauses and last and (last.name, last.kind) == (name, own_kind):
            last.end = end
            continue
        names = (outer.path if outer else "", owner)
        scope = SCOPE.join(filter(None, names))[-MAX_SCOPE_CHARS:]
        floor = last.end if last else outer.own_first + 1 if outer else 0
        lead = _lead(node, first, floor, lines)
        index = len(definitions)
        item = Definition(name, own_kind, lead, first, row, end, index, parent, scope, node)
        before[parent] = item
        definitions.append(item)
        around.append((index, start, stop))
    return definitions


def definitions_in_lines(language: str, lines: Sequence[str]) -> list[Definition]:
    """Return the likely definitions in a text without a grammar, all at the top level."""
    return [
        Definition(name, kind, row, row, row, end, index, TOP, "")
        for index, (name, kind, row, end) in enumerate(
            line_definitions.definitions(language, lines)
        )
    ]


def group_by_parent(found: Sequence[Definition]) -> dict[int, list[Definition]]:
    """Return the direct children of each definition, by its index, in source order."""
    inside: dict[int, list[Definition]] = {}
    for item in found:
        inside.setdefault(item.parent, []).append(item)
    return inside


def scope_at(
    inside: Mapping[int, Sequence[Definition]], sums: Sequence[int], first: int, end: int
) -> str:
    """Return the path of the innermost definition that contains most of some rows; "" for none.

    Args:
        inside: from `group_by_parent`.
        sums: non-blank characters before each row.
    """
    enough = SCOPE_SHARE * (sums[end] - sums[first])
    index, scope = TOP, ""
    while True:
        # In source order, only the last definition that starts before the rows can contain them.
        within = inside.get(index, ())
        at = bisect_right(within, first, key=lambda item: item.first) - 1
        for item in within[max(at, 0) :]:
            if item.first >= end:
                return scope
            weight = sums[min(item.end, end)] - sums[max(item.first, first)]
            if weight >= enough:
                index, scope = item.index, item.path
                break
        else:
            return scope


def signature_end(item: Definition, lines: Sequence[str]) -> int:
    """Return the row after a definition's signature."""
    body = item.node.child_by_field_name("body") if item.node else None
    if body is None:
        return item.name_row + 1
    row, column = body.start_point
    head = lines[row].encode("utf-8", "replace")[:column].strip()
    return row + 1 if head else row


def _kind(kind: str, name: str, outer: Definition | None, owner: str) -> str:
    if kind == "function" and (owner or (outer and outer.kind in CLASSES)):
        return "method"
    is_value = kind in {"variable", "field"}
    return "constant" if is_value and len(name) > 1 and name.isupper() else kind


def _lead(node: Node, first: int, floor: int, lines: Sequence[str]) -> int:
    """Return the first row of the comments and decorators directly above a definition.

    The result is at least `floor`, so that definitions stay in order.
    """
    row = first
    while row > floor and lines[row - 1].lstrip().startswith(_LEADING):
        row -= 1
    if row == first > floor and lines[row - 1].lstrip().startswith((")", "]")):
        parent = node.parent  # a multi-line decorator
        if parent is not None and parent.type == "decorated_definition":
            row = max(floor, parent.start_point[0])
    return row
