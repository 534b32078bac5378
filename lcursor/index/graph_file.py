"""The file of a graph of vectors: written whole or not at all, and read only if nothing is wrong.

Knows nothing of what the graph is: bytes with a checksum, which numbers are in it, and a mark of
each vector, so that the graph of other vectors is never taken for the graph of these.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor import folders

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"lcursor graph 1\n"
HEAD = struct.Struct("<16sIQQ32s")
"""Magic, numbers in a vector, vectors, bytes of the graph, sha256 of all that follows."""
BLOCK = 4_096


class GraphFile:
    """A cache on the disk."""

    def __init__(self, path: Path, dim: int) -> None:
        self.path, self._dim = path, dim

    def write(self, ids: NDArray[np.int64], marks: NDArray[np.uint64], body: bytes) -> None:
        """Replace the file.

        Raises:
            OSError: it cannot be written; the old one stays.
        """
        parts = [ids.astype("<i8").tobytes(), marks.astype("<u8").tobytes(), body]
        summed = hashlib.sha256()
        for part in parts:
            summed.update(part)
        head = HEAD.pack(MAGIC, self._dim, len(ids), len(body), summed.digest())
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folders.write(self.path, head, *parts, is_firm=True)

    def read(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], bytes]:
        """Return the numbers, the marks and the graph.

        Raises:
            OSError, ValueError: it is not all there, or not what was written.
        """
        import numpy as np

        data = self.path.read_bytes()
        if len(data) < HEAD.size:
            raise ValueError("it is too short")
        magic, dim, count, size, digest = HEAD.unpack_from(data)
        if magic != MAGIC or dim != self._dim:
            raise ValueError("it is of another kind")
        if len(data) != HEAD.size + 16 * count + size:
            raise ValueError("its length is wrong")
        if hashlib.sha256(memoryview(data)[HEAD.size :]).digest() != digest:
            raise ValueError("its sum is wrong")
        ids = np.frombuffer(data, "<i8", count, HEAD.size)
        marks = np.frombuffer(data, "<u8", count, HEAD.size + 8 * count)
        return ids.astype(np.int64), marks.astype(np.uint64), data[HEAD.size + 16 * count :]


def fingerprints(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Return a number for each vector that another vector will not have."""
    import numpy as np

    odd = np.random.default_rng(7).integers(0, 1 << 63, vectors.shape[1], np.uint64) * 2 + 1
    marks = np.empty(len(vectors), np.uint64)
    for at in range(0, len(vectors), BLOCK):
        bits = np.ascontiguousarray(vectors[at : at + BLOCK]).view(np.uint16).astype(np.uint64)
        marks[at : at + BLOCK] = (bits * odd).sum(axis=1, dtype=np.uint64)
    return marks
