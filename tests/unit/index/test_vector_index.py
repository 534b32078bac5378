"""The nearest vectors: the same as if all were compared, whatever was added, removed or broken."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lcursor.index import vector_index as module
from lcursor.index.vector_index import VectorIndex

DIM = 32
FILE = "vectors.usearch"
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
def small() -> Iterator[VectorIndex]:
    vectors = VectorIndex(None, DIM)
    yield vectors
    vectors.close()


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
    assert small.remarks == []


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


def test_replaced_and_removed(small: VectorIndex) -> None:
    rows = clouds(100)
    small.update(range(100), rows)
    other = -rows[5:6]
    small.update([5], other, removed=[7, 8, 777])
    assert len(small) == 98
    assert small.search(other[0].astype(np.float32), 1)[0][0] == 5
    assert small.search(rows[7].astype(np.float32), 1)[0][0] != 7
    small.update([7, 7], rows[[1, 7]], removed=[7])
    assert small.search(rows[7].astype(np.float32), 1)[0][0] == 7, "the last of two"
    small.update([], np.empty((0, DIM), np.float16), removed=range(100))
    assert len(small) == 0
    assert small.search(rows[0].astype(np.float32), 5) == []


def test_vectors_that_are_no_directions_harm_nothing(small: VectorIndex) -> None:
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


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 99))
def test_any_sequence_of_changes(steps: list[tuple[list[int], list[int]]], seed: int) -> None:
    vectors = VectorIndex(None, DIM)
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


# The graph


@pytest.fixture
def big(tmp_path: Path) -> Iterator[list[VectorIndex]]:
    """Where vectors are put that are to be closed."""
    made: list[VectorIndex] = []
    yield made
    for each in made:
        each.close()


def graph(made: list[VectorIndex], folder: Path | None, count: int = 2500) -> VectorIndex:
    vectors = VectorIndex(folder and folder / FILE, DIM, exact_below=1000)
    made.append(vectors)
    vectors.update(range(count), clouds(count))
    assert vectors.wait(30)
    return vectors


def test_a_graph_finds_the_same_and_what_is_new(big: list[VectorIndex], tmp_path: Path) -> None:
    rows = clouds(2500)
    vectors = graph(big, tmp_path)
    assert vectors.has_graph
    questions = clouds(50, 3).astype(np.float32)
    shares = [
        recall(vectors.search(each, 10), true(range(2500), rows, each, 10)) for each in questions
    ]
    assert np.mean(shares) >= 0.95
    new = clouds(30, 44)
    vectors.update(range(5000, 5030), new, removed=range(100))
    vectors.update([200], -rows[200:201])
    for at in range(30):
        assert vectors.search(new[at].astype(np.float32), 1)[0][0] == 5000 + at
    for at in range(100):
        assert at not in dict(vectors.search(rows[at].astype(np.float32), 20))
    assert vectors.search(rows[200].astype(np.float32), 1)[0][0] != 200
    assert vectors.search(-rows[200].astype(np.float32), 1)[0][0] == 200
    allowed = np.array([5, 300, 5001])
    found = vectors.search(new[1].astype(np.float32), 5, allowed)
    assert sorted(number for number, _ in found) == [300, 5001]


def test_a_graph_is_read_again_where_it_is_true(
    big: list[VectorIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clouds(2500)
    graph(big, tmp_path).close()
    built: list[int] = []
    real = VectorIndex._build

    def build(self: VectorIndex, *more: Any) -> Any:
        built.append(1)
        return real(self, *more)

    monkeypatch.setattr(VectorIndex, "_build", build)
    again = graph(big, tmp_path)
    assert again.has_graph
    assert built == []
    # Some are gone, some are new.
    vectors = VectorIndex(tmp_path / FILE, DIM, exact_below=1000)
    big.append(vectors)
    vectors.update(range(20, 2550), np.concatenate([rows[20:], clouds(50, 77)]))
    assert vectors.wait(30)
    assert vectors.has_graph
    assert built == []
    assert vectors.search(clouds(50, 77)[7].astype(np.float32), 1)[0][0] == 2507
    assert vectors.search(rows[3].astype(np.float32), 1)[0][0] != 3
    # All other: made anew.
    vectors = VectorIndex(tmp_path / FILE, DIM, exact_below=1000)
    big.append(vectors)
    vectors.update(range(2500), clouds(2500, 5))
    assert vectors.wait(30)
    assert built == [1]
    assert [each.remarks for each in big] == [[]] * len(big)


@pytest.mark.parametrize("how", ["truncated", "noise", "empty"])
def test_a_damaged_graph_is_rebuilt_with_one_remark(
    big: list[VectorIndex], tmp_path: Path, how: str
) -> None:
    graph(big, tmp_path).close()
    path = tmp_path / FILE
    data = path.read_bytes()
    broken = {"truncated": data[: len(data) // 2], "noise": os.urandom(10_000), "empty": b""}
    path.write_bytes(broken[how])
    vectors = graph(big, tmp_path)
    assert vectors.has_graph
    assert len(vectors.remarks) == 1
    assert "is rebuilt" in vectors.remarks[0]
    assert graph(big, tmp_path).remarks == [], "and the file is whole again"


def test_a_graph_that_cannot_be_kept_answers_all_the_same(
    big: list[VectorIndex], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    vectors = graph(big, tmp_path / "file")
    assert vectors.has_graph
    assert "cannot be kept" in vectors.remarks[0]


def test_a_graph_that_finds_too_little_is_not_used(
    big: list[VectorIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_RECALL", 1.1)
    vectors = graph(big, None)
    assert not vectors.has_graph
    assert "all vectors are compared" in vectors.remarks[0]
    rows, query = clouds(2500), clouds(1, 3)[0].astype(np.float32)
    found = [number for number, _ in vectors.search(query, 10)]
    assert found == true(range(2500), rows, query, 10)
    vectors.update([1], clouds(1))
    assert vectors.wait(10)
    assert len(vectors.remarks) == 1, "said once"


def test_a_failed_build_is_reported_once(
    big: list[VectorIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no memory left")

    monkeypatch.setattr(VectorIndex, "_build", fail)
    vectors = graph(big, None)
    assert not vectors.has_graph
    assert len(vectors.remarks) == 1
    assert "no memory left" in vectors.remarks[0]
    vectors.update([1], clouds(1))
    assert vectors.wait(10)
    assert len(vectors.remarks) == 1, "tried again without more vectors"


def test_searching_goes_on_while_a_graph_is_built(
    big: list[VectorIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live graph is never fed: nobody waits for it, and changes meanwhile count."""
    begun, goes_on = threading.Event(), threading.Event()
    real = VectorIndex._build

    def build(self: VectorIndex, *more: Any) -> Any:
        begun.set()
        assert goes_on.wait(30)
        return real(self, *more)

    monkeypatch.setattr(VectorIndex, "_build", build)
    vectors = VectorIndex(None, DIM, exact_below=1000)
    big.append(vectors)
    vectors.update(range(2_000), clouds(2_000))
    assert begun.wait(30)
    new = clouds(1, 50)
    for number in range(30_000, 30_010):
        vectors.update([number], new, removed=[number - 1])
        assert vectors.search(new[0].astype(np.float32), 3)[0][0] == number
    assert not vectors.has_graph
    goes_on.set()
    assert vectors.wait(30)
    assert vectors.has_graph
    assert vectors.search(new[0].astype(np.float32), 3)[0][0] == 30_009


def test_closing_ends_the_making(big: list[VectorIndex]) -> None:
    vectors = VectorIndex(None, DIM, exact_below=1000)
    vectors.update(range(20_000), clouds(20_000))
    vectors.close()
    assert not [one for one in threading.enumerate() if one.name == "lcursor-graph"]
    assert not vectors.has_graph
