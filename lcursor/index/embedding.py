"""Gives the chunks of the store their vectors, a few at a time, and keeps the searched copy fresh.

Owns the embedder's life: it is loaded late, once, and its absence is a sentence, not an error.
`step` runs on the pipeline's thread; the embedder and the vectors are read by the one that
searches.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.errors import LcursorError
from lcursor.index import chunk, priority
from lcursor.index.rates import Meter
from lcursor.index.reader import Reader
from lcursor.index.records import StoredChunk
from lcursor.index.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lcursor.index.embed import Embedder
    from lcursor.index.vector_cache import VectorCache
    from lcursor.index.vectors import Vectors

WINDOW = 256
"""Chunks fetched at once; those of a like length are embedded together."""
BATCH = 4
"""Chunks embedded in one step, about a tenth of a second: more at once are no faster."""
MOST_THREADS = 2
"""That embed while the machine is quiet; all of them low in priority."""
GPU_BATCH = 128
WRITE_EVERY = 32
"""Vectors in one transaction."""
AT_ONCE = 2_000
"""Vectors read at once for what is searched: all of a large project would be there twice."""
SYNC_S = 2.0
"""Least time between two copies of the store's vectors into what is searched."""
NONE = "none"
"""The name of no embedder."""


class Embedding:
    """The vectors of one project.

    Args:
        name: of the embedder; "" is the default one.
        folder: of the index.
        reader: of the store.
    """

    def __init__(self, name: str, folder: Path, reader: Reader) -> None:
        self._wanted, self._folder, self._reader = name, folder, reader
        self.embedder: Embedder | None = None
        self.vectors: Vectors | None = None
        self.note = "no embedder" if name == NONE else "the embedder is not loaded yet"
        """Why there is no embedder; empty where there is one."""
        self.left = 0
        self.meter = Meter()
        self.is_quiet: Callable[[], bool] = lambda: False
        """Tells whether nobody needs the cores, so that two of them may embed."""
        self._is_tried = name == NONE
        self._is_broken = False
        self._cache: VectorCache | None = None
        self._queue: deque[StoredChunk] = deque()
        self._made: list[tuple[bytes, NDArray[np.float16]]] = []
        self._ids: Sequence[int] | NDArray[np.int64] = ()
        """Of the chunks that are in what is searched, ascending."""
        self._synced = (-1, 0.0)
        self._sync_s = SYNC_S

    def remarks(self) -> list[str]:
        """Return all that went wrong with the vectors and was mended."""
        every = [*self._cache.remarks] if self._cache else []
        return every + (self.vectors.remarks if self.vectors else [])

    def retry(self) -> None:
        """Look again for an embedder that was not there: it may have been pulled meanwhile."""
        if self.embedder is None and self._wanted != NONE:
            self._is_tried = False

    def load(self) -> None:
        """Load embedder and vectors, once. Cost: about a second."""
        if self._is_tried:
            return
        self._is_tried = True
        try:
            from lcursor.index import embedders
            from lcursor.index.embed import Embedder
            from lcursor.index.vector_cache import VectorCache
            from lcursor.index.vectors import Vectors

            spec = embedders.find(self._wanted or embedders.DEFAULT)
            embedder = Embedder(spec)
            vectors = Vectors(self._folder, embedder.dim)
        except (LcursorError, ImportError) as error:
            self.note = f"only words are compared: {error}"
            return
        priority.give_back()  # loading takes some 50 MB more than keeping
        self._cache = VectorCache(None, embedder.name)
        self.vectors = vectors
        self.embedder = embedder
        self._sync()
        self.note = ""

    def step(self, store: Store) -> bool:
        """Embed a few chunks; return False when all have a vector, or there is no embedder."""
        self.load()
        if self.embedder is None or self._cache is None or self._is_broken:
            return False
        if not self._queue and not self._fetch(store):
            self._write(store)
            self._sync()
            return False
        if self._queue:
            threads = min(MOST_THREADS, priority.cores()) if self.is_quiet() else 1
            most = GPU_BATCH if self.embedder.on_gpu else BATCH * threads
            batch = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
            texts = [chunk.embedded(one.path, one.chunk) for one in batch]
            start_s = time.monotonic()
            try:
                made = self.embedder.texts(texts, threads).astype("float16")
            except Exception as error:  # noqa: BLE001 - a foreign library, with errors of its own
                self._give_up(f"the embedder failed: {error}")
                return False
            self.meter.embed_s += time.monotonic() - start_s
            self.meter.chunks += len(texts)
            pairs = [(one.chunk.digest, row) for one, row in zip(batch, made, strict=True)]
            self._cache.put(pairs)
            self._made += pairs
            self.left = max(self.left - len(batch), 0)
            if len(self._made) >= WRITE_EVERY or not self._queue:
                self._write(store)
        if time.monotonic() - self._synced[1] > self._sync_s:
            self._sync()
        return True

    def forget(self) -> None:
        """What was fetched is of another store."""
        import numpy as np

        self._queue.clear()
        self._made.clear()
        if self.vectors is not None:  # the numbers of its chunks mean others from now on
            self.vectors.update([], np.empty((0, self.vectors.dim), np.float16), self._ids)
        self._ids, self._synced = (), (-1, 0.0)

    def close(self) -> None:
        """Let go of what is open; after the pipeline's end."""
        if self.vectors is not None:
            self.vectors.close()
        if self._cache is not None:
            self._cache.close()
        self._reader.close()

    def _fetch(self, store: Store) -> bool:
        """Take chunks that have no vector; those that the cache knows have one at once."""
        assert self.embedder is not None
        assert self._cache is not None
        self._write(store)
        found = store.unembedded(WINDOW, self.embedder.name)
        if not found:
            self.left = 0
            return False
        by_digest = {one.chunk.digest: one for one in found}
        known = self._cache.get(by_digest)
        known = {key: row for key, row in known.items() if len(row) == self.embedder.dim}
        if known:
            store.add_vectors(self.embedder.name, list(known.items()))
        rest = [one for digest, one in by_digest.items() if digest not in known]
        rest.sort(key=lambda one: len(one.chunk.text))
        self._queue.extend(rest)
        counts = self._reader.counts(self.embedder.name)
        self.left = counts.chunks - counts.embedded
        return True

    def _give_up(self, reason: str) -> None:
        """Embed nothing more; what has a vector is still found by it."""
        self._is_broken = True
        self._queue.clear()
        self.note = reason

    def _write(self, store: Store) -> None:
        if self._made and self.embedder is not None:
            made, self._made = self._made, []
            store.add_vectors(self.embedder.name, made)

    def _sync(self) -> None:
        """Bring what is searched to what the store has."""
        if self.embedder is None or self.vectors is None:
            return
        generation = self._reader.generation
        if generation == self._synced[0]:
            return
        import numpy as np

        start_s = time.monotonic()
        name, dim = self.embedder.name, self.vectors.dim
        ids = self._reader.embedded(name)
        gone = np.setdiff1d(self._ids, ids, assume_unique=True).tolist()
        if gone:
            self.vectors.update([], np.empty((0, dim), np.float16), gone)
        new = np.setdiff1d(ids, self._ids, assume_unique=True)
        for at in range(0, len(new), AT_ONCE):
            self.vectors.update(*self._reader.vectors(name, new[at : at + AT_ONCE].tolist()))
        self._ids = ids
        now_s = time.monotonic()
        self._synced = (generation, now_s)
        self._sync_s = max(SYNC_S, 20 * (now_s - start_s))
