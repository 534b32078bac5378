"""Which chunks are nearest to a question: the vectors in memory, and the only importer of usearch.

Below `EXACT_BELOW` chunks everything is compared, in bytes first, the best again in half floats.
Above, a graph answers, with what is newer compared one by one; the graph is made on a thread of its
own (`lcursor-graph`), never fed while it answers, and its file is a cache that may vanish. The
truth is in the store. Any thread may ask and change.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor.errors import IndexFailed
from lcursor.index.graph_file import GraphFile, fingerprints
from lcursor.index.matrix import Matrix, in_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXACT_BELOW = 50_000
AGAIN = 50
"""So many more than asked for are compared again in half floats: a byte is a rough measure."""
BLOCK = 4_096
"""Rows compared at once where usearch is missing."""
FRESH = 4_096
"""New vectors beside a graph before another one is made, or a tenth of all."""
SLICE = 1_000
"""Vectors fed to a graph that nobody asks yet, between two looks at whether to end."""
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 12, 64, 96
SAMPLE = 48
LEAST_RECALL = 0.9
"""A graph that finds less of the ten nearest is not used: all is compared."""
MOST_STALE = 0.25
"""Share of a graph's vectors that may be gone before another one is made."""


class Vectors:
    """The vectors of a project, by number of chunk.

    Args:
        folder: where the graph's file is; None keeps none.
        dim: numbers in a vector.
        exact_below: chunks from which on a graph is made.

    Raises:
        IndexFailed: vectors or a question of another size, from `update` and `search`.
    """

    def __init__(self, folder: Path | None, dim: int, *, exact_below: int = EXACT_BELOW) -> None:
        self.dim = dim
        self.remarks: list[str] = []
        self._exact_below = exact_below
        self._file = GraphFile(folder / "graph.cache", dim) if folder else None
        self._lock = threading.Lock()
        self._all = Matrix(dim)
        self._graph: Any = None
        self._in_graph: set[int] = set()
        self._fresh: set[int] = set()
        self._meanwhile: set[int] = set()
        self._is_poor = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def __len__(self) -> int:
        return self._all.count

    @property
    def has_graph(self) -> bool:
        """Whether a graph answers."""
        return self._graph is not None

    def update(
        self,
        ids: NDArray[np.int64] | Iterable[int],
        vectors: NDArray[np.float16],
        removed: Iterable[int] = (),
    ) -> None:
        """Take some away, then add or replace some; a number may be in both.

        Cost: 30,000 at once take about 0.1 s.
        """
        numbers, rows, scan = self._all.prepare(ids, vectors)
        with self._lock:
            for number in removed:
                self._all.take(int(number))
                self._fresh.discard(int(number))
            self._all.put(numbers, rows, scan)
            if self._graph is not None:
                self._fresh.update(numbers.tolist())
            if self._thread and self._thread.is_alive():
                self._meanwhile.update(numbers.tolist())
        self._look()

    def search(
        self, query: NDArray[np.float32], limit: int, allowed: NDArray[np.int64] | None = None
    ) -> list[tuple[int, float]]:
        """Return the nearest chunks and their cosine, best first.

        Args:
            allowed: numbers of chunks, ascending; none but these are found.
        """
        import numpy as np

        asked = np.asarray(query, np.float32).reshape(-1)
        if len(asked) != self.dim:
            raise IndexFailed(f"a question of {len(asked)} numbers among vectors of {self.dim}")
        norm = float(np.linalg.norm(asked))
        if not norm > 0 or not np.isfinite(norm) or limit <= 0:
            return []
        asked = asked / np.float32(norm)
        with self._lock:
            if not self._all.count:
                return []
            if allowed is not None:
                rows = self._all.rows_of(allowed)
            elif self._graph is not None and self._all.count >= self._exact_below:
                rows = self._graph_rows(asked, limit)
            else:
                rows = None
            return self._nearest(asked, limit, rows)

    def rows(self, ids: Iterable[int]) -> NDArray[np.float32]:
        """Return the vectors of chunks, each of length one; zeros for one that has none."""
        import numpy as np

        wanted = list(ids)
        found = np.zeros((len(wanted), self.dim), np.float32)
        with self._lock:
            at = [self._all.rows.get(number, -1) for number in wanted]
            known = [place for place, row in enumerate(at) if row >= 0]
            found[known] = self._all.truth[[at[place] for place in known]]
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        scaled: NDArray[np.float32] = found / np.maximum(norms, 1e-6)
        return scaled

    def close(self) -> None:
        """End the thread that makes a graph; wait for it a moment."""
        self._stop.set()
        if self._thread:
            self._thread.join(5.0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no graph is being made; return whether that is so."""
        if self._thread:
            self._thread.join(timeout_s)
            return not self._thread.is_alive()
        return True

    # Comparing

    def _graph_rows(self, asked: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
        """Return the rows that the graph finds, and all that it does not know."""
        import numpy as np

        found = self._graph.search(in_bytes(asked[None])[0], limit + AGAIN).keys.tolist()
        numbers = {number for number in found if number in self._all.rows} | self._fresh
        return np.array([self._all.rows[number] for number in numbers], np.int64)

    def _nearest(
        self, asked: NDArray[np.float32], limit: int, rows: NDArray[np.int64] | None
    ) -> list[tuple[int, float]]:
        """Compare rows, roughly and then well; None means all."""
        import numpy as np

        scan = self._all.scan if rows is None else self._all.scan[rows]
        if len(scan) > limit + AGAIN:
            near = _roughly(scan, in_bytes(asked[None])[0], limit + AGAIN)
            rows = near if rows is None else rows[near]
        elif rows is None:
            rows = np.arange(self._all.count)
        truth = self._all.truth[rows].astype(np.float32)
        norms = np.maximum(np.linalg.norm(truth, axis=1), 1e-6)
        scores = (truth @ asked) / norms
        ids = self._all.ids[rows]
        best = np.lexsort((ids, -scores))[:limit]
        return list(zip(ids[best].tolist(), scores[best].tolist(), strict=True))

    # The graph

    def _look(self) -> None:
        """Have a graph made where one is due."""
        with self._lock:
            gone = len(self._in_graph) - (self._all.count - len(self._fresh))
            is_due = (
                self._all.count >= self._exact_below
                and self._all.count > self._is_poor * 1.5
                and not self._stop.is_set()
                and not (self._thread and self._thread.is_alive())
                and (
                    self._graph is None
                    or len(self._fresh) > max(FRESH, self._all.count // 10)
                    or gone > len(self._in_graph) * MOST_STALE
                )
            )
            if is_due:
                self._thread = threading.Thread(
                    target=self._make, name="lcursor-graph", daemon=True
                )
                self._thread.start()

    def _make(self) -> None:
        try:
            with self._lock:
                ids, truth = self._all.ids.copy(), self._all.truth.copy()
                self._meanwhile.clear()
            graph, inside = (None, ids) if self._graph is not None else self._read(ids, truth)
            if graph is None:
                graph, inside = self._build(truth, ids), ids
                if graph is None:
                    return
                self._write(graph, ids, truth)
            kept = set(inside.tolist())
            with self._lock:
                # What came or changed meanwhile is compared one by one.
                fresh = (self._all.rows.keys() - kept) | (self._all.rows.keys() & self._meanwhile)
                self._graph, self._in_graph, self._fresh = graph, kept, fresh
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._is_poor = self._all.count
            self.remarks.append(
                f"no graph of the vectors could be made ({error}): all are compared"
            )

    def _build(self, truth: NDArray[np.float16], ids: NDArray[np.int64]) -> Any:
        """Make a graph of vectors; None when told to end, or when it would find too little."""
        import numpy as np

        graph = _empty(self.dim)
        scan = in_bytes(truth)
        for at in range(0, len(ids), SLICE):
            if self._stop.is_set():
                return None
            part = slice(at, at + SLICE)
            graph.add(ids[part].astype(np.uint64), scan[part], threads=1)
        chosen = np.random.default_rng(0).choice(len(ids), min(SAMPLE, len(ids)), replace=False)
        hits = 0
        for row in chosen.tolist():
            true = set(ids[_roughly(scan, scan[row], 10)].tolist())
            hits += len(true & set(graph.search(scan[row], 10).keys.tolist()))
        if hits < LEAST_RECALL * 10 * len(chosen):
            self._is_poor = len(ids)
            self.remarks.append(
                f"a graph of {len(ids)} vectors would find {hits / 10 / len(chosen):.0%} of the "
                "nearest: all are compared instead"
            )
            return None
        return graph

    def _read(
        self, ids: NDArray[np.int64], truth: NDArray[np.float16]
    ) -> tuple[Any, NDArray[np.int64]]:
        """Return the graph of the file, and which of its vectors are true still."""
        import numpy as np

        if self._file is None or not self._file.path.exists():
            return None, ids
        try:
            inside, marks, body = self._file.read()
            graph = _empty(self.dim)
            graph.load(body)
            if len(graph) != len(inside):
                raise ValueError(f"it has {len(graph)} of {len(inside)} vectors")
        except Exception as error:  # noqa: BLE001 - a foreign library reads a file
            self.remarks.append(f"the graph of the vectors was damaged ({error}) and is made anew")
            return None, ids
        now = dict(zip(ids.tolist(), fingerprints(truth).tolist(), strict=True))
        is_true = np.array(
            [
                now.get(one) == mark
                for one, mark in zip(inside.tolist(), marks.tolist(), strict=True)
            ],
            bool,
        )
        true = inside[is_true]
        is_enough = len(true) >= len(inside) * (1 - MOST_STALE) and len(ids) - len(true) <= max(
            FRESH, len(ids) // 10
        )
        return (graph, true) if is_enough else (None, ids)

    def _write(self, graph: Any, ids: NDArray[np.int64], truth: NDArray[np.float16]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(ids, fingerprints(truth), bytes(graph.save()))
        except OSError as error:
            self.remarks.append(f"the graph of the vectors cannot be kept ({error})")


def _roughly(scan: NDArray[np.int8], asked: NDArray[np.int8], limit: int) -> NDArray[np.int64]:
    """Return the rows nearest to a question, about."""
    import numpy as np

    limit = min(limit, len(scan))
    try:
        usearch = _usearch()
    except ImportError:
        scores = np.empty(len(scan), np.float32)
        wanted = asked.astype(np.float32)
        for at in range(0, len(scan), BLOCK):
            part = scan[at : at + BLOCK].astype(np.float32)
            norms = np.maximum(np.linalg.norm(part, axis=1), 1e-6)
            scores[at : at + BLOCK] = (part @ wanted) / norms
        return np.argpartition(-scores, limit - 1)[:limit].astype(np.int64)
    found = usearch.search(scan, asked, limit, exact=True, threads=1)  # by the cosine
    return np.asarray(found.keys, np.int64)


def _usearch() -> Any:
    from lcursor.index.embed import load_early

    load_early()  # before usearch, or a later import of onnxruntime crashes
    from usearch import index

    return index


def _empty(dim: int) -> Any:
    return _usearch().Index(
        ndim=dim,
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )
