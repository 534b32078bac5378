"""A context of llama.cpp that records its logits, on a simulated clock.

The engine uses it like the real one. Decoding takes simulated time, by the measured speed of a
machine. Real evaluation happens only when logits are read that no earlier run has recorded, so a
run with another rule for what is shown takes seconds, and every run on any machine gives the same.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lcursor.errors import Cancelled, LcursorError
from lcursor.fim import llama

if TYPE_CHECKING:
    from numpy.typing import NDArray

NATS, MOST = 14.0, 256
"""Logits this far below the maximum, and at most this many, are recorded one by one."""
SPARE = 512
"""Tokens that may be evaluated in vain, rather than to begin with an empty cache."""
COMMIT_EVERY = 64
PAST_TOKENS, BATCH_TOKENS, ROUNDS = 1024, 64, 7
"""Of `measure`."""


class Speed(NamedTuple):
    """The time of one decode on a machine: a fixed part, and one for each token, in seconds."""

    pass_s: float
    token_s: float

    def of(self, tokens: int) -> float:
        """Return the seconds of a decode."""
        return self.pass_s + self.token_s * tokens


class Clock:
    """Simulated time.

    Attributes:
        now_s: seconds.
        next_s: time of the next event; `on_event` is called when the clock reaches it, and sets
            the time of the following one.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.next_s = math.inf
        self.on_event: Callable[[], None] = lambda: None

    def advance(self, seconds: float, is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass; return False if an event has stopped what takes this time."""
        end_s = self.now_s + seconds
        while self.next_s <= end_s:
            self.now_s = max(self.next_s, self.now_s)
            self.on_event()
            if is_stopped():
                return False
        self.now_s = end_s
        return True


class Record:
    """Logits by the tokens before them; a SQLite file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path)
        self._base.execute("CREATE TABLE IF NOT EXISTS logits (key BLOB PRIMARY KEY, value BLOB)")
        self._unsaved = 0
        self.hits = self.misses = 0

    def get(self, key: bytes) -> bytes | None:
        """Return a recorded value."""
        row = self._base.execute("SELECT value FROM logits WHERE key = ?", (key,)).fetchone()
        self.hits, self.misses = self.hits + (row is not None), self.misses + (row is None)
        return row[0] if row else None

    def add(self, key: bytes, value: bytes) -> None:
        """Record a value."""
        self._base.execute("INSERT OR REPLACE INTO logits VALUES (?, ?)", (key, value))
        self._unsaved += 1
        if self._unsaved >= COMMIT_EVERY:
            self.save()

    def save(self) -> None:
        """Write to the disk."""
        self._base.commit()
        self._unsaved = 0


def pack(logits: NDArray[np.float32]) -> bytes:
    """Return logits [n_vocab] as bytes: the highest ones, and the average weight of the others."""
    top = float(logits.max())
    ids = np.flatnonzero(logits > top - NATS)
    if len(ids) > MOST:
        ids = ids[np.argpartition(logits[ids], -MOST)[-MOST:]]
    weights = np.exp(logits - top)
    left = max(float(weights.sum() - weights[ids].sum()), 1e-9) / max(len(logits) - len(ids), 1)
    head = np.array([math.log(left)], np.float32).tobytes()
    values = (logits[ids] - top).astype(np.float16)
    return head + ids.astype(np.uint32).tobytes() + values.tobytes()


def unpack(data: bytes, n_vocab: int) -> NDArray[np.float32]:
    """Return packed logits [n_vocab]; the highest one is 0."""
    count = (len(data) - 4) // 6
    logits = np.full(n_vocab, np.frombuffer(data, np.float32, 1)[0], np.float32)
    ids = np.frombuffer(data, np.uint32, count, 4)
    logits[ids] = np.frombuffer(data, np.float16, count, 4 + 4 * count)
    return logits


class Context:
    """Records; the rest is as in `llama.Context`.

    Args:
        open_real: opens the real context, when it is needed first.
    """

    def __init__(
        self,
        n_vocab: int,
        size: llama.ContextSize,
        clock: Clock,
        speed: Speed,
        record: Record,
        open_real: Callable[[], llama.Context],
    ) -> None:
        self.abort = _Abort()
        self.cells, self.batch_tokens = size.cells, size.batch
        self._n_vocab, self._clock, self._speed, self._record = n_vocab, clock, speed, record
        self._open_real = open_real
        self._real_context: llama.Context | None = None
        self._cells: list[dict[int, int]] = [{} for _ in range(size.sequences)]
        self._rows: list[tuple[int, tuple[int, ...]]] = []
        self._pending: list[tuple[Any, ...]] = []
        self._pending_tokens = 0
        self._stale = set[int]()
        self._last = 0
        self._has_real_logits = False

    def close(self) -> None:
        """Save the record, and free the real cache."""
        self._record.save()
        if self._real_context:
            self._real_context.close()

    def decode(
        self, tokens: Sequence[int], position: int, sequence: int = 0, outputs: int = 1
    ) -> None:
        """Evaluate tokens; may raise Cancelled."""
        self._spend(len(tokens))
        cells = self._cells[sequence]
        cells.update(zip(range(position, position + len(tokens)), tokens, strict=True))
        self._log(len(tokens), "decode", tuple(tokens), position, sequence, outputs)
        content = tuple(cells[at] for at in sorted(cells))
        self._last, self._has_real_logits = len(tokens), False
        self._rows = [
            (sequence, content[: len(content) - after]) for after in range(outputs - 1, -1, -1)
        ]

    def logits(self, number: int = -1) -> NDArray[np.float32]:
        """Return recorded logits, or evaluate and record them."""
        row = number if number < 0 else number - self._last
        sequence, content = self._rows[row]
        key = hashlib.blake2b(np.array(content, np.int32).tobytes(), digest_size=16).digest()
        packed = self._record.get(key)
        if packed is None:
            real = self._synchronized(sequence)
            packed = pack(real.logits(row))
            self._record.add(key, packed)
        return unpack(packed, self._n_vocab)

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Remove positions from a sequence."""
        cells = self._cells[sequence]
        kept = {at: token for at, token in cells.items() if at < start or (at >= end >= 0)}
        self._cells[sequence] = kept
        self._log(0, "remove", sequence, start, end)
        return True

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        """Add cells of a sequence to another."""
        part = {
            at: token
            for at, token in self._cells[source].items()
            if at >= start and (at < end or end < 0)
        }
        self._cells[target].update(part)
        self._log(0, "copy", source, target, start, end)

    def move(self, sequence: int, start: int, end: int, by: int) -> None:
        """Shift positions of cells."""
        cells = self._cells[sequence]
        self._cells[sequence] = {
            at + by if at >= start and (at < end or end < 0) else at: token
            for at, token in cells.items()
        }
        self._log(0, "move", sequence, start, end, by)

    def length(self, sequence: int = 0) -> int:
        """Return the position after the sequence's last token."""
        return max(self._cells[sequence], default=-1) + 1

    def state(self, sequence: int, max_bytes: int) -> memoryview:
        """Return nothing: no cache is saved."""
        return memoryview(b"")

    def _spend(self, tokens: int) -> None:
        stops = self.abort.stops
        if stops() or not self._clock.advance(self._speed.of(tokens), stops):
            raise Cancelled("superseded by a newer request")

    def _log(self, tokens: int, *call: Any) -> None:
        self._pending.append(call)
        self._pending_tokens += tokens

    def _synchronized(self, sequence: int) -> llama.Context:
        """Return the real context, with logits of the last batch of a sequence."""
        real = self._real_context = self._real_context or self._open_real()
        if self._has_real_logits:
            return real
        pending, tokens = self._pending, self._pending_tokens
        self._pending, self._pending_tokens = [], 0
        if tokens > len(self._cells[sequence]) + SPARE:
            pending = []
            self._stale.update(range(len(self._cells)))
        try:
            for name, *arguments in pending:
                was_repeated = self._repeat(real, name, arguments)
                if name == "decode":
                    self._has_real_logits = was_repeated
        except LcursorError:  # the cache is full
            self._stale.update(range(len(self._cells)))
        if not self._has_real_logits or sequence in self._stale:
            self._evaluate_again(real, sequence)
        self._has_real_logits = True
        return real

    def _repeat(self, real: llama.Context, name: str, arguments: list[Any]) -> bool:
        """Repeat a call unless it is about cells that the real context lacks."""
        stale = self._stale
        if name == "decode":
            tokens, position, sequence, outputs = arguments
            if sequence in stale:
                return False
            real.decode(tokens, position, sequence, outputs)
            return True
        if name == "copy":
            if arguments[0] in stale or arguments[1] in stale:
                stale.add(arguments[1])
                return False
            real.copy(*arguments)
        elif name == "remove" and arguments[1:] == [0, -1]:
            real.remove(*arguments)
            stale.discard(arguments[0])
        elif arguments[0] not in stale:
            getattr(real, name)(*arguments)
        return True

    def _evaluate_again(self, real: llama.Context, sequence: int) -> None:
        """Evaluate a sequence from its beginning, and forget the others."""
        for each in range(len(self._cells)):
            real.remove(each, 0)
        self._stale.update(range(len(self._cells)))
        cells = self._cells[sequence]
        positions = sorted(cells)
        tokens = [cells[at] for at in positions]
        outputs = len(self._rows)
        head = tokens[:-outputs]
        for start in range(0, len(head), self.batch_tokens):
            real.decode(head[start : start + self.batch_tokens], start, sequence)
        real.decode(tokens[-outputs:], len(head), sequence, outputs)
        for at in range(len(positions) - 1, 0, -1):  # the gaps between positions
            gap = positions[at] - positions[at - 1] - 1
            if gap:
                real.move(sequence, at, -1, gap)
        self._stale.discard(sequence)
        for other, part in enumerate(self._cells):
            if not part:
                self._stale.discard(other)
            elif other != sequence and part == {at: cells.get(at) for at in part}:
                real.copy(sequence, other, 0, max(part) + 1)
                self._stale.discard(other)


class _Abort(llama.Abort):
    """The engine's abort, for simulated decoding."""

    def stops(self) -> bool:
        """Return whether a decode must stop now."""
        return self._is_set and (self._is_immediate or not self._holds)


def measure(context: llama.Context, token: int) -> Speed:
    """Measure a real context behind a long prompt, for about ten seconds; medians.

    With an empty cache the best times are up to half as long as those that a person gets.
    """
    for start in range(0, PAST_TOKENS, BATCH_TOKENS):
        context.decode([token] * BATCH_TOKENS, start)
    times = dict[int, list[float]]()
    for _ in range(ROUNDS):
        for size in (1, BATCH_TOKENS):
            began_s = time.perf_counter()
            context.decode([token] * size, PAST_TOKENS)
            context.logits()
            times.setdefault(size, []).append(time.perf_counter() - began_s)
            context.remove(0, PAST_TOKENS)
    one_s, batch_s = statistics.median(times[1]), statistics.median(times[BATCH_TOKENS])
    token_s = (batch_s - one_s) / (BATCH_TOKENS - 1)
    return Speed(one_s - token_s, token_s)
