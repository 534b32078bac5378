"""Find the chunks whose vectors are nearest to a query. The only importer of usearch.

All vectors of a project are in one matrix in memory. Below `EXACT_BELOW` chunks usearch compares
the query with every row. Above, an HNSW graph finds candidates, and vectors that came after it was
built are compared one by one. The graph is built on a thread of its own (`lcursor-graph`), since a
usearch index blocks searches while vectors are added to it. Its file is a cache. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcursor.index.embed import load_early

EXACT_BELOW = 50_000
MARGIN = 50
"""Additional candidates that are compared again in 32-bit floats."""
MIN_ROWS = 256
"""Initial capacity of the matrix."""
MAX_FRESH = 4_096
"""Vectors outside of the graph before another one is built, or a tenth of all."""
MAX_GONE = 0.25
"""Share of removed vectors in the graph before another one is built."""
SLICE = 1_000
"""Vectors added to a new graph between two checks of whether to stop."""
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 12, 64, 96
SAMPLES = 48
MIN_RECALL = 0.9
"""A graph that finds a smaller share of the ten nearest of the samples is not used."""


class VectorIndex:
    """The vectors of a project, by chunk id.

    Args:
        path: the file of the graph; None keeps none.
        exact_below: number of chunks from which on a graph is built.

    Raises:
        ImportError: usearch is not installed.
    """

    def __init__(self, path: Path | None, dim: int, *, exact_below: int = EXACT_BELOW) -> None:
        load_early()  # before usearch, or a later import of onnxruntime crashes
        from usearch import index

        self._usearch: Any = index
        self.path, self.dim = path, dim
        self.remarks: list[str] = []
        self._exact_below = exact_below
        self._lock = threading.Lock()
        self._count = 0
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._vectors: NDArray[np.float16] = np.empty((0, dim), np.float16)
        self._row_of: dict[int, int] = {}
        self._graph: Any = None
        self._in_graph: set[int] = set()
        self._fresh: set[int] = set()
        """Ids whose vectors the graph does not have."""
        self._changed: set[int] = set()
        """Ids that were added or replaced since the running build began."""
        self._rejected_count = 0
        """Number of vectors of which a graph was not good enough."""
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> NDArray[np.int64]:
        """The ids of all chunks that have a vector, ascending."""
        with self._lock:
            return np.sort(self._ids[: self._count])

    @property
    def has_graph(self) -> bool:
        """Whether a graph is used."""
        return self._graph is not None

    def update(
        self,
        ids: Iterable[int],
        vectors: NDArray[np.float16],
        removed: Iterable[int] = (),
    ) -> None:
        """Remove some vectors, then add or replace some; an id may be among both."""
        numbers = np.fromiter(ids, np.int64)
        # A broken disk makes numbers of its own.
        rows = np.nan_to_num(np.asarray(vectors, np.float16), nan=0.0, posinf=0.0, neginf=0.0)
        with self._lock:
            for number in removed:
                self._remove(int(number))
            self._reserve(self._count + len(numbers))
            at = []
            for number in numbers.tolist():
                row = self._row_of.setdefault(number, self._count)
                self._count += row == self._count
                at.append(row)
            self._ids[at], self._vectors[at] = numbers, rows
            if self._graph is not None:
                self._fresh.update(numbers.tolist())
            if self._thread and self._thread.is_alive():
                self._changed.update(numbers.tolist())
            self._build_if_due()

    def add(
        self, digests: Mapping[int, bytes], vectors: Mapping[bytes, NDArray[np.float16]]
    ) -> list[int]:
        """Add the known vectors of some chunks; return the ids of those chunks."""
        known = [
            (number, vectors[digest]) for number, digest in digests.items() if digest in vectors
        ]
        known = [(number, row) for number, row in known if len(row) == self.dim]
        if known:
            self.update([number for number, _ in known], np.stack([row for _, row in known]))
        return [number for number, _ in known]

    def clear(self) -> None:
        """Remove all vectors."""
        self.update([], np.empty((0, self.dim), np.float16), self.ids.tolist())

    def search(
        self, query: NDArray[np.float32], limit: int, allowed: NDArray[np.int64] | None = None
    ) -> list[tuple[int, float]]:
        """Return the nearest chunks and their cosine, best first.

        Args:
            allowed: ids of chunks, ascending; only these are returned.
        """
        norm = float(np.linalg.norm(query))
        if not norm > 0 or not np.isfinite(norm) or limit <= 0:
            return []
        query = query / np.float32(norm)
        with self._lock:
            rows: NDArray[np.int64] | None = None
            if allowed is not None:
                rows = np.flatnonzero(np.isin(self._ids[: self._count], allowed))
            elif self._graph is not None and self._count >= self._exact_below:
                rows = self._candidates(query, limit)
            return self._compare(query, limit, rows)

    def close(self) -> None:
        """Stop building a graph; waits for that a moment."""
        self._stop.set()
        if self._thread:
            self._thread.join(5.0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no graph is being built; return whether that is so."""
        if self._thread:
            self._thread.join(timeout_s)
            return not self._thread.is_alive()
        return True

    # The matrix

    def _reserve(self, count: int) -> None:
        if count > len(self._ids):
            size = max(count, len(self._ids) * 3 // 2, MIN_ROWS)
            self._ids = np.resize(self._ids, size)
            grown = np.zeros((size, self.dim), np.float16)
            grown[: self._count] = self._vectors[: self._count]
            self._vectors = grown

    def _remove(self, number: int) -> None:
        """Remove a vector, if there is one; the last row moves into its place."""
        self._fresh.discard(number)
        at = self._row_of.pop(number, None)
        if at is not None:
            self._count -= 1
            if at != self._count:
                self._ids[at], self._vectors[at] = (
                    self._ids[self._count],
                    self._vectors[self._count],
                )
                self._row_of[int(self._ids[at])] = at

    # Comparing

    def _candidates(self, query: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
        """Return the rows that the graph finds, and all rows that it does not have."""
        found = self._graph.search(query.astype(np.float16), limit + MARGIN).keys.tolist()
        numbers = {number for number in found if number in self._row_of} | self._fresh
        return np.array([self._row_of[number] for number in numbers], np.int64)

    def _compare(
        self, query: NDArray[np.float32], limit: int, rows: NDArray[np.int64] | None
    ) -> list[tuple[int, float]]:
        if rows is None:
            rows = self._nearest(self._vectors[: self._count], query, limit + MARGIN)
        elif len(rows) > limit + MARGIN:
            rows = rows[self._nearest(self._vectors[rows], query, limit + MARGIN)]
        vectors = self._vectors[rows].astype(np.float32)
        scores = (vectors @ query) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-6)
        ids = self._ids[rows]
        best = np.lexsort((ids, -scores))[:limit]
        return list(zip(ids[best].tolist(), scores[best].tolist(), strict=True))

    def _nearest(
        self, vectors: NDArray[np.float16], query: NDArray[Any], limit: int
    ) -> NDArray[np.int64]:
        """Return the rows nearest to a query by 16-bit floats."""
        if len(vectors) <= limit:
            return np.arange(len(vectors))
        half = query.astype(np.float16)
        found = self._usearch.search(vectors, half, limit, exact=True, threads=1)  # by the cosine
        return np.asarray(found.keys, np.int64)

    # The graph

    def _build_if_due(self) -> None:
        gone = len(self._in_graph) - (self._count - len(self._fresh))
        if (
            self._count >= self._exact_below
            and self._count > self._rejected_count * 1.5
            and not self._stop.is_set()
            and not (self._thread and self._thread.is_alive())
            and (
                self._graph is None
                or len(self._fresh) > max(MAX_FRESH, self._count // 10)
                or gone > len(self._in_graph) * MAX_GONE
            )
        ):
            self._thread = threading.Thread(target=self._make, name="lcursor-graph", daemon=True)
            self._thread.start()

    def _make(self) -> None:
        try:
            with self._lock:
                ids = self._ids[: self._count].copy()
                vectors = self._vectors[: self._count].copy()
                self._changed.clear()
                is_first = self._graph is None
            graph = self._load(ids, vectors) if is_first else None
            if graph is None:
                graph = self._build(ids, vectors)
            if graph is None:
                return
            inside = set(graph.keys[:].tolist())
            with self._lock:
                now = self._row_of.keys()
                self._graph, self._in_graph = graph, inside & now
                self._fresh = (now - inside) | (now & self._changed)
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._rejected_count = self._count
            self.remarks.append(f"no graph of the vectors could be built: {error}")

    def _build(self, ids: NDArray[np.int64], vectors: NDArray[np.float16]) -> Any:
        """Build a graph and keep it in the file; None when stopped, or when it is not good."""
        graph = self._usearch.Index(
            ndim=self.dim,
            metric="cos",
            dtype="f16",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
        for at in range(0, len(ids), SLICE):
            if self._stop.is_set():
                return None
            part = slice(at, at + SLICE)
            graph.add(ids[part].astype(np.uint64), vectors[part], threads=1)
        recall = self._recall(graph, ids, vectors)
        if recall < MIN_RECALL:
            self._rejected_count = len(ids)
            self.remarks.append(
                f"a graph of {len(ids)} vectors finds {recall:.0%} of the nearest: all vectors are "
                "compared instead"
            )
            return None
        if self.path is not None:
            partial = self.path.with_name(f"{self.path.name}.partial")
            try:
                graph.save(os.fspath(partial))
                os.replace(partial, self.path)
            except (OSError, RuntimeError) as error:
                self.remarks.append(f"the graph of the vectors cannot be kept ({error})")
        return graph

    def _load(self, ids: NDArray[np.int64], vectors: NDArray[np.float16]) -> Any:
        """Return the graph in the file; None if there is none that fits these vectors."""
        if self.path is None or not self.path.exists():
            return None
        try:
            graph = self._usearch.Index.restore(os.fspath(self.path))
            inside = np.isin(ids, np.asarray(graph.keys[:], np.int64))
            fresh, gone = len(ids) - inside.sum(), len(graph) - inside.sum()
            if (
                graph.ndim == self.dim
                and fresh <= max(MAX_FRESH, len(ids) // 10)
                and gone <= len(graph) * MAX_GONE
                and self._recall(graph, ids[inside], vectors[inside]) >= MIN_RECALL
            ):
                return graph
        except Exception as error:  # noqa: BLE001 - usearch documents no errors
            self.remarks.append(f"the graph of the vectors was damaged ({error}) and is rebuilt")
        with contextlib.suppress(OSError):
            self.path.unlink()
        return None

    def _recall(self, graph: Any, ids: NDArray[np.int64], vectors: NDArray[np.float16]) -> float:
        """Return the share of the ten nearest that a graph finds, for some samples."""
        chosen = np.random.default_rng(0).choice(len(ids), min(SAMPLES, len(ids)), replace=False)
        hits = 0
        for row in chosen.tolist():
            nearest = set(ids[self._nearest(vectors, vectors[row], 10)].tolist())
            hits += len(nearest & set(graph.search(vectors[row], 10).keys.tolist()))
        return hits / 10 / max(len(chosen), 1)
