"""A temporary index for the evals of search; its vectors are kept in the user's cache."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lcursor.index.chunk import embedded
from lcursor.index.embed import Embedder
from lcursor.index.records import Chunk, FileState, Parsed
from lcursor.index.search import Searcher
from lcursor.index.store import Store
from lcursor.index.vector_index import VectorIndex
from lcursor.index.vector_store import VectorStore

File = tuple[str, FileState, Parsed]
OnProgress = Callable[[int, int], None]
"""Called with the numbers of new vectors made and wanted."""
BATCH = 64
"""Texts embedded between two progress lines."""


@contextmanager
def temporary_index(
    files: Iterable[File],
    embedder: Embedder | None = None,
    on_progress: OnProgress = lambda made, wanted: None,
    text_of: Callable[[str, Chunk], str] = embedded,
) -> Iterator[Searcher]:
    """Index files in a temporary folder, and yield a searcher.

    Args:
        files: parsed.
        embedder: None for lexical search alone.
        on_progress: see `OnProgress`.
        text_of: returns the text to embed for a path and a chunk.
    """
    with (
        tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder,
        closing(Store(Path(folder))) as store,
    ):
        store.put_many(files)
        with closing(store.reader()) as reader:
            if embedder is None:
                yield Searcher(reader)
                return
            chunks = reader.chunks(reader.chunk_ids().tolist())
            texts = {one.digest: text_of(one.path, one) for one in chunks.values()}
            found = _vectors(texts, embedder, on_progress)
            vectors = VectorIndex(embedder.dim)
            vectors.add({number: one.digest for number, one in chunks.items()}, found)
            yield Searcher(reader, vectors, embedder)


def _vectors(
    texts: Mapping[bytes, str], embedder: Embedder, on_progress: OnProgress
) -> dict[bytes, NDArray[np.float16]]:
    """Return the vectors of texts by digest, as far as possible from the user's cache."""
    with closing(VectorStore(None, embedder.name)) as cache:
        found = dict(cache.get(list(texts)))
        # By length, so that the texts of a batch have similar lengths.
        missing = sorted(texts.keys() - found.keys(), key=lambda each: len(texts[each]))
        for at in range(0, len(missing), BATCH):
            some = missing[at : at + BATCH]
            made = embedder.texts([texts[digest] for digest in some]).astype(np.float16)
            pairs = list(zip(some, made, strict=True))
            cache.put(pairs)
            found.update(pairs)
            on_progress(min(at + BATCH, len(missing)), len(missing))
    return found
