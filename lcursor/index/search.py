"""Answers a question: asks words, vectors and names, and has `rank` make one list of it.

Owns nothing but a few embedded questions and what it cut of unsaved buffers; reads through the
reader it was given. Words alone answer where there is no vector. For one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from lcursor.index import named, overlay, sense, words
from lcursor.index.overlay import Overlaid, Overlay
from lcursor.index.query import Query, parse
from lcursor.index.rank import Facts, Leg, Ranked, Scored, Weights, rank
from lcursor.index.records import Filters, Hit, Mode, StoredChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lcursor.index.embed import Embedder
    from lcursor.index.reader import Reader
    from lcursor.index.vector_index import VectorIndex

DEPTH = 100
"""So many of each list are looked at, or twice what is asked for."""
PLACED = 40
"""So many of the surest definitions are looked for in the chunks."""
AGREEING = 30
"""So many of the nearest chunks are read for whether their comments agree."""
AGREEING_WORDS = 15
"""And so many of those with the words: in a large project they need not be among the nearest."""
CROWD = 100
"""So many of the nearest chunks are compared with each other."""
SETTLED = 0.7
"""Certainty of a definition that makes the vectors of a name's question needless."""
KNOWN_QUESTIONS = 64
NOTHING = Filters()


class Searcher:
    """Finds chunks.

    Args:
        reader: of the store.
        vectors: None where there are none yet.
        embedder: of those vectors.
    """

    def __init__(
        self, reader: Reader, vectors: VectorIndex | None = None, embedder: Embedder | None = None
    ) -> None:
        self.reader, self.vectors, self.embedder = reader, vectors, embedder
        self._overlay = Overlay(reader)
        self._asked: dict[str, NDArray[np.float32]] = {}
        self._asking = threading.Lock()
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
        weights: Weights | None = None,
    ) -> list[Hit]:
        """Return what a question is about, the best first.

        Args:
            text: the question, with its filters.
            limit: most hits.
            mode: which lists are asked; `hybrid` is lexical where there are no vectors.
            recent: paths of what was looked at, newest first.
            overlay: texts of unsaved buffers by path; they stand in the place of their files.
            is_stale: tells whether a file has changed since it was read; asked for hits alone.
            has_filters: whether `path:` and the like are filters; in code they are code.
            has_rules: whether the ranking rules have a say; for evals.
            weights: of the lists, instead of those of the question's kind; for evals.

        Cost:
            A few ms, and 10 to 30 ms for a question that must be embedded.
        """
        query = parse(text, has_filters=has_filters)
        changed = self._overlay.of(overlay or {})
        if not query.text:
            return self._listed(query.filters, changed, limit, is_stale)
        depth = max(DEPTH, 2 * limit)
        allowed = self._allowed(query.filters)
        legs: dict[Leg, Scored] = {}
        sure: dict[int, named.Definition] = {}
        literal: set[int] = set()
        near = self._near_beside(query, changed, depth, allowed) if mode == "hybrid" else None
        if mode != "vector":
            legs["lexical"] = self._lexical(query, changed, depth)
            sure = self._defining(query, changed, allowed)
            legs["symbol"] = [(chunk, one.certainty) for chunk, one in sure.items()]
            literal = self._literal(query, changed, depth, sure)
        if mode == "vector" or (mode == "hybrid" and not _is_settled(query, sure)):
            legs["vector"] = near.result() if near else self._near(query, changed, depth, allowed)
        paths = self._paths({chunk for leg in legs.values() for chunk, _ in leg}, changed)
        if recent:
            legs["recent"] = _by_recency(paths, recent)
        agreed, crowds, chunks = {}, {}, {}
        if mode == "hybrid" and query.kind == "text":  # then it has both lists
            wordy = legs["lexical"][:AGREEING_WORDS]
            wanted = {chunk for chunk, _ in [*legs["vector"][:AGREEING], *wordy]}
            chunks = self._chunks(wanted, changed)
            agreed = _agreed(query, chunks)
            crowds = self._crowds(legs["vector"])
        facts = {
            number: Facts(
                path,
                sure[number].certainty if number in sure else 0.0,
                sure[number].symbol.symbol.name if number in sure else "",
                agreed.get(number, 0.0),
                crowds.get(number, 0.0),
                number in literal,
            )
            for number, path in paths.items()
        }
        ranked = rank(query, legs, facts, has_rules=has_rules, weights=weights)[:limit]
        chunks |= self._chunks({one.id for one in ranked} - chunks.keys(), changed)
        stale = _Staleness(is_stale, changed)
        return [
            _hit(one, chunks[one.id], sure.get(one.id), stale(chunks[one.id].path))
            for one in ranked
            if one.id in chunks  # else it went this moment
        ]

    # The lists

    def _lexical(self, query: Query, changed: Overlaid, depth: int) -> list[tuple[int, float]]:
        more = depth + len(changed.gone)
        stored = self.reader.lexical(words.terms(query.text), more, query.filters)
        found = [row for row in stored if row[0] not in changed.gone]
        if changed.new:
            terms = words.terms(query.text)
            found += [
                row
                for row in overlay.lexical(self.reader, changed.counted, terms)
                if self._passes(changed, row[0], query.filters)
            ]
            found.sort(key=lambda row: -row[1])
        return found[:depth]

    def _literal(
        self, query: Query, changed: Overlaid, depth: int, sure: Mapping[int, named.Definition]
    ) -> set[int]:
        """Return what has the identifier that is asked for, where nothing is called like it."""
        name = words.last_name(query.name)
        term = words.whole(name) if name else ""
        if not term or any(one.symbol.symbol.name.lower() == name.lower() for one in sure.values()):
            return set()
        more = depth + len(changed.gone)
        stored = self.reader.lexical([term], more, query.filters)
        found = {number for number, _ in stored if number not in changed.gone}
        return found | {number for number, counts in changed.counted.items() if counts[term]}

    def _near_beside(
        self, query: Query, changed: Overlaid, depth: int, allowed: NDArray[np.int64] | None
    ) -> Future[list[tuple[int, float]]] | None:
        """Begin to look for what is near, where no definition can make that needless."""
        if query.kind == "symbol" or self.vectors is None or self.embedder is None:
            return None
        return self._executor.submit(self._near, query, changed, depth, allowed)

    def _near(
        self, query: Query, changed: Overlaid, depth: int, allowed: NDArray[np.int64] | None
    ) -> list[tuple[int, float]]:
        if self.vectors is None or self.embedder is None:
            return []
        asked = self._embedded(query.text)
        found = []
        for number, score in self.vectors.search(asked, depth + len(changed.gone), allowed):
            # A new piece of a buffer is as near as what it came from, as far as one knows.
            chunk = changed.instead.get(number, number) if number in changed.gone else number
            if chunk not in changed.gone:
                found.append((chunk, score))
        return found[:depth]

    def _crowds(self, near: Scored) -> dict[int, float]:
        """Return how near the nearest chunks are to each other. New pieces of buffers have none."""
        if self.vectors is None:
            return {}
        numbers = [chunk for chunk, _ in near[:CROWD] if chunk >= 0]
        found = sense.crowding(self.vectors.rows(numbers))
        return dict(zip(numbers, found.tolist(), strict=True))

    def _embedded(self, text: str) -> NDArray[np.float32]:
        with self._asking:
            vector = self._asked.pop(text, None)
            if vector is None:
                assert self.embedder is not None
                vector = self.embedder.query(text)
            self._asked[text] = vector  # the newest last
            while len(self._asked) > KNOWN_QUESTIONS:
                del self._asked[next(iter(self._asked))]
            return vector

    def _defining(
        self, query: Query, changed: Overlaid, allowed: NDArray[np.int64] | None
    ) -> dict[int, named.Definition]:
        """Return the chunks that define what is asked for, the surest first."""
        passing = None if allowed is None else set(allowed.tolist())
        found: dict[int, named.Definition] = {}
        definitions = named.definitions(query, self.reader, changed.parsed)
        for one in definitions[:PLACED]:
            path, row = one.symbol.path, one.symbol.symbol.first_row
            if path in changed.parsed:
                there = [each for each in changed.all().values() if each.path == path]
            else:
                there = self.reader.chunks_at(path, row)
            for each in there:
                piece = each.chunk
                if piece.kind == "outline" or not piece.first_row <= row < piece.end_row:
                    continue
                is_right = passing is None or each.id in passing or each.id < 0
                if is_right and (each.id >= 0 or self._passes(changed, each.id, query.filters)):
                    found.setdefault(each.id, one)
        return found

    # What is found in them

    def _allowed(self, filters: Filters) -> NDArray[np.int64] | None:
        return None if filters == NOTHING else self.reader.allowed(filters)

    def _passes(self, changed: Overlaid, number: int, filters: Filters) -> bool:
        if filters == NOTHING:
            return True
        chunk = changed.new[number]
        return overlay.passes(chunk, changed.parsed[chunk.path], filters)

    def _paths(self, wanted: set[int], changed: Overlaid) -> dict[int, str]:
        fresh = {number: one.path for number, one in changed.all().items() if number in wanted}
        return {**self.reader.paths_of(wanted - fresh.keys()), **fresh}

    def _chunks(self, wanted: set[int], changed: Overlaid) -> dict[int, StoredChunk]:
        fresh = changed.all()
        found = self.reader.chunks(number for number in wanted if number not in fresh)
        return {**found, **{number: fresh[number] for number in wanted & fresh.keys()}}

    def _listed(
        self,
        filters: Filters,
        changed: Overlaid,
        limit: int,
        is_stale: Callable[[str], bool] | None,
    ) -> list[Hit]:
        """Return what passes the filters, by path: nothing more was asked."""
        if filters == NOTHING:
            return []
        allowed = self.reader.allowed(filters)
        numbers = [] if allowed is None else allowed[: limit + len(changed.gone)].tolist()
        wanted = {number for number in numbers if number not in changed.gone}
        wanted |= {number for number in changed.new if self._passes(changed, number, filters)}
        chunks = sorted(
            self._chunks(wanted, changed).values(), key=lambda one: (one.path, one.chunk.first_row)
        )
        stale = _Staleness(is_stale, changed)
        return [_hit(Ranked(one.id), one, None, stale(one.path)) for one in chunks[:limit]]


class _Staleness:
    """Asks once a file."""

    def __init__(self, ask: Callable[[str], bool] | None, changed: Overlaid) -> None:
        self._ask, self._known = ask, dict.fromkeys(changed.parsed, False)

    def __call__(self, path: str) -> bool:
        if self._ask is None:
            return False
        if path not in self._known:
            self._known[path] = self._ask(path)
        return self._known[path]


def _is_settled(query: Query, sure: Mapping[int, named.Definition]) -> bool:
    """Tell whether a name is asked for and its definition known: then no vector tells more."""
    return query.kind == "symbol" and any(one.certainty >= SETTLED for one in sure.values())


def _agreed(query: Query, chunks: Mapping[int, StoredChunk]) -> dict[int, float]:
    """Return how far the comments of chunks say what is asked."""
    asked = sense.forms(query.text)
    return {
        number: sense.agreement(asked, sense.prose(one.chunk.text, one.language))
        for number, one in chunks.items()
    }


def _by_recency(paths: Mapping[int, str], recent: Sequence[str]) -> list[tuple[int, float]]:
    """Return the chunks of files that were looked at, the newest first."""
    ages = {path: age for age, path in reversed([*enumerate(recent)])}
    found = [(number, -float(ages[path])) for number, path in paths.items() if path in ages]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _hit(
    ranked: Ranked, stored: StoredChunk, definition: named.Definition | None, is_stale: bool
) -> Hit:
    """Return a hit: of a chunk that defines what was asked for, that definition."""
    piece = stored.chunk
    first, end, text, scope = piece.first_row, piece.end_row, piece.text, piece.scope
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
