"""The words of some chunks as arrays, by word: what `postings` is made of.

A word is its CRC-32: of the 50,000 words of a large project hardly two are one by chance, and then
a chunk scores a little high. Pure functions of arrays.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TERM_BYTES = 5
"""Of a word in a bag: its sum, and how often it is there."""


@dataclass(slots=True)
class Segment:
    """Some chunks, by word. Only `is_there` ever changes, by being replaced."""

    ids: NDArray[np.int64]
    """Ascending."""
    sizes: NDArray[np.float32]
    """Words in each chunk."""
    words: NDArray[np.uint32]
    """Sums of the words that are there, ascending."""
    starts: NDArray[np.int64]
    """Where the chunks of a word begin, and at the end how many there are."""
    chunks: NDArray[np.uint32]
    """Places in `ids`."""
    counts: NDArray[np.uint8]
    is_there: NDArray[np.bool_]
    is_whole: bool = True
    """Whether nothing of it is gone."""

    def having(self, word: int) -> slice:
        """Return which of `chunks` and `counts` are of a word."""
        import numpy as np

        at = int(np.searchsorted(self.words, np.uint32(word)))
        if at == len(self.words) or int(self.words[at]) != word:
            return slice(0, 0)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))


def sum_of(term: str) -> int:
    """Return a word as a number."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def bag(text: str) -> bytes:
    """Return the words of a chunk as the table keeps them: sums, ascending, then counts."""
    import numpy as np

    counted = Counter(text.split())
    words = np.fromiter(map(sum_of, counted), np.uint32, len(counted))
    counts = np.minimum(np.fromiter(counted.values(), np.int64, len(counted)), 255)
    order = np.argsort(words)
    return words[order].astype("<u4").tobytes() + counts[order].astype(np.uint8).tobytes()


def members(ids: NDArray[np.int64], there: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some numbers are among others, both ascending."""
    import numpy as np

    if not len(there):
        return np.zeros(len(ids), np.bool_)
    at = np.minimum(np.searchsorted(there, ids), len(there) - 1)
    return np.asarray(there[at] == ids)


def segment_of(rows: Sequence[tuple[int, bytes]]) -> Segment:
    """Make a segment of chunks and their bags."""
    import numpy as np

    many = np.array([len(data) // TERM_BYTES for _, data in rows], np.int64)
    words = b"".join(data[: 4 * size] for (_, data), size in zip(rows, many.tolist(), strict=True))
    counts = b"".join(
        data[4 * size : 5 * size] for (_, data), size in zip(rows, many.tolist(), strict=True)
    )
    chunks = np.repeat(np.arange(len(rows), dtype=np.uint32), many)
    number = np.frombuffer(counts, np.uint8)
    sizes = np.bincount(chunks, number, len(rows)).astype(np.float32)
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return _by_word(ids, sizes, np.frombuffer(words, "<u4"), chunks, number)


def joined(parts: Sequence[Segment]) -> Segment:
    """Make one segment of several that follow each other, without what is gone."""
    import numpy as np

    ids, sizes, words, chunks, counts, before = [], [], [], [], [], 0
    for one in parts:
        is_there = one.is_there
        place = np.cumsum(is_there) - 1 + before
        every = np.repeat(one.words, np.diff(one.starts))
        kept = is_there[one.chunks]
        ids.append(one.ids[is_there])
        sizes.append(one.sizes[is_there])
        words.append(every[kept])
        chunks.append(place[one.chunks[kept]].astype(np.uint32))
        counts.append(one.counts[kept])
        before += int(is_there.sum())
    return _by_word(
        np.concatenate(ids),
        np.concatenate(sizes),
        np.concatenate(words),
        np.concatenate(chunks),
        np.concatenate(counts),
    )


def _by_word(
    ids: NDArray[np.int64],
    sizes: NDArray[np.float32],
    words: NDArray[np.uint32],
    chunks: NDArray[np.uint32],
    counts: NDArray[np.uint8],
) -> Segment:
    """Make a segment of what was not in order."""
    import numpy as np

    # Sorting numbers is several times as fast as sorting places.
    order = np.sort(
        (words.astype(np.uint64) << np.uint64(32)) | np.arange(len(words), dtype=np.uint64)
    )
    at = (order & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    sorted_words = (order >> np.uint64(32)).astype(np.uint32)
    del order
    is_first = np.ones(len(at), np.bool_)
    is_first[1:] = sorted_words[1:] != sorted_words[:-1]
    starts = np.flatnonzero(is_first)
    return Segment(
        ids,
        sizes,
        sorted_words[starts],
        np.append(starts, len(at)).astype(np.int64),
        chunks[at],
        counts[at],
        np.ones(len(ids), np.bool_),
    )
