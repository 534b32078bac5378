"""Finds the definitions of what a question names, and says how surely each is the one meant.

Asks the reader for names and changes nothing. Runs on the thread of who searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcursor.index import words
from lcursor.index.query import Query
from lcursor.index.rank import penalties
from lcursor.index.records import Parsed, StoredSymbol

if TYPE_CHECKING:
    from lcursor.index.reader import Reader

MOST_NAMES = 6
MOST_OF_A_NAME = 400
"""Definitions that are looked at: there are names that a thousand classes have."""
MOST_PREFIXED = 30

OTHER_CASE = 0.8
OTHER_SCOPE = 0.4
PART_SCOPE = 0.7
BEGINNING = 0.4
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
"""How likely a kind is what is meant by a name; 1 where none is given."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of what a question names."""

    symbol: StoredSymbol
    certainty: float
    """That it is meant, over 0 to 1."""


def definitions(query: Query, reader: Reader, changed: Mapping[str, Parsed]) -> list[Definition]:
    """Return the definitions of the names in a question, the surest first.

    Args:
        query: a question; a plain sentence names nothing.
        reader: asked for names.
        changed: files as they are in a buffer, by path; what is stored of them does not count.
    """
    asked = [query.name] if query.name else list(query.names[:MOST_NAMES])
    found: dict[tuple[str, int, str], Definition] = {}
    for name in asked:
        last, around = words.last_name(name), words.scope_names(name)
        for symbol, factor in _named(last, query, reader, changed):
            sure = factor * certainty(symbol, last, around)
            key = (symbol.path, symbol.symbol.first_row, symbol.symbol.name)
            if key not in found or found[key].certainty < sure:
                found[key] = Definition(symbol, sure)
    return sorted(found.values(), key=_order)


def _order(one: Definition) -> tuple[float, int, str, int]:
    """Return what sorts the surest first; of those that are alike, what is most often meant."""
    path = one.symbol.path
    return -one.certainty, len(penalties(path)), path, one.symbol.symbol.first_row


def certainty(found: StoredSymbol, name: str, around: Sequence[str] = ()) -> float:
    """Return how surely a definition is meant by a name and by what stands before it."""
    symbol = found.symbol
    sure = KINDS.get(symbol.kind, 1.0)
    if symbol.name != name:
        sure *= OTHER_CASE
    if around:
        scope = [part.lower() for part in symbol.scope.split(" > ") if part]
        folders, _, file = found.path.lower().rpartition("/")
        places = {*scope, file.split(".", 1)[0], *folders.split("/")}
        there = [part.lower() in places for part in around]
        if scope and scope[-1] == around[-1].lower():
            there = [True]
        if not all(there):
            sure *= PART_SCOPE if any(there) else OTHER_SCOPE
    return sure


def _named(
    name: str, query: Query, reader: Reader, changed: Mapping[str, Parsed]
) -> list[tuple[StoredSymbol, float]]:
    """Return what is called so; where nothing is, what begins so."""
    kinds, lower = query.filters.kinds, name.lower()
    fresh = [
        StoredSymbol(path, parsed.language, symbol)
        for path, parsed in changed.items()
        for symbol in parsed.symbols
        if symbol.name.lower().startswith(lower)
    ]

    def passing(new: Sequence[StoredSymbol], stored: Sequence[StoredSymbol]) -> list[StoredSymbol]:
        found = [*new, *(one for one in stored if one.path not in changed)]
        return [one for one in found if not kinds or one.symbol.kind in kinds]

    exact = [one for one in fresh if one.symbol.name.lower() == lower]
    if found := passing(exact, reader.symbols(name, MOST_OF_A_NAME)):
        return [(one, 1.0) for one in found]
    if query.kind != "symbol":
        return []
    begun = passing(fresh, reader.symbols(name, MOST_PREFIXED, prefix=True))
    return [(one, BEGINNING + 0.4 * len(name) / len(one.symbol.name)) for one in begun]
