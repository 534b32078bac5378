"""The context ring: chooses the pieces of other files that the model sees.

Pieces that were visited, edited, yanked or imported are added on any thread and wait in a queue.
Idle work admits them one by one, and then the layout may change. Each change invalidates the KV
cells behind it, so a piece keeps its place as long as it is useful, and new ones come last.
Source: the ring of llama.vim, with another order and other borders of chunks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lcursor.fim.chunks import (
    AROUND_CURSOR,
    MIN_LINES,
    SINGLE,
    Chunk,
    Words,
    clip,
    dice,
    share_in,
    words,
)
from lcursor.fim.files import File, cut, other_files_budget
from lcursor.fim.prompt import Source

MAX_CHUNKS = 16
MAX_PER_FILE = 3
MAX_SIMILARITY = 0.9
"""A newer chunk replaces an older one that is more similar than this."""
MAX_OVERLAP = 0.5
"""A newer chunk replaces one of the same file that has more of its lines than this."""
MAX_REDUNDANCY = 0.5
"""A chunk that resembles the text at the cursor more than this only makes the model repeat it."""
AROUND_LINES = 32
"""Lines before and after the cursor that a chunk is compared with."""
SHORT_LIVED_MS = 300_000.0
"""Lifetime of diagnostics and changes."""
RETRY_MS = 5_000.0
"""Time after which the retriever is asked again about the same line: the index may have changed."""
MARKER_TOKENS = 4
"""Estimated tokens of the markers and newlines of one file."""


@dataclass(frozen=True, slots=True)
class Query:
    """The place that context is wanted for.

    Attributes:
        root: folder of the project, with a slash at its end; `path` is relative to it.
    """

    path: str
    prefix: str
    suffix: str
    root: str = ""

    @classmethod
    def of(cls, source: Source) -> Query:
        """Return the place of a completion request."""
        return cls(source.path, source.prefix, source.suffix, source.root)


Found = Callable[[Sequence[Chunk]], None]


class Retriever(Protocol):
    """Finds pieces of the project that are relevant to a place."""

    def ask(self, query: Query, found: Found) -> None:
        """Start a search; `found` may be called later, on any thread, with the best piece first.

        Called only in idle time, on the engine's thread; returns at once.
        """


class NoRetriever:
    """Finds nothing: there is no index."""

    def ask(self, query: Query, found: Found) -> None:
        """Do nothing."""


@dataclass(eq=False, slots=True)
class _Piece:
    """A chunk and its words, for comparisons."""

    chunk: Chunk
    words: Words


class ContextRing:
    """The known chunks, and the layout of those that the model sees.

    Args:
        retriever: searched in idle time.
        clock_ms: the clock of `Chunk.at_ms`.

    Attributes:
        on_change: called on any thread when the retriever has found something new.
    """

    def __init__(
        self,
        retriever: Retriever | None = None,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self.retriever: Retriever = retriever or NoRetriever()
        self.on_change: Callable[[], None] = lambda: None
        self._clock_ms = clock_ms
        self._lock = threading.Lock()  # of the queue and the pool
        self._queue: list[_Piece] = []
        self._pool: list[_Piece] = []
        self._layout: list[_Piece] = []
        self._hits: list[Chunk] = []
        self._found: Sequence[Chunk] = ()
        self._has_news = False
        self._asked, self._asked_ms = ("", -1), 0.0
        self._files: tuple[File, ...] = ()
        self._may_change = False

    def add(self, chunk: Chunk) -> None:
        """Put a chunk into the queue, unless it is known already or too small. Thread: any."""
        chunk = clip(chunk)
        if chunk.kind not in SINGLE and chunk.text.count("\n") + 1 < MIN_LINES:
            return
        piece = _Piece(chunk, words(chunk.text))
        with self._lock:
            if any(_is_equal(piece, other) for other in self._queue):
                return
            self._queue = [other for other in self._queue if not _replaces(piece, other)]
            if chunk.text and any(_is_equal(piece, other) for other in self._pool):
                return
            self._queue = [*self._queue, piece][-MAX_CHUNKS:]

    def retrieve(self, query: Query) -> None:
        """Ask the retriever about a place, unless its line was asked about recently."""
        place, now_ms = (query.root + query.path, query.prefix.count("\n")), self._clock_ms()
        if place != self._asked or now_ms - self._asked_ms > RETRY_MS:
            self._asked, self._asked_ms = place, now_ms
            self.retriever.ask(query, self._take)

    def _take(self, found: Sequence[Chunk]) -> None:
        """Thread: any."""
        clipped = [clip(chunk) for chunk in found]
        with self._lock:
            if [*self._found] == clipped:
                return
            self._found, self._has_news = clipped, True
        self.on_change()

    def admit(self) -> bool:
        """Admit the oldest chunk of the queue and what was retrieved; let the layout change.

        Returns:
            Whether there was anything to admit.
        """
        with self._lock:
            self._may_change = True
            is_news, self._has_news = self._has_news, False
            if not self._queue:
                return is_news
            piece = self._queue.pop(0)
            self._pool = [other for other in self._pool if not _replaces(piece, other)]
            if piece.chunk.text:
                self._pool.append(piece)
                of_file = [other for other in self._pool if _is_of_file(other, piece.chunk.path)]
                for old in [*of_file[:-MAX_PER_FILE], *self._pool[:-MAX_CHUNKS]]:
                    if old in self._pool:
                        self._pool.remove(old)
            return True

    def layout(
        self, query: Query, files_tokens: int, count: Callable[[str], int]
    ) -> tuple[File, ...]:
        """Return the pieces to show, the least recently changed first.

        The layout stays the same until `admit` is called.

        Args:
            query: the place of the cursor, with the text around it that the prompt has.
            files_tokens: budget, as for `prompt.build`.
            count: counts the tokens of a text.
        """
        with self._lock:
            if not self._may_change:
                return self._files
            self._may_change = False
            now_ms = self._clock_ms()
            self._pool = [piece for piece in self._pool if not _is_expired(piece.chunk, now_ms)]
            pool, retrieved = list(self._pool), self._found
        budget = other_files_budget(files_tokens)
        near = words(_around(query))
        window = {line.strip() for line in (query.prefix + query.suffix).split("\n")}
        found = self._retrieved(retrieved, window)
        fitting = [piece for piece in pool if not _is_redundant(piece, near, window)]
        order = [piece for piece in self._layout if piece in fitting]
        order += [piece for piece in fitting if piece not in order]
        others = {line.strip() for piece in order for line in piece.chunk.text.split("\n")}
        found = [chunk for chunk in found if share_in(chunk.text, others) <= MAX_REDUNDANCY]
        hits, left = _fill(found, budget // 2, count)
        shown, dropped = _fit(order, budget - (budget // 2 - left if hits else 0), count)
        with self._lock:  # drop what does not fit, or it would come and go
            self._pool = [piece for piece in self._pool if piece not in dropped]
        self._layout = [piece for piece in order if piece not in dropped]
        self._files = (*shown, *hits)
        return self._files

    def _retrieved(self, found: Sequence[Chunk], window: set[str]) -> list[Chunk]:
        """Return the retriever's hits, those of the last layout first and in their order."""
        found = [chunk for chunk in found if share_in(chunk.text, window) <= MAX_REDUNDANCY]
        known = [chunk for chunk in self._hits if chunk in found]
        self._hits = known + [chunk for chunk in found if chunk not in known]
        return self._hits


def _is_equal(one: _Piece, other: _Piece) -> bool:
    return one.chunk.text == other.chunk.text and (
        one.chunk.kind == other.chunk.kind or one.chunk.kind not in SINGLE
    )


def _replaces(new: _Piece, old: _Piece) -> bool:
    if new.chunk.kind in SINGLE:
        return (new.chunk.kind, new.chunk.path) == (old.chunk.kind, old.chunk.path)
    if old.chunk.kind in SINGLE:
        return False
    if old.chunk.path == new.chunk.path:  # they may overlap
        lines = {line.strip() for line in new.chunk.text.split("\n")}
        if share_in(old.chunk.text, lines) > MAX_OVERLAP:
            return True
    return dice(new.words, old.words) > MAX_SIMILARITY


def _is_of_file(piece: _Piece, path: str) -> bool:
    return piece.chunk.path == path and piece.chunk.kind not in SINGLE


def _is_expired(chunk: Chunk, now_ms: float) -> bool:
    return chunk.kind in {"diagnostics", "changes"} and now_ms - chunk.at_ms > SHORT_LIVED_MS


def _is_redundant(piece: _Piece, near: Words, window: set[str]) -> bool:
    """Whether the text around the cursor has the chunk, or something very similar."""
    return (
        share_in(piece.chunk.text, window) > MAX_REDUNDANCY
        or dice(piece.words, near) > MAX_REDUNDANCY
    )


def _around(query: Query) -> str:
    before = query.prefix.split("\n")[-AROUND_LINES:]
    after = query.suffix.split("\n")[:AROUND_LINES]
    return "\n".join(before) + "\n".join(after)


def _fit(
    order: list[_Piece], budget: int, count: Callable[[str], int]
) -> tuple[list[File], list[_Piece]]:
    """Drop chunks from the front until the rest fits; no chunk gets more than half of the budget.

    Imported headers and other chunks share the budget: the front of the group that takes more is
    dropped. So the newest chunk, at the end, is never dropped.

    Returns:
        The files to show, and the chunks that were dropped.
    """
    made = [(piece, *_sized(piece.chunk, budget // 2, count)) for piece in order]
    once = {
        file: piece for piece, file, _ in reversed(made) if file.text
    }  # cut, two may be the same
    dropped = [piece for piece, file, _ in made if once.get(file) is not piece]
    made = [each for each in made if each[0] not in dropped]
    while sum(size for _, _, size in made) > budget:
        headers = [each for each in made if each[0].chunk.kind == "import"]
        others = [each for each in made if each[0].chunk.kind != "import"]
        heavier = max(headers, others, key=lambda group: sum(size for _, _, size in group))
        dropped.append(heavier[0][0])
        made.remove(heavier[0])
    return [file for _, file, _ in made], dropped


def _fill(
    chunks: Sequence[Chunk], budget: int, count: Callable[[str], int]
) -> tuple[list[File], int]:
    """Return as many chunks as fit, and the budget that is left."""
    files = []
    for chunk in chunks:
        file, size = _sized(chunk, budget, count)
        if not file.text:
            break
        files.append(file)
        budget -= size
    return files, budget


def _sized(chunk: Chunk, limit: int, count: Callable[[str], int]) -> tuple[File, int]:
    """Return a chunk, cut to at most `limit` tokens, and its size."""
    names = count(chunk.path) + MARKER_TOKENS
    text = cut(chunk.text, limit - names, count, from_middle=chunk.kind in AROUND_CURSOR)
    return File(chunk.path, text), names + (count(text) if text else 0)
