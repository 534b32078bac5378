"""The context ring chooses the chunks of other files in the prompt.

Visited, edited, yanked or imported chunks are added on any thread to a queue. Idle work admits them
one by one, after which the layout may change. Each change invalidates the KV cells after it, so a
chunk keeps its position while it is useful, and new ones come last.
Source: the ring of llama.vim, with a different order and different chunk boundaries.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from lcursor.fim.prompt import File, Source, cut, other_files_budget

Kind = Literal["visited", "edited", "yanked", "import", "retrieved"]
Words = Counter[str]

AROUND_CURSOR = frozenset({"visited", "edited"})
"""Kinds of chunks around a cursor, with arbitrary ends."""
MIN_LINES, MAX_LINES = 3, 64
"""Size of a chunk; imported headers may have fewer lines."""
MAX_CHUNKS = 16
MAX_PER_FILE = 3
MAX_SIMILARITY = 0.9
"""A newer chunk replaces an older one that is more similar than this."""
MAX_OVERLAP = 0.5
"""A newer chunk replaces a chunk of the same file that shares a larger part of its lines."""
MAX_REDUNDANCY = 0.5
"""A chunk more similar to the text at the cursor is left out: the model would repeat it."""
AROUND_LINES = 32
"""Lines before and after the cursor to compare a chunk with."""
RETRY_MS = 5_000.0
"""Time after which the retriever is called again for a line: the index may have changed."""
MARKER_TOKENS = 4
"""Estimated tokens of the markers and newlines of one file."""


@dataclass(frozen=True)
class Chunk:
    """A piece of a file.

    Attributes:
        path: path in the prompt, relative to the project.
        first_row: row of its first line in the file.
        kind: a file has at most one chunk of imports: a newer one replaces it, an empty one removes
            it.
    """

    path: str
    first_row: int
    text: str
    kind: Kind

    @cached_property
    def words(self) -> Words:
        """The words of the text."""
        return words(self.text)


@dataclass(frozen=True, slots=True)
class Query:
    """The position that needs context; `path` is relative to `root`, which ends in a slash."""

    path: str
    prefix: str
    suffix: str
    root: str = ""

    @classmethod
    def of(cls, source: Source) -> Query:
        """Return the position of a completion request."""
        return cls(source.path, source.prefix, source.suffix, source.root)


Found = Callable[[Sequence[Chunk]], None]


class Retriever(Protocol):
    """Finds parts of the project that are relevant to a position."""

    def ask(self, query: Query, found: Found) -> None:
        """Start a search; `found` is called later, on any thread, with the best chunk first.

        Called only in idle time, on the engine's thread; must not block.
        """


class ContextRing:
    """The known chunks, and the layout of the chunks in the prompt.

    Args:
        retriever: called in idle time; None without an index.
        clock_ms: determines when the retriever is called again.

    Attributes:
        on_change: called on any thread when the retriever has found something new.
    """

    def __init__(
        self,
        retriever: Retriever | None = None,
        clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self.retriever = retriever
        self.on_change: Callable[[], None] = lambda: None
        self._clock_ms = clock_ms
        self._lock = threading.Lock()  # of the queue and the pool
        self._queue: list[Chunk] = []
        self._pool: list[Chunk] = []
        self._layout: list[Chunk] = []
        self._hits: list[Chunk] = []
        self._found: Sequence[Chunk] = ()
        self._has_news = False
        self._requested, self._requested_ms = ("", -1), 0.0
        self._files: tuple[File, ...] = ()
        self._may_change = False

    def add(self, chunk: Chunk) -> None:
        """Queue a chunk, unless it is known or too small. Thread: any."""
        chunk = clip(chunk)
        if chunk.kind != "import" and chunk.text.count("\n") + 1 < MIN_LINES:
            return
        with self._lock:
            if any(_is_equal(chunk, other) for other in self._queue):
                return
            self._queue = [other for other in self._queue if not _replaces(chunk, other)]
            if chunk.text and any(_is_equal(chunk, other) for other in self._pool):
                return
            self._queue = [*self._queue, chunk][-MAX_CHUNKS:]

    def retrieve(self, query: Query) -> None:
        """Call the retriever for a position, unless it was recently called for the same line."""
        position, now_ms = (query.root + query.path, query.prefix.count("\n")), self._clock_ms()
        is_due = position != self._requested or now_ms - self._requested_ms > RETRY_MS
        if self.retriever is not None and is_due:
            self._requested, self._requested_ms = position, now_ms
            self.retriever.ask(query, self._take)

    def _take(self, found: Sequence[Chunk]) -> None:
        """Store the retriever's results. Thread: any."""
        clipped = [clip(chunk) for chunk in found]
        with self._lock:
            if [*self._found] == clipped:
                return
            self._found, self._has_news = clipped, True
        self.on_change()

    def admit(self) -> bool:
        """Admit the oldest queued chunk and retrieved chunks; return whether there were any.

        This may change the layout.
        """
        with self._lock:
            self._may_change = True
            is_news, self._has_news = self._has_news, False
            if not self._queue:
                return is_news
            chunk = self._queue.pop(0)
            pool = [other for other in self._pool if not _replaces(chunk, other)]
            if chunk.text:
                pool.append(chunk)
                of_file = [it for it in pool if it.path == chunk.path and it.kind != "import"]
                dropped = [*of_file[:-MAX_PER_FILE], *pool[:-MAX_CHUNKS]]
                pool = [it for it in pool if it not in dropped]
            self._pool = pool
            return True

    def layout(
        self, query: Query, files_tokens: int, count: Callable[[str], int]
    ) -> tuple[File, ...]:
        """Return the chunks for the prompt, the least recently changed first.

        The layout stays the same until `admit` is called.

        Args:
            query: the position of the cursor, with the text around it in the prompt.
            files_tokens: budget, as for `prompt.build`.
            count: counts the tokens of a text.
        """
        with self._lock:
            if not self._may_change:
                return self._files
            self._may_change = False
            pool, retrieved = list(self._pool), self._found
        budget = other_files_budget(files_tokens)
        near = words(_around(query))
        window = _stripped_lines(query.prefix + query.suffix)
        found = [it for it in retrieved if share_in(it.text, window) <= MAX_REDUNDANCY]
        # Hits of the last layout keep their order.
        found = [it for it in self._hits if it in found] + [
            it for it in found if it not in self._hits
        ]
        self._hits = found
        fitting = [it for it in pool if not _is_redundant(it, near, window)]
        order = [it for it in self._layout if it in fitting]
        order += [it for it in fitting if it not in order]
        others = _stripped_lines("\n".join(it.text for it in order))
        found = [it for it in found if share_in(it.text, others) <= MAX_REDUNDANCY]
        hits, left = _fill(found, budget // 2, count)
        shown, dropped = _fit(order, budget - (budget // 2 - left if hits else 0), count)
        with self._lock:  # drop chunks that do not fit, so that they do not reappear
            self._pool = [it for it in self._pool if it not in dropped]
        self._layout = [it for it in order if it not in dropped]
        self._files = (*shown, *hits)
        return self._files


def _is_equal(one: Chunk, other: Chunk) -> bool:
    return one.text == other.text and (one.kind != "import" or other.kind == "import")


def _replaces(new: Chunk, old: Chunk) -> bool:
    if "import" in {new.kind, old.kind}:
        return (new.kind, new.path) == (old.kind, old.path)
    is_overlapping = (
        old.path == new.path and share_in(old.text, _stripped_lines(new.text)) > MAX_OVERLAP
    )
    return is_overlapping or dice(new.words, old.words) > MAX_SIMILARITY


def _is_redundant(chunk: Chunk, near: Words, window: set[str]) -> bool:
    """Return whether the text around the cursor contains the chunk, or very similar text."""
    is_there = share_in(chunk.text, window) > MAX_REDUNDANCY
    return is_there or dice(chunk.words, near) > MAX_REDUNDANCY


def _around(query: Query) -> str:
    before = query.prefix.split("\n")[-AROUND_LINES:]
    after = query.suffix.split("\n")[:AROUND_LINES]
    return "\n".join(before) + "\n".join(after)


def _fit(
    order: list[Chunk], budget: int, count: Callable[[str], int]
) -> tuple[list[File], list[Chunk]]:
    """Drop chunks from the front until the rest fits; no chunk gets more than half of the budget.

    Imported headers and other chunks share the budget: chunks are dropped from the front of the
    larger group. So the newest chunk, at the end, is never dropped.

    Returns:
        The files to show, and the chunks that were dropped.
    """
    made = [(chunk, *_sized(chunk, budget // 2, count)) for chunk in order]
    # Two truncated chunks may be equal; keep the last one.
    once = {file: chunk for chunk, file, _ in reversed(made) if file.text}
    dropped = [chunk for chunk, file, _ in made if once.get(file) is not chunk]
    made = [each for each in made if each[0] not in dropped]
    while sum(size for _, _, size in made) > budget:
        headers = [each for each in made if each[0].kind == "import"]
        others = [each for each in made if each[0].kind != "import"]
        heavier = max(headers, others, key=lambda group: sum(size for _, _, size in group))
        dropped.append(heavier[0][0])
        made.remove(heavier[0])
    return [file for _, file, _ in made], dropped


def _fill(
    chunks: Sequence[Chunk], budget: int, count: Callable[[str], int]
) -> tuple[list[File], int]:
    """Return as many chunks as fit, and the remaining budget."""
    files = []
    for chunk in chunks:
        file, size = _sized(chunk, budget, count)
        if not file.text:
            break
        files.append(file)
        budget -= size
    return files, budget


def _sized(chunk: Chunk, limit: int, count: Callable[[str], int]) -> tuple[File, int]:
    """Return a chunk, truncated to at most `limit` tokens, and its size."""
    names = count(chunk.path) + MARKER_TOKENS
    text = cut(chunk.text, limit - names, count, from_middle=chunk.kind in AROUND_CURSOR)
    return File(chunk.path, text), names + (count(text) if text else 0)


def clip(chunk: Chunk) -> Chunk:
    """Cut a chunk to its maximum size, at code boundaries if that loses few lines."""
    lines = chunk.text.split("\n")
    first, end = 0, len(lines)
    if end > MAX_LINES:
        first = (end - MAX_LINES) // 2 if chunk.kind in AROUND_CURSOR else 0
        end = first + MAX_LINES
    if chunk.kind in AROUND_CURSOR:
        first, end = _at_borders(lines, first, end, chunk.first_row == 0)
    while first < end and not lines[first].strip():
        first += 1
    while first < end and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[first:end])
    return replace(chunk, text=text, first_row=chunk.first_row + first)


def _at_borders(lines: list[str], first: int, end: int, is_top: bool) -> tuple[int, int]:
    """Move both ends inwards to a boundary, by at most a quarter of the lines.

    A boundary is before an unindented line that starts a block, or else after a blank line.
    """
    slack = (end - first) // 4
    if not (is_top and first == 0):
        first = _first_border(lines, range(first, first + slack + 1), first)
    return first, _first_border(lines, range(end, end - slack - 1, -1), end)


def _first_border(lines: list[str], rows: range, otherwise: int) -> int:
    for begins in (_begins, _follows_blank):
        found = next((row for row in rows if row < len(lines) and begins(lines, row)), None)
        if found is not None:
            return found
    return otherwise


def _begins(lines: list[str], row: int) -> bool:
    starts_here = re.match(r"[^\s)\]}]", lines[row]) is not None
    return starts_here and (row == 0 or re.match(r"[^\s@#/\-*]", lines[row - 1]) is None)


def _follows_blank(lines: list[str], row: int) -> bool:
    return bool(lines[row].strip()) and row > 0 and not lines[row - 1].strip()


def words(text: str) -> Words:
    """Count the words of a text."""
    return Counter(re.findall(r"\w+", text))


def dice(one: Words, other: Words) -> float:
    """Return the Dice similarity of two texts by their words, 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def share_in(text: str, window: Container[str]) -> float:
    """Return the share of a text's lines that are also in a window."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return sum(line in window for line in lines) / len(lines) if lines else 0.0


def _stripped_lines(text: str) -> set[str]:
    return {line.strip() for line in text.split("\n")}
