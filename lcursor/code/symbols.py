"""The functions and classes in a text. Pure; any thread.

Values, keys and sections are not included: their names are too common.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, structure
from lcursor.code.structure import CONTAINERS

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

KINDS: Final = CONTAINERS | {"function", "method", "macro", "test"}
_DASHES: Final = frozenset({"lua", "sql", "haskell"})
_HASHES: Final = frozenset(
    {"python", "bash", "ruby", "yaml", "toml", "make", "r", "perl", "elixir", "cmake", "fish"}
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or a class, and its rows."""

    name: str
    kind: str
    scope: str
    """Names of the symbols that contain it, outermost first."""
    first: int
    """First row, including the comments and decorators above it."""
    own_first: int
    head_last: int
    """The row after its signature."""
    last: int
    is_top: bool
    """Whether no other symbol contains it."""

    @property
    def path(self) -> str:
        """Its name after those of the symbols that contain it."""
        return f"{self.scope} > {self.name}" if self.scope else self.name

    @property
    def is_function(self) -> bool:
        """Whether it is a function or a method."""
        return self.kind not in CONTAINERS


def all_of(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return all symbols of a text, in source order; none without a grammar.

    Args:
        gaps: rows that never count as comments of the symbol below them.
    """
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    root = grammars.parse(language, data)
    if root is None:
        return ()
    definitions = structure.definitions_in_tree(language, root, data, lines)
    top: dict[int, bool] = {}
    symbols: list[Symbol] = []
    for item in definitions:
        is_kind = item.kind in KINDS
        top[item.index] = item.parent == structure.TOP or (
            top[item.parent] and definitions[item.parent].kind not in KINDS
        )
        if not is_kind:
            continue
        first = item.first
        for row in range(item.first, item.own_first):
            if row in gaps or not lines[row].strip():
                first = row + 1
        head = structure.signature_end(item, lines)
        symbols.append(
            Symbol(
                item.name,
                "function" if item.kind == "method" else item.kind,
                item.scope,
                first,
                item.own_first,
                min(max(head, item.own_first + 1), item.end),
                item.end,
                top[item.index],
            )
        )
    return tuple(symbols)


def top(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return the outermost symbols of a text."""
    return outermost(all_of(lines, language, gaps))


def within(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return the direct children of the first symbol in a text."""
    found = all_of(lines, language, gaps)
    return outermost(found[1:]) if found else ()


def outermost(found: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Return the outermost of some symbols, given in source order."""
    chosen: list[Symbol] = []
    for one in found:
        if not chosen or one.own_first >= chosen[-1].last:
            chosen.append(one)
    return tuple(chosen)


def comment(language: str) -> str:
    """Return the marker of a line comment in a language."""
    return "--" if language in _DASHES else "#" if language in _HASHES else "//"


def errors(lines: Sequence[str], language: str) -> int:
    """Return the number of syntax errors in a text; 0 without a grammar."""
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    root = grammars.parse(language, data)
    return error_count(root) if root is not None else 0


def error_count(root: Node) -> int:
    """Return the number of error nodes and missing nodes in a tree."""
    if not root.has_error:
        return 0
    count = 0
    work = [root]
    while work:
        node = work.pop()
        if node.is_error or node.is_missing:
            count += 1
        elif node.has_error:
            work += node.children
    return count


def parses_no_worse(old: Sequence[str], new: Sequence[str], language: str) -> bool:
    """Return whether the new text has no more syntax errors than the old one."""
    worse = errors(new, language)
    return worse == 0 or worse <= errors(old, language)


def blank_lines(lines: Sequence[str], known: Sequence[Symbol]) -> int:
    """Return the most common number of empty lines between symbols."""
    counts: list[int] = []
    for definition in known:
        row = definition.first
        while row > 0 and not lines[row - 1].strip():
            row -= 1
        if row > 0 and row < definition.first:
            counts.append(definition.first - row)
    return max(set(counts), key=counts.count) if counts else 1


def lead_rows(
    base: Sequence[str], own: Symbol, lines: Sequence[str], other: Symbol
) -> tuple[int, int]:
    """Return the first rows, in both versions of a symbol, for replacing one by the other.

    Comments or decorators above the old version stay if the new one has none of that kind.
    """
    if other.first == other.own_first:
        return own.own_first, other.own_first
    has_comment = not lines[other.first].lstrip().startswith("@")
    if has_comment:
        return own.first, other.first
    first = own.own_first
    while first > own.first and not base[first - 1].lstrip().startswith(("#", "//", "--", "*")):
        first -= 1
    return first, other.first
