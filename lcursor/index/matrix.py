"""Vectors in memory, in rows that are filled from the front: in half floats and in bytes.

The bytes are for comparing all of them fast, the half floats for comparing the best of those again.
Used by `vectors.Vectors`, under its lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lcursor.errors import IndexFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_ROWS = 256


class Matrix:
    """Vectors by number.

    Args:
        dim: numbers in a vector.
    """

    def __init__(self, dim: int) -> None:
        import numpy as np

        self.dim, self.count = dim, 0
        self.rows: dict[int, int] = {}
        """Where the vector of a number is."""
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._truth: NDArray[np.float16] = np.empty((0, dim), np.float16)
        self._scan: NDArray[np.int8] = np.empty((0, dim), np.int8)

    @property
    def ids(self) -> NDArray[np.int64]:
        """The numbers, by row."""
        return self._ids[: self.count]

    @property
    def truth(self) -> NDArray[np.float16]:
        """The vectors, by row."""
        return self._truth[: self.count]

    @property
    def scan(self) -> NDArray[np.int8]:
        """The vectors in bytes, by row."""
        return self._scan[: self.count]

    def prepare(
        self, ids: NDArray[np.int64] | Iterable[int], vectors: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.float16], NDArray[np.int8]]:
        """Return numbers, each once, and their vectors, fit for `put`. Needs no lock.

        Raises:
            IndexFailed: they do not fit.
        """
        import numpy as np

        numbers = np.fromiter(ids, np.int64)
        rows = np.asarray(vectors, np.float16)
        if len(numbers) == 0:
            rows = np.empty((0, self.dim), np.float16)
        if rows.shape != (len(numbers), self.dim):
            raise IndexFailed(
                f"vectors of the form {rows.shape} do not fit {len(numbers)} chunks of {self.dim}"
            )
        last = {number: at for at, number in enumerate(numbers.tolist())}
        if len(last) < len(numbers):
            kept = [*last.values()]
            numbers, rows = numbers[kept], rows[kept]
        if not np.isfinite(rows).all():
            rows = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        return numbers, rows, in_bytes(rows)

    def put(
        self, numbers: NDArray[np.int64], rows: NDArray[np.float16], scan: NDArray[np.int8]
    ) -> None:
        """Add vectors, or replace them."""
        import numpy as np

        at = np.array([self.rows.get(number, -1) for number in numbers.tolist()], np.int64)
        is_new = at < 0
        new = int(is_new.sum())
        self._make_room(self.count + new)
        at[is_new] = np.arange(self.count, self.count + new)
        self._ids[at], self._truth[at], self._scan[at] = numbers, rows, scan
        self.rows.update(zip(numbers.tolist(), at.tolist(), strict=True))
        self.count += new

    def take(self, number: int) -> None:
        """Remove one, if it is there: the last row moves into its place."""
        at = self.rows.pop(number, None)
        if at is None:
            return
        last = self.count - 1
        if at != last:
            moved = int(self._ids[last])
            self._ids[at], self._truth[at] = moved, self._truth[last]
            self._scan[at] = self._scan[last]
            self.rows[moved] = at
        self.count = last

    def rows_of(self, allowed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of some numbers, given in ascending order."""
        import numpy as np

        if not len(allowed):
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(allowed, self.ids), len(allowed) - 1)
        return np.flatnonzero(allowed[at] == self.ids)

    def _make_room(self, count: int) -> None:
        import numpy as np

        if count <= len(self._ids):
            return
        room = max(count, len(self._ids) * 3 // 2, LEAST_ROWS)
        for name in ("_ids", "_truth", "_scan"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)


def in_bytes(vectors: NDArray[Any]) -> NDArray[np.int8]:
    """Return vectors in bytes, each by its own measure: only their direction counts."""
    import numpy as np

    rows = np.asarray(vectors, np.float32)
    if not len(rows):
        return np.empty(rows.shape, np.int8)
    most = np.abs(rows).max(axis=1, keepdims=True)
    return np.rint(rows * (127 / np.where(most > 0, most, 1))).astype(np.int8)
