"""Answer a question: search words, vectors and names, and rank what they find.

Without an embedder only words and names are searched. For one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lcursor.index import overlay, words
from lcursor.index.definitions import Definition, find_definitions
from lcursor.index.embed import Embedder
from lcursor.index.overlay import Overlay, OverlayChunks
from lcursor.index.query import Query, parse
from lcursor.index.rank import Facts, Leg, Ranked, Scored, rank
from lcursor.index.reader import Reader
from lcursor.index.records import Filters, Hit, Mode, StoredChunk
from lcursor.index.vector_index import VectorIndex

DEPTH = 100
"""Results taken from each list, or twice the limit."""
MAX_DEFINITIONS = 40
"""Definitions whose chunks are looked up."""
MIN_CERTAINTY = 0.7
"""A definition this certain makes a vector search for its name needless."""
CACHED_QUERIES = 64
NO_FILTERS = Filters()


class Searcher:
    """Searches the chunks of a project."""

    def __init__(
        self, reader: Reader, vectors: VectorIndex | None = None, embedder: Embedder | None = None
    ) -> None:
        self.reader, self.vectors, self.embedder = reader, vectors, embedder
        self._overlay = Overlay(reader)
        self._embedded: dict[str, NDArray[np.float32]] = {}
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(1, "lcursor-vectors")
        """Searches the vectors while this thread searches the words."""

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
        """Return the hits of a question, best first.

        Takes a few ms, and 10 to 30 ms for a question that must be embedded.

        Args:
            mode: the lists to search; `hybrid` is lexical where there are no vectors.
            recent: paths of open files, newest first.
            overlay: texts of unsaved buffers by path, searched instead of their files.
            is_stale: returns whether a file has changed since it was indexed.
            has_filters: whether `path:` and the like are filters; False for code.
            has_rules: whether the ranking rules apply; for evals.
        """
        query = parse(text, has_filters=has_filters)
        unsaved = self._overlay.chunks(overlay or {})
        if not query.text:
            return self._list_all(query.filters, unsaved, limit, is_stale)
        depth = max(DEPTH, 2 * limit)
        allowed = None if query.filters == NO_FILTERS else self.reader.allowed(query.filters)
        legs: dict[Leg, Scored] = {}
        definitions: dict[int, Definition] = {}
        literal: set[int] = set()
        near = self._start_nearest(query, unsaved, depth, allowed) if mode == "hybrid" else None
        if mode != "vector":
            legs["lexical"] = self._lexical(query, unsaved, depth)
            definitions = self._defining(query, unsaved, allowed)
            legs["symbol"] = [(chunk, one.certainty) for chunk, one in definitions.items()]
            literal = self._literal(query, unsaved, depth, definitions)
        if mode == "vector" or (mode == "hybrid" and not _is_certain(query, definitions)):
            legs["vector"] = (
                near.result() if near else self._nearest(query, unsaved, depth, allowed)
            )
        paths = self._paths({chunk for leg in legs.values() for chunk, _ in leg}, unsaved)
        if recent:
            legs["recent"] = _by_recency(paths, recent)
        facts = {
            number: Facts(
                path,
                definitions[number].certainty if number in definitions else 0.0,
                definitions[number].symbol.symbol.name if number in definitions else "",
                number in literal,
            )
            for number, path in paths.items()
        }
        ranked = rank(query, legs, facts, has_rules=has_rules)[:limit]
        chunks = self._chunks({one.id for one in ranked}, unsaved)
        stale = _staleness(is_stale, unsaved)
        return [
            _hit(one, chunks[one.id], definitions.get(one.id), stale(chunks[one.id].path))
            for one in ranked
            if one.id in chunks  # else it was removed just now
        ]

    # The lists

    def _lexical(self, query: Query, unsaved: OverlayChunks, depth: int) -> list[tuple[int, float]]:
        terms = words.terms(query.text)
        stored = self.reader.lexical(terms, depth + len(unsaved.removed), query.filters)
        found = [row for row in stored if row[0] not in unsaved.removed]
        if unsaved.new:
            found += [
                row
                for row in overlay.search_terms(self.reader, unsaved.terms, terms)
                if self._passes(unsaved, row[0], query.filters)
            ]
            found.sort(key=lambda row: -row[1])
        return found[:depth]

    def _literal(
        self,
        query: Query,
        unsaved: OverlayChunks,
        depth: int,
        definitions: Mapping[int, Definition],
    ) -> set[int]:
        """Return the chunks with the identifier of the question, if nothing defines it."""
        name = words.last_name(query.name)
        term = words.whole(name) if name else ""
        defined = {one.symbol.symbol.name.lower() for one in definitions.values()}
        if not term or name.lower() in defined:
            return set()
        stored = self.reader.lexical([term], depth + len(unsaved.removed), query.filters)
        found = {number for number, _ in stored if number not in unsaved.removed}
        return found | {number for number, counts in unsaved.terms.items() if counts[term]}

    def _start_nearest(
        self,
        query: Query,
        unsaved: OverlayChunks,
        depth: int,
        allowed: NDArray[np.int64] | None,
    ) -> Future[list[tuple[int, float]]] | None:
        """Start to search the vectors, unless a definition may make that needless."""
        if query.kind == "symbol" or self.vectors is None or self.embedder is None:
            return None
        return self._executor.submit(self._nearest, query, unsaved, depth, allowed)

    def _nearest(
        self,
        query: Query,
        unsaved: OverlayChunks,
        depth: int,
        allowed: NDArray[np.int64] | None,
    ) -> list[tuple[int, float]]:
        if self.vectors is None or self.embedder is None:
            return []
        vector = self._embed(query.text, self.embedder)
        found = []
        for number, score in self.vectors.search(vector, depth + len(unsaved.removed), allowed):
            # A new chunk of a buffer has no vector; that of its predecessor is close enough.
            chunk = unsaved.successors.get(number, number) if number in unsaved.removed else number
            if chunk not in unsaved.removed:
                found.append((chunk, score))
        return found[:depth]

    def _embed(self, text: str, embedder: Embedder) -> NDArray[np.float32]:
        with self._lock:
            vector = self._embedded.pop(text, None)
            if vector is None:
                vector = embedder.query(text)
            self._embedded[text] = vector  # the newest last
            while len(self._embedded) > CACHED_QUERIES:
                del self._embedded[next(iter(self._embedded))]
            return vector

    def _defining(
        self, query: Query, unsaved: OverlayChunks, allowed: NDArray[np.int64] | None
    ) -> dict[int, Definition]:
        """Return the chunks that define a name of the question, the likeliest first."""
        passing = None if allowed is None else set(allowed.tolist())
        found: dict[int, Definition] = {}
        for one in find_definitions(query, self.reader, unsaved.parsed)[:MAX_DEFINITIONS]:
            path, row = one.symbol.path, one.symbol.symbol.first_row
            if path in unsaved.parsed:
                chunks = [each for each in unsaved.all().values() if each.path == path]
            else:
                chunks = self.reader.chunks_at(path, row)
            for each in chunks:
                chunk = each.chunk
                if chunk.kind == "outline" or not chunk.first_row <= row < chunk.end_row:
                    continue
                if each.id < 0:
                    is_allowed = self._passes(unsaved, each.id, query.filters)
                else:
                    is_allowed = passing is None or each.id in passing
                if is_allowed:
                    found.setdefault(each.id, one)
        return found

    # Chunks and their paths

    def _passes(self, unsaved: OverlayChunks, number: int, filters: Filters) -> bool:
        if filters == NO_FILTERS:
            return True
        chunk = unsaved.new[number]
        return overlay.passes(chunk, unsaved.parsed[chunk.path], filters)

    def _paths(self, wanted: set[int], unsaved: OverlayChunks) -> dict[int, str]:
        fresh = {number: one.path for number, one in unsaved.all().items() if number in wanted}
        return {**self.reader.paths_of(wanted - fresh.keys()), **fresh}

    def _chunks(self, wanted: set[int], unsaved: OverlayChunks) -> dict[int, StoredChunk]:
        fresh = unsaved.all()
        found = self.reader.chunks(number for number in wanted if number not in fresh)
        return {**found, **{number: fresh[number] for number in wanted & fresh.keys()}}

    def _list_all(
        self,
        filters: Filters,
        unsaved: OverlayChunks,
        limit: int,
        is_stale: Callable[[str], bool] | None,
    ) -> list[Hit]:
        """Return the chunks that pass the filters, by path, for a question without text."""
        if filters == NO_FILTERS:
            return []
        allowed = self.reader.allowed(filters)
        numbers = [] if allowed is None else allowed[: limit + len(unsaved.removed)].tolist()
        wanted = {number for number in numbers if number not in unsaved.removed}
        wanted |= {number for number in unsaved.new if self._passes(unsaved, number, filters)}
        chunks = sorted(
            self._chunks(wanted, unsaved).values(), key=lambda one: (one.path, one.chunk.first_row)
        )
        stale = _staleness(is_stale, unsaved)
        return [_hit(Ranked(one.id), one, None, stale(one.path)) for one in chunks[:limit]]


def _staleness(
    is_stale: Callable[[str], bool] | None, unsaved: OverlayChunks
) -> Callable[[str], bool]:
    """Return a function that says whether a file has changed; it looks once at each file."""
    return cache(lambda path: bool(is_stale and path not in unsaved.parsed and is_stale(path)))


def _is_certain(query: Query, definitions: Mapping[int, Definition]) -> bool:
    """Return whether the question is a name with a known definition: then vectors add nothing."""
    return query.kind == "symbol" and any(
        one.certainty >= MIN_CERTAINTY for one in definitions.values()
    )


def _by_recency(paths: Mapping[int, str], recent: Sequence[str]) -> list[tuple[int, float]]:
    ages = {path: age for age, path in reversed([*enumerate(recent)])}
    found = [(number, -float(ages[path])) for number, path in paths.items() if path in ages]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _hit(ranked: Ranked, stored: StoredChunk, definition: Definition | None, is_stale: bool) -> Hit:
    """Return a hit; if its chunk defines what the question names, only that definition."""
    chunk = stored.chunk
    first, end, text, scope = chunk.first_row, chunk.end_row, chunk.text, chunk.scope
    if definition:
        symbol = definition.symbol.symbol
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
