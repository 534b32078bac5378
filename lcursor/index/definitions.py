"""Find the definitions of the names in a question, with how likely each is the one meant.

Asks the reader for names; on the search thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lcursor.index import words
from lcursor.index.query import Query
from lcursor.index.rank import penalties
from lcursor.index.reader import Reader
from lcursor.index.records import Parsed, StoredSymbol

MAX_NAMES = 6
MAX_DEFINITIONS = 400
"""Definitions of one name that are compared: some names have thousands."""
MAX_PREFIXED = 30

OTHER_CASE = 0.8
OTHER_SCOPE = 0.4
PART_OF_SCOPE = 0.7
PREFIX = 0.4
KINDS: Mapping[str, float] = {
    "method": 0.9,
    "module": 0.95,
    "constant": 0.9,
    "variable": 0.8,
    "field": 0.7,
    "key": 0.6,
    "declaration": 0.6,
    "section": 0.5,
    "element": 0.4,
    "selector": 0.4,
}
"""How likely a kind of definition is meant by its name; other kinds have 1."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name in a question."""

    symbol: StoredSymbol
    certainty: float
    """How likely it is the one meant, 0 to 1."""


def find_definitions(
    query: Query, reader: Reader, unsaved: Mapping[str, Parsed]
) -> list[Definition]:
    """Return the definitions of the names in a question, the likeliest first.

    Args:
        unsaved: parsed buffers by path, which replace the stored files.
    """
    names = [query.name] if query.name else list(query.names[:MAX_NAMES])
    found: dict[tuple[str, int, str], Definition] = {}
    for name in names:
        last, scope = words.last_name(name), words.scope_names(name)
        for symbol, factor in _find(last, query, reader, unsaved):
            certainty = factor * certainty_of(symbol, last, scope)
            key = (symbol.path, symbol.symbol.first_row, symbol.symbol.name)
            if key not in found or found[key].certainty < certainty:
                found[key] = Definition(symbol, certainty)
    return sorted(found.values(), key=_sort_key)


def _sort_key(one: Definition) -> tuple[float, int, str, int]:
    path = one.symbol.path
    return -one.certainty, len(penalties(path)), path, one.symbol.symbol.first_row


def certainty_of(found: StoredSymbol, name: str, scope: Sequence[str] = ()) -> float:
    """Return how likely a definition is meant by a name and the scope before it."""
    symbol = found.symbol
    certainty = KINDS.get(symbol.kind, 1.0)
    if symbol.name != name:
        certainty *= OTHER_CASE
    if scope:
        own_scope = [part.lower() for part in symbol.scope.split(" > ") if part]
        folders, _, file = found.path.lower().rpartition("/")
        known = {*own_scope, file.split(".", 1)[0], *folders.split("/")}
        is_known = [part.lower() in known for part in scope]
        if own_scope and own_scope[-1] == scope[-1].lower():
            is_known = [True]
        if not all(is_known):
            certainty *= PART_OF_SCOPE if any(is_known) else OTHER_SCOPE
    return certainty


def _find(
    name: str, query: Query, reader: Reader, unsaved: Mapping[str, Parsed]
) -> list[tuple[StoredSymbol, float]]:
    """Return definitions with a name; if there are none, those that begin with it."""
    kinds, lower = query.filters.kinds, name.lower()
    fresh = [
        StoredSymbol(path, parsed.language, symbol)
        for path, parsed in unsaved.items()
        for symbol in parsed.symbols
        if symbol.name.lower().startswith(lower)
    ]

    def merge(new: Sequence[StoredSymbol], stored: Sequence[StoredSymbol]) -> list[StoredSymbol]:
        found = [*new, *(one for one in stored if one.path not in unsaved)]
        return [one for one in found if not kinds or one.symbol.kind in kinds]

    exact = [one for one in fresh if one.symbol.name.lower() == lower]
    if found := merge(exact, reader.symbols(name, MAX_DEFINITIONS)):
        return [(one, 1.0) for one in found]
    if query.kind != "symbol":
        return []
    prefixed = merge(fresh, reader.symbols(name, MAX_PREFIXED, prefix=True))
    return [(one, PREFIX + 0.4 * len(name) / len(one.symbol.name)) for one in prefixed]
