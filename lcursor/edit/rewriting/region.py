"""Choose the rows that a model rewrites for a selection or a cursor: whole syntax nodes.

Selected rows are always included. Without a grammar, likely definitions, indentation and blank
lines replace syntax nodes. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from lcursor.changes.lines import has_text, indent_of, trim
from lcursor.changes.records import Region
from lcursor.code import grammars, structure
from lcursor.code.structure import CONTAINERS, Definition

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

FUNCTIONS: Final = frozenset({"function", "method", "macro", "test", "trigger"})
BLOCK_KINDS: Final = FUNCTIONS | CONTAINERS
"""Kinds of definitions that contain others; the rest are mostly single statements."""
CONTAINER_SHARE: Final = 3
"""A class is chosen for a few of its rows only if its size is at most this part of the budget (a
divisor), because its other methods should not be rewritten."""
MAX_REGION_TOKENS: Final = 1500
"""Maximum size of a region to rewrite."""
MAX_CHARS_PER_TOKEN: Final = 16
"""A text with more characters exceeds the budget, without counting tokens."""
MAX_LEAD: Final = 200
MAX_DECORATOR_ROWS: Final = 20
MAX_ROWS: Final = 1500
"""Maximum rows on either side that are examined without a grammar."""
LEADING: Final = ("#", "//", "/*", "*", "--", "@", ";", "(*", "{-", "<!--", "%")
DIRECTIVES: Final = frozenset({"c", "cpp", "csharp"})
"""Languages in which `#` does not start a comment."""
CLOSING: Final = frozenset({"end", "}", "};", ")", "fi", "done", "esac"})
_BLOCK: Final = re.compile(
    r"(?:^|_)(?:block|body|statements|statement_list|suite|module|program|source_file|source|chunk"
    r"|translation_unit|document|stylesheet|declaration_list|compound_statement|section|then|else"
    r"|do|script|file|fragment|unit|members)$"
)
"""Types of nodes, of all languages, whose children are statements."""
_COMMENT: Final = re.compile(r"comment|decorator|attribute")
Fits = Callable[[int, int, int], bool]
"""Returns whether a range of rows has at most the budget divided by a number."""


def grow(
    lines: Sequence[str],
    language: str,
    first_row: int,
    last_row: int,
    budget_tokens: int,
    count: Callable[[str], int],
) -> Region:
    """Return the region for a selection, or for a cursor if `last_row` is `first_row`.

    A selection may be larger than the budget. Cost: parsing the text, 3 MB/s, and a millisecond.
    """
    if not any(map(has_text, lines)):
        return Region(0, len(lines), "empty file")
    first_row = min(max(first_row, 0), len(lines))
    last_row = min(max(last_row, first_row), len(lines))
    first, last = trim(lines, first_row, last_row)

    def fits(start: int, end: int, share: int = 1) -> bool:
        text, limit = "\n".join(lines[start:end]), budget_tokens // share
        if len(text) <= limit:
            return True
        return len(text) <= limit * MAX_CHARS_PER_TOKEN and count(text) <= limit

    root, data = None, b""
    if language in grammars.LANGUAGES:
        data = "\n".join(lines).encode("utf-8", "replace")
        root = grammars.parse(language, data)
    syntax: _Tree | _Rows
    if root is None:
        syntax = _Rows(lines, language, max(first_row - 1, 0), last_row + 1)
    else:
        syntax = _Tree(lines, language, root, data)
    if first < last:
        return _for_selection(first, last, syntax, fits)
    return _for_cursor(lines, min(first_row, len(lines) - 1), syntax, fits)


def _for_selection(first: int, last: int, syntax: _Tree | _Rows, fits: Fits) -> Region:
    start, end, is_defined = syntax.cover(first, last)
    start, end = min(start, first), max(end, last)
    holders = syntax.definitions(first, last)
    if is_defined and fits(start, end, 1):
        own = [i for i in holders if (i.first, i.end) == (start, end) or i.own_first == start]
        return Region(start, end, _name(own[0]) if own else _row_numbers(start, end))
    for item in holders:
        share = 1 if item.kind not in CONTAINERS else CONTAINER_SHARE
        is_small = item.kind not in BLOCK_KINDS and item.parent != structure.TOP
        if not is_small and fits(item.first, item.end, share):
            return Region(min(item.first, first), max(item.end, last), _name(item))
        if item.kind in FUNCTIONS:
            break
    if not fits(start, end, 1):
        start, end = first, last
    return Region(start, end, _row_numbers(start, end))


def _for_cursor(lines: Sequence[str], row: int, syntax: _Tree | _Rows, fits: Fits) -> Region:
    holders = syntax.definitions(row, row + 1)
    functions = [item for item in holders if item.kind in FUNCTIONS]
    for item in holders:
        is_local = any(
            each.own_first < item.own_first and item.end <= each.end for each in functions
        )
        if (item.kind in BLOCK_KINDS or not is_local) and fits(item.first, item.end, 1):
            return Region(item.first, item.end, _name(item))
    if not has_text(lines[row]):
        after = next(filter(has_text, lines[row:]), "")
        if not holders and not indent_of(after):
            return Region(row, row, f"new code at line {row + 1}")
        rows = (at for at, line in enumerate(lines) if has_text(line))
        row = min(rows, key=lambda at: (abs(at - row), at))
    best = row, row + 1
    for first, last in syntax.blocks(row):
        if not fits(first, last, 1):
            break
        best = first, last
    if best[1] - best[0] <= 1:
        first, last = _paragraph(lines, row)
        if fits(first, last, 1):
            best = first, last
    return Region(*best, _row_numbers(*best))


def _name(item: Definition) -> str:
    return f"{item.kind} {item.name}"


def _row_numbers(first: int, last: int) -> str:
    return f"line {first + 1}" if last - first == 1 else f"lines {first + 1} to {last}"


class _Tree:
    """Definitions and statements from a syntax tree."""

    def __init__(self, lines: Sequence[str], language: str, root: Node, data: bytes) -> None:
        self._lines, self._language, self._root, self._data = lines, language, root, data
        sizes = (len(line) + 1 for line in data.split(b"\n"))
        self._starts = [0, *accumulate(sizes)]

    def definitions(self, first: int, last: int) -> list[Definition]:
        """Return the definitions that contain all of the rows, the smallest first."""
        found = self._definitions(first, last)
        around = [item for item in found if item.first <= first and last <= item.end]
        return sorted(around, key=lambda item: (item.end - item.first, -item.first))

    def cover(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return the rows of the fewest covering statements, and whether all are definitions."""
        node = self._node(*self._bytes(first, last))
        while node is not None:
            run = [each for each in node.children if _touches(each, first, last)]
            if run and (node.parent is None or _BLOCK.search(node.type)):
                start, end = run[0].start_point[0], _end(run[-1])
                if start <= first and last <= end and self._is_alone(node, run):
                    break
                start, end = min(start, first), max(end, last)
                if node.parent is None:
                    break
            node = node.parent
        else:
            return first, last, False
        named = [each for each in run if each.is_named and not _COMMENT.search(each.type)]
        rows = {(i.own_first, i.end) for i in self._definitions(start, end)
                if i.kind in BLOCK_KINDS}  # fmt: skip
        is_defined = bool(named) and all(_is_definition(each, rows) for each in named)
        if is_defined:
            start = _lead(self._lines, self._language, start)
        return start, end, is_defined

    def blocks(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield the statements that contain a row, the smallest first."""
        node = self._node(*self._bytes(row, row + 1))
        while node is not None and node.parent is not None:
            if _BLOCK.search(node.parent.type) or node.parent.parent is None:
                start, end = node.start_point[0], _end(node)
                if start <= row < end:
                    yield start, end
            node = node.parent

    def _definitions(self, first: int, last: int) -> list[Definition]:
        """Return the definitions that overlap or contain some rows."""
        start, end = self._bytes(first, last)
        within = start, max(end, self._owner(start))
        found = structure.definitions_in_tree(
            self._language, self._root, self._data, self._lines, within
        )
        for item in found:
            item.first = self._first_row(item)
        return found

    def _owner(self, byte: int) -> int:
        """Return a byte of the definition that a comment or decorator belongs to; -1 for none."""
        node = self._root.named_descendant_for_byte_range(byte, byte + 1)
        while node is not None and node.parent is not None and not _BLOCK.search(node.parent.type):
            node = node.parent
        while node is not None and _COMMENT.search(node.type):
            node = node.next_named_sibling
        if node is None or node.parent is None:
            return -1
        return (node.named_children[-1] if node.named_children else node).start_byte + 1

    def _bytes(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of rows, without surrounding space."""
        begin = self._starts[first]
        text = self._data[begin : self._starts[last] - 1]
        return begin + len(text) - len(text.lstrip()), max(begin + len(text.rstrip()), begin + 1)

    def _node(self, start: int, end: int) -> Node | None:
        return self._root.named_descendant_for_byte_range(start, max(end, start))

    def _first_row(self, item: Definition) -> int:
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

    def _is_alone(self, node: Node, run: Sequence[Node]) -> bool:
        """Return whether nothing else is on the rows of some children."""
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
        return not line[: start[1]].strip() or node.parent is None


class _Rows:
    """Definitions and statements guessed from lines."""

    def __init__(self, lines: Sequence[str], language: str, first: int, last: int) -> None:
        self._lines = lines
        self._top = max(first - MAX_ROWS, 0)
        near = lines[self._top : last + MAX_ROWS]
        self._found = structure.definitions_in_lines(language, near)
        for item in self._found:
            item.own_first = item.first + self._top
            item.end += self._top
            item.first = _lead(lines, language, item.own_first)

    def definitions(self, first: int, last: int) -> list[Definition]:
        """Return the definitions that contain all of the rows, the smallest first."""
        around = [item for item in self._found if item.first <= first and last <= item.end]
        return sorted(around, key=lambda item: item.end - item.first)

    def cover(self, first: int, last: int) -> tuple[int, int, bool]:
        """Return the same rows, because without a grammar the statements are unknown."""
        rows = {(item.own_first, item.end) for item in self._found}
        start = first
        while start < last and self._lines[start].lstrip().startswith(LEADING):
            start += 1
        return first, last, (start, last) in rows

    def blocks(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield paragraphs by indentation: rows with the deeper ones below them."""
        yield _paragraph(self._lines, row)
        margin, top = len(indent_of(self._lines[row])), row
        while margin and top > self._top:
            top -= 1
            if not has_text(self._lines[top]) or len(indent_of(self._lines[top])) >= margin:
                continue
            margin, end = len(indent_of(self._lines[top])), top + 1
            while end < len(self._lines) and end - top < MAX_ROWS:
                text = self._lines[end]
                if has_text(text) and len(indent_of(text)) <= margin:
                    end += text.strip() in CLOSING
                    break
                end += 1
            yield trim(self._lines, top, end)


def _lead(lines: Sequence[str], language: str, row: int) -> int:
    """Return the first row of the comments directly above a row, with the same indentation."""
    margin, floor = len(indent_of(lines[row])), max(row - MAX_LEAD, 0)
    leading = LEADING if language not in DIRECTIVES else LEADING[1:]
    while row > floor:
        above = lines[row - 1].lstrip()
        is_level = len(indent_of(lines[row - 1])) == margin or above.startswith("*")
        if not above.startswith(leading) or not is_level:
            break
        row -= 1
    return row


def _paragraph(lines: Sequence[str], row: int) -> tuple[int, int]:
    """Return the rows around a row, up to the next blank ones."""
    first, last = row, row + 1
    while first > 0 and has_text(lines[first - 1]):
        first -= 1
    while last < len(lines) and has_text(lines[last]):
        last += 1
    return first, last


def _touches(node: Node, first: int, last: int) -> bool:
    return node.start_point[0] < last and _end(node) > first


def _end(node: Node) -> int:
    """Return the row after a node."""
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def _is_definition(node: Node, rows: Iterable[tuple[int, int]]) -> bool:
    """Return whether a node is a definition, perhaps with decorators or `export`."""
    start, end = node.start_point[0], _end(node)
    return any(end == last and start <= first < start + MAX_DECORATOR_ROWS for first, last in rows)
