"""Search unsaved buffers instead of their files.

If the store has a chunk of a buffer, the chunk keeps its id, and so its words and its vector; only
its rows change. A new chunk gets a negative id, and this module searches its words. For one thread.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from lcursor.index import chunk, words
from lcursor.index.postings import K1, B, idf
from lcursor.index.reader import IndexReader, path_test
from lcursor.index.records import Chunk, Filters, Parsed, StoredChunk

MAX_CHARS = 300_000
"""Larger buffers are not parsed; the search uses the stored file."""


@dataclass(slots=True)
class OverlayChunks:
    """The chunks of the buffers, and the stored chunks that they replace."""

    parsed: dict[str, Parsed] = field(default_factory=dict)
    unchanged: dict[int, StoredChunk] = field(default_factory=dict)
    """Chunks that are also stored, by id, with their rows in the buffer."""
    new: dict[int, StoredChunk] = field(default_factory=dict)
    """New chunks, by negative id."""
    terms: dict[int, Counter[str]] = field(default_factory=dict)
    """The terms of the new chunks."""
    successors: dict[int, int] = field(default_factory=dict)
    """Removed chunk -> new chunk that replaces it."""
    removed: set[int] = field(default_factory=set)
    """Stored chunks that searches must skip."""

    def all(self) -> dict[int, StoredChunk]:
        """Return every chunk of the buffers."""
        return {**self.unchanged, **self.new}


class Overlay:
    """Parses buffers, and caches the result until they change."""

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self._parsed: dict[str, tuple[str, Parsed]] = {}
        self._chunks: tuple[object, OverlayChunks] | None = None

    def chunks(self, texts: Mapping[str, str]) -> OverlayChunks:
        """Return the chunks of some buffers.

        Parsing takes about 10 ms for 1,000 lines of Python; only changed buffers are parsed.
        """
        texts = {path: text for path, text in texts.items() if len(text) <= MAX_CHARS}
        if not texts:
            self._parsed, self._chunks = {}, None
            return OverlayChunks()
        self._parsed = {path: self._parse(path, text) for path, text in texts.items()}
        key = (
            self._reader.revision,
            tuple((path, id(parsed)) for path, (_, parsed) in self._parsed.items()),
        )
        if self._chunks is None or self._chunks[0] != key:
            self._chunks = (key, self._compare())
        return self._chunks[1]

    def _parse(self, path: str, text: str) -> tuple[str, Parsed]:
        known = self._parsed.get(path)
        return known if known and known[0] == text else (text, chunk.read(path, text))

    def _compare(self) -> OverlayChunks:
        result = OverlayChunks()
        for path, (_, parsed) in self._parsed.items():
            result.parsed[path] = parsed
            by_digest = defaultdict(list)
            for one in self._reader.chunks_of(path):
                by_digest[one.digest].append(one)
            new = []
            for each in parsed.chunks:
                if same := by_digest[each.digest]:
                    stored = same.pop(0)
                    result.unchanged[stored.id] = _with_path(each, stored.id, path, stored.language)
                else:
                    number = -1 - len(result.new)
                    result.new[number] = _with_path(each, number, path, parsed.language)
                    result.terms[number] = Counter(words.index_text(path, each).split())
                    new.append(result.new[number])
            removed = [one for same in by_digest.values() for one in same]
            result.removed.update(one.id for one in removed)
            for old in sorted(removed, key=lambda one: one.first_row):
                successor = next((one for one in new if _is_successor(one, old)), None)
                if successor:
                    result.successors[old.id] = successor.id
                    new.remove(successor)
        return result


def _with_path(chunk: Chunk, number: int, path: str, language: str) -> StoredChunk:
    return StoredChunk(**asdict(chunk), id=number, path=path, language=language)


def _is_successor(one: StoredChunk, old: StoredChunk) -> bool:
    return (one.kind, one.scope) == (old.kind, old.scope)


def search_terms(
    reader: IndexReader, chunks: Mapping[int, Counter[str]], terms: Sequence[str]
) -> list[tuple[int, float]]:
    """Return the chunks with some terms, by BM25 with the store's frequencies, best first."""
    if not chunks or not terms:
        return []
    sizes = {number: sum(counts.values()) for number, counts in chunks.items()}
    average = max(sum(sizes.values()) / len(sizes), 1.0)
    frequencies, total = reader.frequencies(terms)
    weights = {term: idf(count, total) if total else 1.0 for term, count in frequencies.items()}
    found = []
    for number, counts in chunks.items():
        norm = K1 * (1 - B + B * sizes[number] / average)
        score = sum(
            weights[term] * counts[term] * (K1 + 1) / (counts[term] + norm)
            for term in terms
            if counts[term]
        )
        if score > 0:
            found.append((number, score))
    return sorted(found, key=lambda one: (-one[1], one[0]))


def passes(stored: StoredChunk, parsed: Parsed, filters: Filters) -> bool:
    """Return whether a chunk of a buffer passes the filters."""
    if filters.languages and stored.language not in filters.languages:
        return False
    if not path_test(filters.paths)(stored.path):
        return False
    return not filters.kinds or any(
        symbol.kind in filters.kinds and stored.first_row <= symbol.first_row < stored.end_row
        for symbol in parsed.symbols
    )
