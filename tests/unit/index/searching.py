"""A small project that can be searched: a real store, real chunks, and vectors that are made up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from lcursor.index import chunk, words
from lcursor.index.records import FileState
from lcursor.index.search import Searcher
from lcursor.index.store import Store
from lcursor.index.vector_index import VectorIndex

if TYPE_CHECKING:
    from lcursor.index.embed import Embedder

DIM = 64
MEANINGS = {"automobile": "car", "vehicle": "car", "purchase": "buy", "acquire": "buy"}
"""What this embedder knows that words do not."""


class Meanings:
    """Embeds a text as the sum of its words, with a few that mean the same."""

    name, dim = "meanings", DIM

    def __init__(self) -> None:
        self.asked: list[str] = []

    def query(self, text: str) -> NDArray[np.float32]:
        self.asked.append(text)
        vector: NDArray[np.float32] = self.texts([text])[0]
        return vector

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), DIM), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for run in words.RUN.findall(text.lower()):
                for part in words.parts(run):
                    seed = hashlib.sha256(MEANINGS.get(part, part).encode()).digest()[:8]
                    row += np.random.default_rng(int.from_bytes(seed, "little")).normal(size=DIM)
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows


def put(store: Store, files: Mapping[str, str]) -> None:
    """Put files into a store, as they would be read."""
    store.put_many((path, state(text), chunk.read(path, text)) for path, text in files.items())


def state(text: str) -> FileState:
    """Return a state that differs when the text does."""
    data = text.encode("utf-8", "surrogatepass")
    return FileState(len(data), len(data), hashlib.sha256(data).digest()[:16])


def searcher(store: Store) -> Searcher:
    """Return what searches words and names."""
    return Searcher(store.reader())


def with_vectors(store: Store) -> Searcher:
    """Return what searches vectors too; all that is in the store has one."""
    embedder = cast("Embedder", Meanings())
    reader = store.reader()
    chunks = reader.chunks(reader.chunk_ids().tolist())
    made = embedder.texts([one.text for one in chunks.values()]).astype(np.float16)
    vectors = VectorIndex(DIM)
    vectors.update(chunks, made)
    return Searcher(reader, vectors, embedder)


def made(folder: Path, files: Mapping[str, str]) -> Store:
    """Return a store with files in it."""
    store = Store(folder)
    put(store, files)
    return store
