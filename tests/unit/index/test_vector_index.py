"""The nearest vectors: those of a plain comparison, whatever was added or removed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lcursor.index.vector_index import VectorIndex

DIM = 32
Found = list[tuple[int, float]]


def clouds(count: int, seed: int = 0, dim: int = DIM) -> NDArray[np.float16]:
    """VectorIndex as texts have them: in clouds, all of one length."""
    dice = np.random.default_rng(seed)
    middles = np.random.default_rng(99).standard_normal((40, dim))
    rows = middles[dice.integers(0, 40, count)] + 0.7 * dice.standard_normal((count, dim))
    made: NDArray[np.float16] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made.astype(np.float16)


def true(
    ids: Sequence[int], rows: NDArray[np.float16], query: NDArray[Any], limit: int
) -> list[int]:
    """The nearest, by the book."""
    wide = rows.astype(np.float64)
    scores = wide @ query.astype(np.float64) / np.linalg.norm(wide, axis=1)
    return [ids[at] for at in np.lexsort((ids, -scores))[:limit]]


def recall(found: Found, wanted: Sequence[int]) -> float:
    return len({number for number, _ in found} & set(wanted)) / len(wanted)


@pytest.fixture
def small() -> VectorIndex:
    return VectorIndex(DIM)


def test_the_nearest_come_first_with_their_cosine(small: VectorIndex) -> None:
    rows, ids = clouds(3000), list(range(10, 3010))
    small.update(ids, rows)
    assert len(small) == 3000
    for at in range(0, 3000, 100):
        query = rows[at].astype(np.float32) * 3
        found = small.search(query, 10)
        assert found[0][0] == ids[at]
        assert found[0][1] == pytest.approx(1.0, abs=1e-3)
        assert recall(found, true(ids, rows, query, 10)) == 1
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)


def test_crowding_is_the_mean_cosine_with_the_nearest_others(small: VectorIndex) -> None:
    rows = clouds(40)
    small.update(range(40), rows)
    ids = [3, 1, *range(10, 30)]
    wide = rows[ids].astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = wide @ wide.T
    for at, found in enumerate(small.crowding(ids)):
        others = np.sort(np.delete(cosines[at], at))
        assert found == pytest.approx(others[-5:].mean(), abs=1e-3)


def test_crowding_of_few_chunks_and_of_unknown_ones(small: VectorIndex) -> None:
    small.update(range(3), clouds(3))
    assert small.crowding([]) == []
    assert small.crowding([1]) == [0.0]
    assert small.crowding([1, 77]) == [0.0, 0.0]


def test_only_allowed_chunks_are_found(small: VectorIndex) -> None:
    rows, dice = clouds(2000), np.random.default_rng(1)
    ids = np.arange(2000) * 3
    small.update(ids, rows)
    query = clouds(1, 7)[0].astype(np.float32)
    for count in (0, 1, 5, 100, 1999, 2000):
        allowed = np.sort(dice.choice(ids, count, replace=False))
        more = np.union1d(allowed, [10_001, 10_002])  # numbers that are not there
        for each in (allowed, more):
            found = small.search(query, 10, each)
            wanted = true(allowed.tolist(), rows[allowed // 3], query, 10) if count else []
            assert [number for number, _ in found] == wanted


def test_vectors_of_zeros_or_nan_are_ignored(small: VectorIndex) -> None:
    small.update([1, 2, 3], np.stack([clouds(1)[0], np.zeros(DIM), np.full(DIM, np.nan)]))
    assert small.search(np.zeros(DIM, np.float32), 5) == []
    assert small.search(np.full(DIM, np.nan, np.float32), 5) == []
    found = small.search(clouds(1)[0].astype(np.float32), 5)
    assert found[0][0] == 1
    assert all(np.isfinite(score) for _, score in found)
    assert small.search(clouds(1)[0].astype(np.float32), 0) == []


STEPS = st.lists(
    st.tuples(st.lists(st.integers(0, 30), max_size=6), st.lists(st.integers(0, 30), max_size=6)),
    max_size=10,
)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 99))
def test_the_nearest_are_found_after_any_sequence_of_changes(
    steps: list[tuple[list[int], list[int]]], seed: int
) -> None:
    vectors = VectorIndex(DIM)
    known: dict[int, NDArray[np.float16]] = {}
    for turn, (added, removed) in enumerate(steps):
        rows = clouds(len(added), seed + turn)
        vectors.update(added, rows, removed)
        for number in removed:
            known.pop(number, None)
        known.update(zip(added, rows, strict=True))
        assert len(vectors) == len(known)
        query = clouds(1, seed)[0].astype(np.float32)
        found = [number for number, _ in vectors.search(query, 40)]
        if known:
            assert found == true(list(known), np.stack(list(known.values())), query, 40)
        else:
            assert found == []
