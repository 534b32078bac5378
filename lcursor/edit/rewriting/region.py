"""From a selection, or a cursor, to the rows that a model writes anew: whole nodes of the tree.

Pure; any thread. Never leaves out a row that was selected. Where nothing parses the text, rows
that look like definitions, indentation and blank rows take the place of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lcursor.code import grammars, structure
from lcursor.code.structure import CONTAINERS, Definition
from lcursor.edit.records import Region
from lcursor.edit.rewriting.around import (
    BIG,
    FUNCTIONS,
    Around,
    Rows,
    Tree,
    margin_of,
    paragraph,
    trimmed,
)

Count = Callable[[str], int]
"""Of the tokens of a text."""
CONTAINER_SHARE: Final = 3
"""A class is taken for a few of its rows only if it has at most one part in so many of the budget:
its other methods had better not be written anew."""
MAX_CHARS_A_TOKEN: Final = 16
"""Nothing is counted that has more: it is too much."""


def grow(
    lines: Sequence[str],
    language: str,
    first_row: int,
    last_row: int,
    budget_tokens: int,
    count: Count,
) -> Region:
    """Return the region that a selection stands for.

    Args:
        lines: of the whole text.
        language: as `code.languages` names it.
        first_row: of the selection, or the cursor's.
        last_row: behind it; the same as `first_row` where nothing is selected.
        budget_tokens: that a region may grow to; what is selected may be more.
        count: of tokens.

    Cost: that of parsing the text, 3 MB/s, and a millisecond or two.
    """
    if not any(line.strip() for line in lines):
        return Region(0, len(lines), "empty file")
    first_row = min(max(first_row, 0), len(lines))
    last_row = min(max(last_row, first_row), len(lines))
    first, last = trimmed(lines, first_row, last_row)
    budget = _Budget(lines, budget_tokens, count)
    root, data = None, b""
    if language in grammars.LANGUAGES:
        data = "\n".join(lines).encode("utf-8", "replace")
        root = grammars.parse(language, data)
    if root is None:
        around: Around = Rows(lines, language, max(first_row - 1, 0), last_row + 1)
    else:
        around = Tree(lines, language, root, data)
    if first < last:
        return _of_selection(lines, first, last, around, budget)
    return _of_cursor(lines, min(first_row, len(lines) - 1), around, budget)


class _Budget:
    """Which rows are few enough."""

    def __init__(self, lines: Sequence[str], most_tokens: int, count: Count) -> None:
        self._lines, self._most, self._count = lines, most_tokens, count

    def holds(self, first: int, last: int, share: int = 1) -> bool:
        """Whether rows have at most the budget, or a part of it."""
        text = "\n".join(self._lines[first:last])
        most = self._most // share
        # Few bytes cannot be many tokens, and many cannot be few: most texts are not counted.
        size = len(text)
        if size <= most:
            return True
        return size <= most * MAX_CHARS_A_TOKEN and self._count(text) <= most


def _of_selection(
    lines: Sequence[str], first: int, last: int, around: Around, budget: _Budget
) -> Region:
    start, end, is_defined = around.cover(first, last)
    start, end = min(start, first), max(end, last)
    holders = around.definitions(first, last)
    if is_defined and budget.holds(start, end):
        own = [i for i in holders if (i.first, i.end) == (start, end) or i.own_first == start]
        return Region(start, end, _said(own[0]) if own else _numbers(start, end))
    for item in holders:
        share = 1 if item.kind not in CONTAINERS else CONTAINER_SHARE
        is_small = item.kind not in BIG and item.parent != structure.TOP
        if not is_small and budget.holds(item.first, item.end, share):
            return Region(min(item.first, first), max(item.end, last), _said(item))
        if item.kind in FUNCTIONS:
            break
    if not budget.holds(start, end):
        start, end = first, last
    return Region(start, end, _numbers(start, end))


def _of_cursor(lines: Sequence[str], row: int, around: Around, budget: _Budget) -> Region:
    holders = around.definitions(row, row + 1)
    functions = [item for item in holders if item.kind in FUNCTIONS]
    for item in holders:
        is_inner = any(
            each.own_first < item.own_first and item.end <= each.end for each in functions
        )
        if item.kind not in BIG and is_inner:
            continue  # a variable of a function is not what one means
        if budget.holds(item.first, item.end):
            return Region(item.first, item.end, _said(item))
    if not lines[row].strip():
        if holders or _is_in(lines, row):
            row = _near(lines, row)
        else:
            return Region(row, row, f"new code at line {row + 1}")
    best = row, row + 1
    for first, last in around.blocks(row):
        if not budget.holds(first, last):
            break
        best = first, last
    if best[1] - best[0] <= 1:
        first, last = paragraph(lines, row)
        if budget.holds(first, last):
            best = first, last
    return Region(*best, _numbers(*best))


def _said(item: Definition) -> str:
    return f"{item.kind} {item.name}"


def _numbers(first: int, last: int) -> str:
    return f"line {first + 1}" if last - first == 1 else f"lines {first + 1} to {last}"


def _is_in(lines: Sequence[str], row: int) -> bool:
    """Whether a blank row stands between rows that are indented."""
    after = next((line for line in lines[row:] if line.strip()), "")
    return margin_of(after) > 0


def _near(lines: Sequence[str], row: int) -> int:
    """Return the nearest row with something in it."""
    for by in range(1, len(lines)):
        for at in (row - by, row + by):
            if 0 <= at < len(lines) and lines[at].strip():
                return at
    return row
