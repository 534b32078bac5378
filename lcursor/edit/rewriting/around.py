"""What stands around rows of a text: definitions and statements, by its tree or by its looks.

Says what there is; `region.py` chooses. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from lcursor.code import structure
from lcursor.code.structure import CONTAINERS, Definition

if TYPE_CHECKING:
    from lcursor.code.grammars import Node


FUNCTIONS: Final = frozenset({"function", "method", "macro", "test", "trigger"})
BIG: Final = FUNCTIONS | CONTAINERS
"""Kinds that something can stand in; others are single statements, mostly."""
MAX_LEAD: Final = 200
MAX_ROWS: Final = 1500
"""Of a text without a grammar, looked at to either side."""
LEADING: Final = ("#", "//", "/*", "*", "--", "@", ";", "(*", "{-", "<!--", "%")
DIRECTIVES: Final = frozenset({"c", "cpp", "csharp"})
"""Languages in which `#` begins no comment."""
_BLOCK: Final = re.compile(
    r"(?:^|_)(?:block|body|statements|statement_list|suite|module|program|source_file|source|chunk"
    r"|translation_unit|document|stylesheet|declaration_list|compound_statement|section|then|else"
    r"|do|script|file|fragment|unit|members)$"
)
"""Types of nodes whose children are statements, in one language or another."""
_COMMENT: Final = re.compile(r"comment|decorator|attribute")


class Around(Protocol):
    """What stands around rows of a text."""

    def definitions(self, first: int, last: int) -> list[Definition]:
        """Return those that hold all of the rows, the smallest first."""

    def cover(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return the fewest whole statements that have all of the rows.

        Returns:
            Their rows, and whether all of them are definitions.
        """

    def blocks(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the statements that hold a row, the smallest first."""


class Tree:
    """By the tree of a grammar."""

    def __init__(self, lines: Sequence[str], language: str, root: Node, data: bytes) -> None:
        self._lines, self._language, self._root, self._data = lines, language, root, data
        self._starts: list[int] | None = None

    def definitions(self, first: int, last: int) -> list[Definition]:
        """Return those that hold all of the rows, the smallest first."""
        found = self._found(first, last)
        around = [item for item in found if item.first <= first and last <= item.end]
        return sorted(around, key=lambda item: (item.end - item.first, -item.first))

    def cover(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return the fewest whole statements, by the nodes that are children of a block."""
        start_byte, end_byte = self._bytes(first, last)
        node = self._root.named_descendant_for_byte_range(start_byte, max(end_byte, start_byte))
        while node is not None:
            run = [each for each in node.children if _touches(each, first, last)]
            if run and (node.parent is None or _BLOCK.search(node.type)):
                start, end = run[0].start_point[0], _end(run[-1])
                if start <= first and last <= end and self._is_whole(node, run):
                    break
                start, end = min(start, first), max(end, last)
                if node.parent is None:
                    break
            node = node.parent
        else:
            return first, last, False
        named = [each for each in run if each.is_named and not _COMMENT.search(each.type)]
        names = {(i.own_first, i.end) for i in self._found(start, end) if i.kind in BIG}
        is_defined = bool(named) and all(_is_one(each, names) for each in named)
        if is_defined:
            start = _lead(self._lines, self._language, start)
        return start, end, is_defined

    def blocks(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the statements that hold a row, the smallest first."""
        start_byte, end_byte = self._bytes(row, row + 1)
        node = self._root.named_descendant_for_byte_range(start_byte, max(end_byte, start_byte))
        while node is not None and node.parent is not None:
            if _BLOCK.search(node.parent.type) or node.parent.parent is None:
                start, end = node.start_point[0], _end(node)
                if start <= row < end:
                    yield start, end
            node = node.parent

    def _found(self, first: int, last: int) -> list[Definition]:
        """Return the definitions that have a part of rows, and what the rows lead to."""
        start_byte, end_byte = self._bytes(first, last)
        end_byte = max(end_byte, self._led(start_byte))
        found = structure.definitions_in_tree(
            self._language, self._root, self._data, self._lines, (start_byte, end_byte)
        )
        for item in found:
            item.first = self._first(item)
        return found

    def _led(self, byte: int) -> int:
        """Return where a definition has begun that what stands somewhere belongs to, -1 if none.

        A comment belongs to what follows, a decorator is in a node around the definition.
        """
        node = self._root.named_descendant_for_byte_range(byte, byte + 1)
        while node is not None and node.parent is not None and not _BLOCK.search(node.parent.type):
            node = node.parent
        while node is not None and _COMMENT.search(node.type):
            node = node.next_named_sibling
        if node is None or node.parent is None:
            return -1
        return (node.named_children[-1] if node.named_children else node).start_byte + 1

    def _bytes(self, first: int, last: int) -> tuple[int, int]:
        """Return where the text of rows begins and ends, without the margins."""
        if self._starts is None:
            starts = [0]
            at = -1
            while (at := self._data.find(b"\n", at + 1)) >= 0:
                starts.append(at + 1)
            self._starts = [*starts, len(self._data) + 1]
        begin, end = self._starts[first], self._starts[last] - 1
        text = self._data[begin:end]
        return begin + len(text) - len(text.lstrip()), max(begin + len(text.rstrip()), begin + 1)

    def _first(self, item: Definition) -> int:
        """Return a definition's first row, with the decorators and comments above it."""
        node = item.node
        while node is not None and (around := node.parent) is not None:
            is_more = around.end_byte != node.end_byte or around.parent is None
            if is_more or _BLOCK.search(around.type):
                break
            if item.own_first - around.start_point[0] > MAX_LEAD:
                break
            node = around
        row = node.start_point[0] if node is not None else item.own_first
        return _lead(self._lines, self._language, row)

    def _is_whole(self, node: Node, run: Sequence[Node]) -> bool:
        """Whether nothing else stands on the rows of a run of children."""
        children = node.children
        at, behind = children.index(run[0]), children.index(run[-1]) + 1
        before = children[at - 1] if at else None
        after = children[behind] if behind < len(children) else None
        start, end = run[0].start_point, run[-1].end_point
        if before is not None and before.end_point[0] == start[0] and before.is_named:
            return False
        if after is not None and after.start_point[0] == end[0] and after.is_named:
            return bool(_COMMENT.search(after.type))
        line = self._lines[start[0]].encode("utf-8", "replace")
        return not line[: start[1]].strip() or (node.parent is None)


class Rows:
    """By what rows look like."""

    def __init__(self, lines: Sequence[str], language: str, first: int, last: int) -> None:
        self._lines = lines
        self._top = max(first - MAX_ROWS, 0)
        near = lines[self._top : last + MAX_ROWS]
        self._found = structure.definitions_in_lines(language, near)
        for item in self._found:
            item.first += self._top
            item.own_first = item.first
            item.end += self._top
            item.first = _lead(lines, language, item.first)

    def definitions(self, first: int, last: int) -> list[Definition]:
        """Return those that hold all of the rows, the smallest first."""
        around = [item for item in self._found if item.first <= first and last <= item.end]
        return sorted(around, key=lambda item: item.end - item.first)

    def cover(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return the rows: nothing here knows where a statement ends."""
        rows = {(item.own_first, item.end) for item in self._found}
        start, end = first, last
        while start < end and self._lines[start].lstrip().startswith(LEADING):
            start += 1
        return first, last, (start, end) in rows

    def blocks(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield paragraphs of the indentation: rows, and what stands deeper below them."""
        yield paragraph(self._lines, row)
        margin = margin_of(self._lines[row])
        top = row
        while margin and top > self._top:
            top -= 1
            if not self._lines[top].strip() or margin_of(self._lines[top]) >= margin:
                continue
            margin, end = margin_of(self._lines[top]), top + 1
            while end < len(self._lines) and end - top < MAX_ROWS:
                text = self._lines[end]
                if text.strip() and margin_of(text) <= margin:
                    end += text.strip() in {"end", "}", "};", ")", "fi", "done", "esac"}
                    break
                end += 1
            yield trimmed(self._lines, top, end)


def _lead(lines: Sequence[str], language: str, row: int) -> int:
    """Return the first row of the comments right above a row, of the same margin."""
    margin, floor = margin_of(lines[row]), max(row - MAX_LEAD, 0)
    leading = LEADING if language not in DIRECTIVES else LEADING[1:]
    while row > floor:
        above = lines[row - 1].lstrip()
        is_level = margin_of(lines[row - 1]) == margin or above.startswith("*")
        if not above.startswith(leading) or not is_level:
            break
        row -= 1
    return row


def margin_of(line: str) -> int:
    """Return how far a line is indented, in characters."""
    return len(line) - len(line.lstrip())


def trimmed(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return rows without the blank ones at both ends."""
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


def paragraph(lines: Sequence[str], row: int) -> tuple[int, int]:
    """Return the rows around one up to the next blank ones."""
    first, last = row, row + 1
    while first > 0 and lines[first - 1].strip():
        first -= 1
    while last < len(lines) and lines[last].strip():
        last += 1
    return first, last


def _touches(node: Node, first: int, last: int) -> bool:
    return node.start_point[0] < last and _end(node) > first


def _end(node: Node) -> int:
    """Return the row behind a node."""
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def _is_one(node: Node, names: Iterable[tuple[int, int]]) -> bool:
    """Whether a node is a definition, or what stands around one: decorators, `export`."""
    return any(
        node.start_point[0] <= first and end == _end(node) and first - node.start_point[0] < 20
        for first, end in names
    )
