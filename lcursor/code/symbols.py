"""Functions and classes of a text, by name: what a piece of code is about. Pure; any thread.

Knows no more of a language than the index does, and asks it; values, keys and sections are no
symbols here: too many things share their names.
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
    """Names of what it is in, the outermost first."""
    first: int
    """Of what belongs to it above: comments, decorators."""
    own_first: int
    head_last: int
    """Behind its signature."""
    last: int
    is_top: bool
    """Nothing that has a name is around it."""

    @property
    def path(self) -> str:
        """Its name with those around it."""
        return f"{self.scope} > {self.name}" if self.scope else self.name

    @property
    def is_function(self) -> bool:
        """Whether it can be called, as a function or a method."""
        return self.kind not in CONTAINERS


def all_of(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return a text's symbols, in order; none without a grammar.

    Args:
        lines: of the text.
        language: as the index names it.
        gaps: rows that never belong to the symbol below.
    """
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    root = grammars.parse(language, data)
    if root is None:
        return ()
    found = structure.of_tree(language, root, data, lines)
    top: dict[int, bool] = {}
    symbols: list[Symbol] = []
    for item in found:
        is_kind = item.kind in KINDS
        top[item.place] = item.parent == structure.TOP or (
            top[item.parent] and found[item.parent].kind not in KINDS
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
                top[item.place],
            )
        )
    return tuple(symbols)


def top(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return the symbols that stand in no other one."""
    return outermost(all_of(lines, language, gaps))


def within(lines: Sequence[str], language: str, gaps: Collection[int] = ()) -> tuple[Symbol, ...]:
    """Return the symbols right inside of the one that lines are of."""
    found = all_of(lines, language, gaps)
    return outermost(found[1:]) if found else ()


def outermost(found: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Return of symbols in their order those that stand in no other one of them."""
    chosen: list[Symbol] = []
    for one in found:
        if not chosen or one.own_first >= chosen[-1].last:
            chosen.append(one)
    return tuple(chosen)


def comment(language: str) -> str:
    """Return how a comment of one line begins in a language."""
    return "--" if language in _DASHES else "#" if language in _HASHES else "//"


def errors(lines: Sequence[str], language: str) -> int:
    """Return how many places of a text make no sense to a parser; 0 without one."""
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    root = grammars.parse(language, data)
    if root is None or not root.has_error:
        return 0
    return _errors(root)


def _errors(root: Node) -> int:
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
    """Return whether a text has no more errors than the one before it."""
    worse = errors(new, language)
    return worse == 0 or worse <= errors(old, language)


def blank_lines(lines: Sequence[str], known: Sequence[Symbol]) -> int:
    """Return how many empty lines part symbols, mostly."""
    counts: list[int] = []
    for one in known:
        row = one.first
        while row > 0 and not lines[row - 1].strip():
            row -= 1
        if row > 0 and row < one.first:
            counts.append(one.first - row)
    return max(set(counts), key=counts.count) if counts else 1


def lead_rows(
    base: Sequence[str], own: Symbol, lines: Sequence[str], other: Symbol
) -> tuple[int, int]:
    """Return where two forms of a symbol begin, so that one can take the place of the other.

    Comments and decorators above it stay where the new form has none of the kind.
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
