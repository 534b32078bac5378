"""Answer a query: search words, vectors and names, and rank the results.

Without an embedder only words and names are searched. For one thread at a time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lcursor.index import overlay, words
from lcursor.index.embed import Embedder
from lcursor.index.overlay import Overlay, OverlayChunks
from lcursor.index.query import Query, parse
from lcursor.index.rank import Facts, Leg, Ranked, Scored, penalties, rank
from lcursor.index.reader import IndexReader
from lcursor.index.records import Filters, Hit, Mode, Origin, Parsed, StoredChunk, StoredSymbol
from lcursor.index.vector_index import VectorIndex

DEPTH = 100
"""Results used from each list, or twice the limit."""
MAX_DEFINITIONS = 40
"""Maximum definitions whose chunks are looked up."""
MIN_CERTAINTY = 0.7
"""Certainty of a definition from which a vector search for its name is unnecessary."""
CROWDING = 0.2
"""Share of a chunk's crowding that is subtracted from its cosine: what resembles many other results
answers no particular question."""
CACHED_QUERIES = 64
NO_FILTERS = Filters()
MAX_NAMES = 6
MAX_COMPARED = 400
"""Maximum definitions of one name that are compared: some names have thousands."""
MAX_PREFIXED = 30
LAST_WORD = re.compile(r"(?<!\S)[A-Za-z]{3,}$")
MAX_COMPLETING = 40
"""Maximum chunks in which the rest of an incomplete word is looked up."""

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
"""How likely a query means a kind of definition; other kinds have 1."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a name in a query."""

    symbol: StoredSymbol
    certainty: float
    """How likely the query means it, 0 to 1."""


class _Request(NamedTuple):
    """A query with the parameters of its searches."""

    query: Query
    unsaved: OverlayChunks
    depth: int
    """Number of results from each list."""
    allowed: NDArray[np.int64] | None
    """The chunks that pass the filters; None if all do."""


class Searcher:
    """Searches the chunks of a project."""

    def __init__(
        self,
        reader: IndexReader,
        vectors: VectorIndex | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.reader, self.vectors, self.embedder = reader, vectors, embedder
        self._overlay = Overlay(reader)
        self._embed = lru_cache(CACHED_QUERIES)(self._query_vector)
        self._executor = ThreadPoolExecutor(1, "lcursor-vectors")
        """Searches the vectors while the caller's thread searches the words."""

    def search(
        self,
        text: str,
        *,
        limit: int = 20,
        mode: Mode = "hybrid",
        recent: Sequence[str] = (),
        overlay: Mapping[str, str] | None = None,
        is_stale: Callable[[str], bool] | None = None,
        has_filters: bool = True,
        has_rules: bool = True,
    ) -> list[Hit]:
        """Return the hits of a query, best first.

        Takes a few ms, or 10 to 30 ms for a query that must be embedded.

        Args:
            mode: the lists to search; `hybrid` is lexical without vectors.
            recent: paths of open files, newest first.
            overlay: texts of unsaved buffers by path, searched instead of their files.
            is_stale: returns whether a file has changed since it was indexed.
            has_filters: whether words like `path:src` are filters; False for code.
            has_rules: whether the ranking rules apply; for evals.
        """
        unsaved = self._overlay.chunks(overlay or {})
        query = parse(text, has_filters=has_filters)
        if has_filters and query.kind != "symbol":
            query = parse(self._complete(text, unsaved))
        stale = _staleness(is_stale, unsaved)
        allowed = self.reader.allowed(query.filters)
        request = _Request(query, unsaved, max(DEPTH, 2 * limit), allowed)
        if not query.text:
            listed = self._list_all(request, limit)
            return [_hit(Ranked(one.id), one, None, stale(one.path)) for one in listed]
        legs: dict[Leg, Scored] = {}
        definitions: dict[int, Definition] = {}
        literal: set[int] = set()
        near: Future[list[tuple[int, float]]] | None = None
        if mode == "hybrid" and query.kind != "symbol":  # otherwise a definition may be enough
            near = self._executor.submit(self._nearest, request)
        if mode != "vector":
            legs["lexical"] = self._lexical(request)
            definitions = self._defining(request)
            legs["symbol"] = [(chunk, one.certainty) for chunk, one in definitions.items()]
            literal = self._literal(request, definitions)
        if mode == "vector" or (mode == "hybrid" and not _is_certain(query, definitions)):
            legs["vector"] = near.result() if near else self._nearest(request)
        origins = self._origins({chunk for leg in legs.values() for chunk, _ in leg}, unsaved)
        if recent:
            paths = {number: one.path for number, one in origins.items()}
            legs["recent"] = _by_recency(paths, recent)
        facts = {
            number: Facts(
                one.path,
                definitions[number].certainty if number in definitions else 0.0,
                definitions[number].symbol.name if number in definitions else "",
                number in literal,
                one.scope,
                one.kind == "code" and not one.scope and not one.is_defining,
            )
            for number, one in origins.items()
        }
        ranked = rank(query, legs, facts, has_rules=has_rules)[:limit]
        chunks = self._chunks({one.id for one in ranked}, unsaved)
        return [
            _hit(one, chunks[one.id], definitions.get(one.id), stale(chunks[one.id].path))
            for one in ranked
            if one.id in chunks  # otherwise it was just removed
        ]

    def _complete(self, text: str, unsaved: OverlayChunks) -> str:
        """Return a query with its last word completed, if no chunk has it.

        So the results for `bypass the prox` are those for `bypass the proxy`.
        """
        found = LAST_WORD.search(text)
        if not found:
            return text
        word = found[0].lower()
        term = words.stem(word)
        frequencies, _ = self.reader.frequencies([term])
        if frequencies[term] or any(counts[term] for counts in unsaved.terms.values()):
            return text
        near = Counter(
            part
            for each in self.reader.texts_with(word, MAX_COMPLETING)
            for run in words.RUN.findall(each)
            for part in words.parts(run)
            if part.startswith(word)
        )
        return text[: found.start()] + near.most_common(1)[0][0] if near else text

    # The lists

    def _lexical(self, request: _Request) -> list[tuple[int, float]]:
        query, unsaved = request.query, request.unsaved
        terms = words.terms(query.text)
        found = self._stored(request, terms)
        if unsaved.new:
            found += [
                row
                for row in overlay.search_terms(self.reader, unsaved.terms, terms)
                if _passes(unsaved, row[0], query.filters)
            ]
            found.sort(key=lambda row: -row[1])
        return found[: request.depth]

    def _stored(self, request: _Request, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Return the stored chunks that have some terms."""
        removed = request.unsaved.removed
        found = self.reader.lexical(terms, request.depth + len(removed), request.query.filters)
        return [row for row in found if row[0] not in removed]

    def _literal(self, request: _Request, definitions: Mapping[int, Definition]) -> set[int]:
        """Return the chunks with the query's identifier, if it has no definition."""
        name = words.last_name(request.query.name)
        term = words.whole(name) if name else ""
        defined = {one.symbol.name.lower() for one in definitions.values()}
        if not term or name.lower() in defined:
            return set()
        found = {number for number, _ in self._stored(request, [term])}
        return found | {number for number, counts in request.unsaved.terms.items() if counts[term]}

    def _nearest(self, request: _Request) -> list[tuple[int, float]]:
        if self.vectors is None or self.embedder is None:
            return []
        unsaved = request.unsaved
        vector = self._embed(request.query.text)
        depth = request.depth + len(unsaved.removed)
        found = []
        for number, score in self._spread(self.vectors.search(vector, depth, request.allowed)):
            # A new chunk of a buffer has no vector; its predecessor's vector is similar.
            chunk = unsaved.successors.get(number, number) if number in unsaved.removed else number
            if chunk not in unsaved.removed:
                found.append((chunk, score))
        return found[: request.depth]

    def _spread(self, found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
        """Lower the chunks that resemble others of the list; return them best first."""
        assert self.vectors is not None
        crowding = self.vectors.crowding([number for number, _ in found])
        lowered = [
            (number, score - CROWDING * each)
            for (number, score), each in zip(found, crowding, strict=True)
        ]
        return sorted(lowered, key=lambda one: (-one[1], one[0]))

    def _query_vector(self, text: str) -> NDArray[np.float32]:
        assert self.embedder is not None
        return self.embedder.query(text)

    def _defining(self, request: _Request) -> dict[int, Definition]:
        """Return the chunks that define a name of the query, the likeliest first."""
        query, unsaved = request.query, request.unsaved
        passing = None if request.allowed is None else set(request.allowed.tolist())
        found: dict[int, Definition] = {}
        for one in find_definitions(query, self.reader, unsaved.parsed)[:MAX_DEFINITIONS]:
            path, row = one.symbol.path, one.symbol.first_row
            if path in unsaved.parsed:
                chunks = [each for each in unsaved.all().values() if each.path == path]
            else:
                chunks = self.reader.chunks_at(path, row)
            for each in chunks:
                if each.kind == "outline" or not each.first_row <= row < each.end_row:
                    continue
                if each.id < 0:
                    is_allowed = _passes(unsaved, each.id, query.filters)
                else:
                    is_allowed = passing is None or each.id in passing
                if is_allowed:
                    found.setdefault(each.id, one)
        return found

    # Chunks and their origins

    def _origins(self, wanted: set[int], unsaved: OverlayChunks) -> dict[int, Origin]:
        fresh = {
            number: Origin(
                one.path,
                one.scope,
                one.kind,
                any(
                    one.first_row <= each.first_row < one.end_row
                    for each in unsaved.parsed[one.path].symbols
                ),
            )
            for number, one in unsaved.all().items()
            if number in wanted
        }
        return {**self.reader.origins(wanted - fresh.keys()), **fresh}

    def _chunks(self, wanted: set[int], unsaved: OverlayChunks) -> dict[int, StoredChunk]:
        fresh = unsaved.all()
        found = self.reader.chunks(number for number in wanted if number not in fresh)
        return {**found, **{number: fresh[number] for number in wanted & fresh.keys()}}

    def _list_all(self, request: _Request, limit: int) -> list[StoredChunk]:
        """Return the chunks that pass the filters, by path, for a query without text."""
        filters, unsaved = request.query.filters, request.unsaved
        if request.allowed is None:
            return []
        numbers = request.allowed[: limit + len(unsaved.removed)].tolist()
        wanted = {number for number in numbers if number not in unsaved.removed}
        wanted |= {number for number in unsaved.new if _passes(unsaved, number, filters)}
        found = self._chunks(wanted, unsaved).values()
        return sorted(found, key=lambda one: (one.path, one.first_row))[:limit]


def _passes(unsaved: OverlayChunks, number: int, filters: Filters) -> bool:
    if filters == NO_FILTERS:
        return True
    chunk = unsaved.new[number]
    return overlay.passes(chunk, unsaved.parsed[chunk.path], filters)


def _staleness(
    is_stale: Callable[[str], bool] | None, unsaved: OverlayChunks
) -> Callable[[str], bool]:
    """Return a function that tests whether a file has changed, once per file."""
    return cache(lambda path: bool(is_stale and path not in unsaved.parsed and is_stale(path)))


def _is_certain(query: Query, definitions: Mapping[int, Definition]) -> bool:
    """Return whether the query is a name with a known definition, so vectors add nothing."""
    return query.kind == "symbol" and any(
        one.certainty >= MIN_CERTAINTY for one in definitions.values()
    )


def _by_recency(paths: Mapping[int, str], recent: Sequence[str]) -> list[tuple[int, float]]:
    ages = {path: age for age, path in reversed([*enumerate(recent)])}
    found = [(number, -float(ages[path])) for number, path in paths.items() if path in ages]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _hit(ranked: Ranked, stored: StoredChunk, definition: Definition | None, is_stale: bool) -> Hit:
    """Return a hit; if its chunk has the requested definition, only that part."""
    first, end, text, scope = stored.first_row, stored.end_row, stored.text, stored.scope
    if definition:
        symbol = definition.symbol
        narrow = max(first, symbol.first_row), min(end, symbol.end_row)
        if narrow[0] < narrow[1]:
            text = "\n".join(text.split("\n")[narrow[0] - first : narrow[1] - first])
            scope = f"{symbol.scope} > {symbol.name}" if symbol.scope else symbol.name
            first, end = narrow
    return Hit(
        path=stored.path,
        first_row=first,
        end_row=end,
        scope=scope,
        language=stored.language,
        text=text,
        score=ranked.score,
        parts=ranked.parts,
        is_stale=is_stale,
    )


# Definitions


def find_definitions(
    query: Query, reader: IndexReader, unsaved: Mapping[str, Parsed]
) -> list[Definition]:
    """Return the definitions of the names in a query, the likeliest first."""
    names = [query.name] if query.name else list(query.names[:MAX_NAMES])
    found: dict[tuple[str, int, str], Definition] = {}
    for name in names:
        last, scope = words.last_name(name), words.scope_names(name)
        for symbol, factor in _find(last, query, reader, unsaved):
            certainty = factor * certainty_of(symbol, last, scope)
            key = (symbol.path, symbol.first_row, symbol.name)
            if key not in found or found[key].certainty < certainty:
                found[key] = Definition(symbol, certainty)
    return sorted(found.values(), key=_sort_key)


def _sort_key(one: Definition) -> tuple[float, int, str, int]:
    path = one.symbol.path
    return -one.certainty, len(penalties(path)), path, one.symbol.first_row


def certainty_of(symbol: StoredSymbol, name: str, scope: Sequence[str] = ()) -> float:
    """Return how likely a name, or its beginning, with a scope means a definition."""
    certainty = KINDS.get(symbol.kind, 1.0)
    if not symbol.name.startswith(name):
        certainty *= OTHER_CASE
    if scope:
        own_scope = [part.lower() for part in symbol.scope.split(" > ") if part]
        folders, _, file = symbol.path.lower().rpartition("/")
        known = {*own_scope, file.split(".", 1)[0], *folders.split("/")}
        is_known = [part.lower() in known for part in scope]
        if own_scope and own_scope[-1] == scope[-1].lower():
            is_known = [True]
        if not all(is_known):
            certainty *= PART_OF_SCOPE if any(is_known) else OTHER_SCOPE
    return certainty


def _find(
    name: str, query: Query, reader: IndexReader, unsaved: Mapping[str, Parsed]
) -> list[tuple[StoredSymbol, float]]:
    """Return definitions with a name; if there are none, with that prefix."""
    kinds, lower = query.filters.kinds, name.lower()
    fresh = [
        StoredSymbol(**asdict(symbol), path=path, language=parsed.language)
        for path, parsed in unsaved.items()
        for symbol in parsed.symbols
        if symbol.name.lower().startswith(lower)
    ]

    def merge(new: Sequence[StoredSymbol], stored: Sequence[StoredSymbol]) -> list[StoredSymbol]:
        found = [*new, *(one for one in stored if one.path not in unsaved)]
        return [one for one in found if not kinds or one.kind in kinds]

    exact = [one for one in fresh if one.name.lower() == lower]
    if found := merge(exact, reader.symbols(name, MAX_COMPARED)):
        return [(one, 1.0) for one in found]
    if query.kind != "symbol":
        return []
    prefixed = merge(fresh, reader.symbols(name, MAX_PREFIXED, prefix=True))
    return [(one, PREFIX + 0.4 * len(name) / len(one.name)) for one in prefixed]
