"""How fast projects are read and embedded: as guessed for any machine, or as measured on this one.

Owns the numbers and the small file that keeps what was measured, beside the indexes of the user.
Pure but for that file; a `Meter` is for one thread.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

from lcursor import folders

FILE_S = 0.002
BYTES_PER_S = 1_000_000
"""Time for each file, and bytes a second on top: read, cut, its words counted and stored.

Source: Python's standard library, 1,700 files and 30 MB, in 33 s on one shared core of an AMD EPYC;
of that, cutting alone goes at 2.65 MB/s (2026-11-21, `python -m lcursor bench index`).
"""
CHUNKS_PER_S = 33.0
"""Texts of 224 tokens through the default embedder, where two cores have nothing else to do.
Source: the same machine and day; on one core 17 of 256 tokens."""
CHUNK_BYTES = 1_430
"""Of source text for one chunk, its blanks too. Source: this project, 1,983 chunks of 2.83 MB."""

LEAST_READ_S, LEAST_EMBED_S = 1.0, 5.0
"""Less work than this says nothing."""
MOST_SCALE = 100.0
"""Nothing is so much slower or faster; a clock may jump."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What to expect."""

    reading: float = 1.0
    """Time that reading takes, in parts of what was guessed for any machine."""
    chunks_per_s: float = CHUNKS_PER_S

    def read_s(self, files: int, size_bytes: int) -> float:
        """Return how long it takes until so much is found by its words."""
        return self.reading * expected_s(files, size_bytes)

    def embed_s(self, size_bytes: int) -> float:
        """Return how long its vectors take, if nothing of it was seen before."""
        return size_bytes / CHUNK_BYTES / self.chunks_per_s


@dataclass(slots=True)
class Meter:
    """What a worker did, and how long it took."""

    files: int = 0
    bytes: int = 0
    read_s: float = 0.0
    chunks: int = 0
    embed_s: float = 0.0

    def rates(self, before: Rates) -> Rates:
        """Return what was measured, and of what was not done enough, what was known before."""
        reading, chunks_per_s = before.reading, before.chunks_per_s
        if self.read_s >= LEAST_READ_S and self.files:
            reading = self.read_s / expected_s(self.files, self.bytes)
        if self.embed_s >= LEAST_EMBED_S and self.chunks:
            chunks_per_s = self.chunks / self.embed_s
        return Rates(_within(reading, 1.0), _within(chunks_per_s, CHUNKS_PER_S))


def expected_s(files: int, size_bytes: int) -> float:
    """Return the time that reading takes on the machine that the guess is from."""
    return files * FILE_S + size_bytes / BYTES_PER_S


def load(path: Path) -> Rates:
    """Return what was measured last, or the guess."""
    try:
        found = json.loads(path.read_bytes())
        values = float(found["reading"]), float(found["chunks_per_s"])
    except (OSError, ValueError, TypeError, KeyError):
        return Rates()
    return Rates(_within(values[0], 1.0), _within(values[1], CHUNKS_PER_S))


def save(path: Path, rates: Rates) -> None:
    """Keep what was measured; without a place for it the guess stays."""
    words = {"reading": round(rates.reading, 3), "chunks_per_s": round(rates.chunks_per_s, 2)}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folders.write(path, f"{json.dumps(words)}\n".encode())


def _within(value: float, guess: float) -> float:
    """Return a number near enough to the guess to be believed."""
    if not math.isfinite(value):
        return guess
    return min(max(value, guess / MOST_SCALE), guess * MOST_SCALE)
