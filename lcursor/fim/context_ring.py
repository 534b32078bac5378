"""Which pieces of other files the model sees: what was visited, edited, yanked, imported.

Chunks are offered on any thread and wait in a queue. Idle time promotes them, one by one, and then
the arrangement of slots may change: each change makes the KV cells behind it worthless, so a slot
stays where it is for as long as it is good, and what is new comes at the end. Knows no tokens.
Source: the ring of llama.vim, whose rules these are but for the order and the borders of chunks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lcursor.fim.chunks import ALONE, MIN_LINES, PASSED, Chunk, Words, clip, dice, share_in, words
from lcursor.fim.files import File, cut, room_for_files
from lcursor.fim.prompt import Source

MAX_CHUNKS = 16
MAX_A_FILE = 3
SAME = 0.9
"""More alike than this, the newer chunk takes the place of the older one."""
OVERLAP = 0.5
"""With more of its lines in a newer chunk of the same file than this, the older one goes too."""
TOO_NEAR = 0.5
"""More like the text at the cursor than this, a chunk only makes the model repeat it."""
AROUND_LINES = 32
"""Lines before the cursor, and as many after it, that a chunk is compared with."""
SHORT_LIVED_MS = 300_000.0
"""Diagnostics and changes are forgotten after this."""
AGAIN_MS = 5_000.0
"""The retriever is asked again about the same line after this: the index may know more."""
SLOT_TOKENS = 4
"""Markers and newlines of one slot, about."""


@dataclass(frozen=True, slots=True)
class Query:
    """The place that context is wanted for."""

    path: str
    prefix: str
    suffix: str
    root: str = ""
    """Of the project, with a slash at its end; the path is relative to it."""

    @classmethod
    def of(cls, source: Source) -> Query:
        """Return the place of a request."""
        return cls(source.path, source.prefix, source.suffix, source.root)


Found = Callable[[Sequence[Chunk]], None]


class Retriever(Protocol):
    """Finds pieces of the project that belong to a place."""

    def ask(self, query: Query, found: Found) -> None:
        """Have them found, best first; `found` is told on any thread, some time, or never.

        Called in idle time alone, on the engine's thread; returns at once.
        """


class NoRetriever:
    """Finds nothing: there is no index."""

    def ask(self, query: Query, found: Found) -> None:
        """Do nothing."""


@dataclass(eq=False, slots=True)
class _Slot:
    """A chunk with what comparing it needs."""

    chunk: Chunk
    words: Words


class ContextRing:
    """The chunks there are, and the slots that show some of them.

    Args:
        retriever: asked for more, in idle time.
        clock_ms: of the same kind as `Chunk.at_ms`.

    Attributes:
        news: called when the retriever has found something else than before. Thread: any.
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
        self._queue: list[_Slot] = []
        self._pool: list[_Slot] = []
        self._arranged: list[_Slot] = []
        self._hits: list[Chunk] = []
        self._found: Sequence[Chunk] = ()
        self._is_news = False
        self._asked, self._asked_ms = ("", -1), 0.0
        self._files: tuple[File, ...] = ()
        self._is_due = False

    def add(self, chunk: Chunk) -> None:
        """Put a chunk into the queue, unless it is there already or too small. Any thread."""
        chunk = clip(chunk)
        if chunk.kind not in ALONE and chunk.text.count("\n") + 1 < MIN_LINES:
            return
        slot = _Slot(chunk, words(chunk.text))
        with self._lock:
            if any(_is_equal(slot, other) for other in self._queue):
                return
            self._queue = [other for other in self._queue if not _replaces(slot, other)]
            if chunk.text and any(_is_equal(slot, other) for other in self._pool):
                return
            self._queue = [*self._queue, slot][-MAX_CHUNKS:]

    def retrieve(self, query: Query) -> None:
        """Ask the retriever about a place, unless that was done a moment ago for its line."""
        place, now_ms = (query.root + query.path, query.prefix.count("\n")), self._clock_ms()
        if place != self._asked or now_ms - self._asked_ms > AGAIN_MS:
            self._asked, self._asked_ms = place, now_ms
            self.retriever.ask(query, self._take)

    def _take(self, found: Sequence[Chunk]) -> None:
        """Thread: any."""
        clipped = [clip(chunk) for chunk in found]
        with self._lock:
            if [*self._found] == clipped:
                return
            self._found, self._is_news = clipped, True
        self.on_change()

    def admit(self) -> bool:
        """Take in what was retrieved and the oldest chunk; let the arrangement change.

        Returns:
            Whether there was anything.
        """
        with self._lock:
            self._is_due = True
            is_news, self._is_news = self._is_news, False
            if not self._queue:
                return is_news
            slot = self._queue.pop(0)
            self._pool = [other for other in self._pool if not _replaces(slot, other)]
            if slot.chunk.text:
                self._pool.append(slot)
                of_file = [other for other in self._pool if _is_of_file(other, slot.chunk.path)]
                for old in [*of_file[:-MAX_A_FILE], *self._pool[:-MAX_CHUNKS]]:
                    if old in self._pool:
                        self._pool.remove(old)
            return True

    def layout(
        self, query: Query, files_tokens: int, count: Callable[[str], int]
    ) -> tuple[File, ...]:
        """Return the slots, the least recently changed first; the same until `admit` is called.

        Args:
            query: where the cursor is, and the text that the prompt has around it.
            files_tokens: as `prompt.build` is told.
            count: counts the tokens of a text.
        """
        with self._lock:
            if not self._is_due:
                return self._files
            self._is_due = False
            now_ms = self._clock_ms()
            self._pool = [slot for slot in self._pool if not _is_over(slot.chunk, now_ms)]
            pool, retrieved = list(self._pool), self._found
        room = room_for_files(files_tokens)
        near = words(_around(query))
        window = {line.strip() for line in (query.prefix + query.suffix).split("\n")}
        found = self._retrieved(retrieved, window)
        fitting = [slot for slot in pool if not _is_near(slot, near, window)]
        order = [slot for slot in self._arranged if slot in fitting]
        order += [slot for slot in fitting if slot not in order]
        others = {line.strip() for slot in order for line in slot.chunk.text.split("\n")}
        found = [chunk for chunk in found if share_in(chunk.text, others) <= TOO_NEAR]
        hits, left = _fill(found, room // 2, count)
        shown, dropped = _fit(order, room - (room // 2 - left if hits else 0), count)
        with self._lock:  # what there is no room for is gone, or it would come back and go again
            self._pool = [slot for slot in self._pool if slot not in dropped]
        self._arranged = [slot for slot in order if slot not in dropped]
        self._files = (*shown, *hits)
        return self._files

    def _retrieved(self, found: Sequence[Chunk], window: set[str]) -> list[Chunk]:
        """Return the retriever's hits: those that were there before in their order, then others."""
        found = [chunk for chunk in found if share_in(chunk.text, window) <= TOO_NEAR]
        known = [chunk for chunk in self._hits if chunk in found]
        self._hits = known + [chunk for chunk in found if chunk not in known]
        return self._hits


def _is_equal(one: _Slot, other: _Slot) -> bool:
    return one.chunk.text == other.chunk.text and (
        one.chunk.kind == other.chunk.kind or one.chunk.kind not in ALONE
    )


def _replaces(new: _Slot, old: _Slot) -> bool:
    if new.chunk.kind in ALONE:
        return (new.chunk.kind, new.chunk.path) == (old.chunk.kind, old.chunk.path)
    if old.chunk.kind in ALONE:
        return False
    if old.chunk.path == new.chunk.path:  # they may overlap
        lines = {line.strip() for line in new.chunk.text.split("\n")}
        if share_in(old.chunk.text, lines) > OVERLAP:
            return True
    return dice(new.words, old.words) > SAME


def _is_of_file(slot: _Slot, path: str) -> bool:
    return slot.chunk.path == path and slot.chunk.kind not in ALONE


def _is_over(chunk: Chunk, now_ms: float) -> bool:
    return chunk.kind in {"diagnostics", "changes"} and now_ms - chunk.at_ms > SHORT_LIVED_MS


def _is_near(slot: _Slot, near: Words, window: set[str]) -> bool:
    """Whether the prompt has the chunk in the file itself, or something very like it."""
    return share_in(slot.chunk.text, window) > TOO_NEAR or dice(slot.words, near) > TOO_NEAR


def _around(query: Query) -> str:
    before = query.prefix.split("\n")[-AROUND_LINES:]
    after = query.suffix.split("\n")[:AROUND_LINES]
    return "\n".join(before) + "\n".join(after)


def _fit(
    order: list[_Slot], room: int, count: Callable[[str], int]
) -> tuple[list[File], list[_Slot]]:
    """Drop from the front until the rest has room; no slot gets more than half of it.

    Headers and the rest share the room: the front of the group that takes more goes. So the slot
    at the end, the newest, is never dropped.

    Returns:
        The files to show, and the slots that were dropped.
    """
    made = [(slot, *_sized(slot.chunk, room // 2, count)) for slot in order]
    once = {file: slot for slot, file, _ in reversed(made) if file.text}  # cut, two may be the same
    dropped = [slot for slot, file, _ in made if once.get(file) is not slot]
    made = [each for each in made if each[0] not in dropped]
    while sum(size for _, _, size in made) > room:
        headers = [each for each in made if each[0].chunk.kind == "import"]
        others = [each for each in made if each[0].chunk.kind != "import"]
        heavier = max(headers, others, key=lambda group: sum(size for _, _, size in group))
        dropped.append(heavier[0][0])
        made.remove(heavier[0])
    return [file for _, file, _ in made], dropped


def _fill(
    chunks: Sequence[Chunk], room: int, count: Callable[[str], int]
) -> tuple[list[File], int]:
    """Return as many chunks as there is room for, and the room that is left."""
    files = []
    for chunk in chunks:
        file, size = _sized(chunk, room, count)
        if not file.text:
            break
        files.append(file)
        room -= size
    return files, room


def _sized(chunk: Chunk, most: int, count: Callable[[str], int]) -> tuple[File, int]:
    """Return a chunk, cut where it is larger than so many tokens, and its size."""
    names = count(chunk.path) + SLOT_TOKENS
    text = cut(chunk.text, most - names, count, from_middle=chunk.kind in PASSED)
    return File(chunk.path, text), names + (count(text) if text else 0)
