"""Files, chunks and vectors made up, for the tests and for the processes that they kill."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lcursor.index import words
from lcursor.index.records import Chunk, FileState, Filters, Parsed, Symbol
from lcursor.index.store import Entry, Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def sum_of(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def chunk(text: str, first_row: int = 0, scope: str = "", rows: int = 10) -> Chunk:
    digest = sum_of(f"{scope}\n{text}")
    return Chunk(first_row, first_row + rows, text, scope, "code", digest)


def entry(
    path: str,
    *texts: str,
    symbols: Sequence[Symbol] = (),
    language: str = "python",
    mtime_ns: int = 1,
) -> Entry:
    """What a store takes; the digest of the file is that of its texts."""
    chunks = [chunk(text, 10 * number) for number, text in enumerate(texts)]
    state = FileState(sum(map(len, texts)), mtime_ns, sum_of("".join(texts)))
    return path, state, Parsed(language, chunks, list(symbols))


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def vector(number: int, dim: int = 8) -> NDArray[np.float16]:
    import numpy as np

    return np.random.default_rng(number).standard_normal(dim).astype(np.float16)


def pairs(*numbers: int) -> list[tuple[bytes, NDArray[np.float16]]]:
    """What a cache of vectors takes."""
    return [(key(number), vector(number)) for number in numbers]


def found(store: Store, question: str, filters: Filters | None = None) -> list[str]:
    """The texts that a question finds, best first."""
    reader = store.reader()
    try:
        hits = reader.lexical(words.terms(question), 50, filters)
        assert hits == sorted(hits, key=lambda hit: -hit[1])
        chunks = reader.chunks([number for number, _ in hits])
        return [chunks[number].text for number, _ in hits]
    finally:
        reader.close()
