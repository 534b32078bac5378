"""Embed the chunks of a project, a few at a time, and keep their vectors searchable.

Owns the embedder, which is loaded once and on demand; without one, `note` has the reason. `step`
runs on the pipeline's thread; the search thread uses the embedder and the vector index.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lcursor import system
from lcursor.errors import LcursorError
from lcursor.index import chunk, embed
from lcursor.index.postings import NO_REVISION
from lcursor.index.reader import IndexReader
from lcursor.index.records import StoredChunk
from lcursor.index.vector_index import VectorIndex
from lcursor.index.vector_store import VectorStore

WINDOW = 256
"""Chunks fetched at once, to embed chunks of similar length together."""
BATCH = 4
"""Chunks embedded in one step, about a tenth of a second: larger batches are no faster."""
MAX_THREADS = 2
"""Number of low-priority threads that embed while the machine is idle."""
GPU_BATCH = 128
READ_BATCH = 2_000
"""Vectors read from the disk at once."""
NONE = "none"
"""The embedder name that stands for no embedder."""


class ChunkEmbedder:
    """The vectors of one project.

    Args:
        is_quiet: returns whether the cores are idle, so that two of them may embed.
    """

    def __init__(
        self, name: str, reader: IndexReader, is_quiet: Callable[[], bool] = lambda: False
    ) -> None:
        self._wanted, self._reader = name, reader
        self.embedder: embed.Embedder | None = None
        self.vectors: VectorIndex | None = None
        self.note = "no embedder" if name == NONE else "the embedder is not loaded yet"
        """Why there is no embedder; empty if there is one."""
        self.is_quiet = is_quiet
        self._is_tried = name == NONE
        self._is_broken = False
        self._store: VectorStore | None = None
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        """The known chunks with and without a vector, ascending."""
        self._missing: dict[int, bytes] = {}
        """Chunks without a vector, in order, with the digests of their texts."""
        self._queue: deque[StoredChunk] = deque()
        """Fetched chunks to embed, the shortest first."""
        self._revision = NO_REVISION

    @property
    def left(self) -> int:
        """Number of chunks without a vector."""
        return len(self._missing)

    @property
    def total(self) -> int:
        """Number of known chunks."""
        return len(self._ids)

    @property
    def is_missing(self) -> bool:
        """Whether an embedder is wanted, but not loaded."""
        return self.embedder is None and self._wanted != NONE

    def remarks(self) -> list[str]:
        """Return all problems with the vectors that were handled."""
        return self._store.remarks if self._store else []

    def retry(self) -> None:
        """Check again for a missing embedder, which may have been downloaded."""
        if self.is_missing:
            self._is_tried = False

    def load(self) -> None:
        """Load embedder and vectors, once. Cost: about a second."""
        if self._is_tried:
            return
        self._is_tried = True
        try:
            spec = embed.find(self._wanted)
            embedder = embed.Embedder(spec)
            vectors = VectorIndex(embedder.dim)
        except (LcursorError, ImportError) as error:
            self.note = f"lexical search only: {error}"
            return
        system.trim_memory()  # loading needs about 50 MB temporarily
        self._store = VectorStore(None, embedder.name)
        self.note = ""
        self.vectors = vectors
        self.embedder = embedder
        self.sync()

    def step(self) -> bool:
        """Embed a few chunks; return False when all have a vector, or there is no embedder."""
        self.load()
        if self.embedder is None or self._is_broken:
            return False
        if not self._queue:
            self.sync()
            self._fetch()
        if not self._queue:
            return False
        threads = min(MAX_THREADS, system.usable_cores()) if self.is_quiet() else 1
        size = GPU_BATCH if self.embedder.on_gpu else BATCH * threads
        batch = [self._queue.popleft() for _ in range(min(size, len(self._queue)))]
        texts = [chunk.embedded(one.path, one) for one in batch]
        try:
            made = self.embedder.texts(texts, threads).astype(np.float16)
        except Exception as error:  # noqa: BLE001 - a foreign library, with errors of its own
            self._give_up(f"the embedder failed: {error}")
            return False
        vectors = {one.digest: row for one, row in zip(batch, made, strict=True)}
        if self._store is not None:
            self._store.put(vectors.items())
        window = dict(islice(self._missing.items(), WINDOW))
        self._add({number: each for number, each in window.items() if each in vectors}, vectors)
        return True

    def sync(self) -> None:
        """Follow added and removed chunks of the store, and load existing vectors."""
        revision = self._reader.revision
        if revision == self._revision or self.vectors is None:
            return
        if revision.identity != self._revision.identity:  # the ids now belong to other chunks
            self._queue.clear()
            self._missing.clear()
            self._ids = np.empty(0, np.int64)
            self.vectors.remove(self.vectors.ids.tolist())
        ids = self._reader.chunk_ids()
        gone = np.setdiff1d(self._ids, ids, assume_unique=True).tolist()
        self._forget(gone)
        new = np.setdiff1d(ids, self._ids, assume_unique=True)
        for at in range(0, len(new), READ_BATCH):
            digests = self._reader.digests(new[at : at + READ_BATCH].tolist())
            self._missing.update(digests)
            self._add_stored(digests)
        self._ids, self._revision = ids, revision

    def close(self) -> None:
        """Close the files; after the pipeline's end."""
        if self._store is not None:
            self._store.close()
        self._reader.close()

    def _fetch(self) -> None:
        while self._missing and not self._queue:
            window = dict(islice(self._missing.items(), WINDOW))
            self._add_stored(window)  # another worker may have added some
            wanted = {
                digest: number for number, digest in window.items() if number in self._missing
            }
            chunks = self._reader.chunks(wanted.values())
            self._forget(wanted.values() - chunks.keys())
            self._queue.extend(sorted(chunks.values(), key=lambda one: len(one.text)))

    def _add_stored(self, digests: Mapping[int, bytes]) -> None:
        if self._store is not None:
            self._add(digests, self._store.get(digests.values()))

    def _add(
        self, digests: Mapping[int, bytes], vectors: Mapping[bytes, NDArray[np.float16]]
    ) -> None:
        if self.vectors is not None:
            for number in self.vectors.add(digests, vectors):
                self._missing.pop(number, None)

    def _forget(self, gone: Iterable[int]) -> None:
        numbers = [*gone]
        for number in numbers:
            self._missing.pop(number, None)
        if self.vectors is not None:
            self.vectors.remove(numbers)

    def _give_up(self, reason: str) -> None:
        """Stop embedding; existing vectors remain searchable."""
        self._is_broken = True
        self._queue.clear()
        self.note = reason
