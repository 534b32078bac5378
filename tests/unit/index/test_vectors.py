"""The nearest vectors: the same as if all were compared, whatever was added, removed or broken."""

from __future__ import annotations

import builtins
import os
import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lcursor.errors import IndexFailed
from lcursor.index import vectors as module
from lcursor.index.graph_file import GraphFile, fingerprints
from lcursor.index.matrix import Matrix
from lcursor.index.vectors import Vectors

DIM = 32
Found = list[tuple[int, float]]


def clouds(count: int, seed: int = 0, dim: int = DIM) -> NDArray[np.float16]:
    """Vectors as texts have them: in clouds, all of one length."""
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
def small() -> Iterator[Vectors]:
    vectors = Vectors(None, DIM)
    yield vectors
    vectors.close()


def test_the_nearest_come_first_with_their_cosine(small: Vectors) -> None:
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


def test_vectors_are_given_by_number(small: Vectors) -> None:
    rows, ids = clouds(20), list(range(10, 30))
    small.update(ids, rows * 2)
    small.update([], np.empty((0, DIM), np.float16), [12])
    found = small.rows([29, 12, 10, 99])
    assert np.allclose(found[[0, 2]], rows[[19, 0]], atol=2e-3)
    assert not found[[1, 3]].any()
    assert np.allclose(np.linalg.norm(found[[0, 2]], axis=1), 1, atol=1e-6)
    assert small.rows([]).shape == (0, DIM)


def test_without_usearch_it_is_slower_and_no_other(
    small: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clouds(6000)
    small.update(range(6000), rows)
    query = clouds(1, 5)[0].astype(np.float32)
    before = small.search(query, 20)
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.startswith("usearch"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert small.search(query, 20) == before


def test_only_what_is_allowed_is_found(small: Vectors) -> None:
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


def test_replaced_and_removed(small: Vectors) -> None:
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


def test_what_does_not_fit_is_refused_or_nothing(small: Vectors) -> None:
    with pytest.raises(IndexFailed):
        small.update([1], clouds(1, dim=16))
    with pytest.raises(IndexFailed):
        small.update([1, 2], clouds(1))
    with pytest.raises(IndexFailed):
        small.search(np.zeros(16, np.float32), 5)
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
    vectors = Vectors(None, DIM)
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
def big(tmp_path: Path) -> Iterator[list[Vectors]]:
    """Where vectors are put that are to be closed."""
    made: list[Vectors] = []
    yield made
    for each in made:
        each.close()


def graph(made: list[Vectors], folder: Path | None, count: int = 2500) -> Vectors:
    vectors = Vectors(folder, DIM, exact_below=1000)
    made.append(vectors)
    vectors.update(range(count), clouds(count))
    assert vectors.wait(30)
    return vectors


def test_a_graph_finds_the_same_and_what_is_new(big: list[Vectors], tmp_path: Path) -> None:
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
    big: list[Vectors], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clouds(2500)
    graph(big, tmp_path).close()
    built: list[int] = []
    real = Vectors._build

    def build(self: Vectors, *more: Any) -> Any:
        built.append(1)
        return real(self, *more)

    monkeypatch.setattr(Vectors, "_build", build)
    again = graph(big, tmp_path)
    assert again.has_graph
    assert built == []
    # Other vectors under the same numbers, some gone, some new: only what is true is taken.
    vectors = Vectors(tmp_path, DIM, exact_below=1000)
    big.append(vectors)
    now = rows.copy()
    now[:50] = clouds(50, 77)
    vectors.update(range(20, 2500), now[20:])
    assert vectors.wait(30)
    assert vectors.has_graph
    assert built == []
    for at in range(20, 50):
        assert vectors.search(now[at].astype(np.float32), 1)[0][0] == at
    assert vectors.search(rows[3].astype(np.float32), 1)[0][0] != 3
    # All other: made anew.
    vectors = Vectors(tmp_path, DIM, exact_below=1000)
    big.append(vectors)
    vectors.update(range(2500), clouds(2500, 5))
    assert vectors.wait(30)
    assert built == [1]
    assert [each.remarks for each in big] == [[]] * len(big)


@pytest.mark.parametrize("how", ["truncated", "flipped", "noise", "empty", "dimension"])
def test_a_broken_graph_is_made_anew_and_said_once(
    big: list[Vectors], tmp_path: Path, how: str
) -> None:
    graph(big, tmp_path).close()
    path = tmp_path / "graph.cache"
    data = bytearray(path.read_bytes())
    if how == "truncated":
        del data[len(data) // 2 :]
    elif how == "flipped":
        data[len(data) * 2 // 3] ^= 4
    elif how == "noise":
        data[:] = os.urandom(10_000)
    elif how == "empty":
        data.clear()
    else:
        GraphFile(path, 8).write(np.arange(3), np.arange(3).astype(np.uint64), b"graph")
        data[:] = path.read_bytes()
    path.write_bytes(data)
    vectors = graph(big, tmp_path)
    assert vectors.has_graph
    assert len(vectors.remarks) == 1
    assert "made anew" in vectors.remarks[0]
    assert graph(big, tmp_path).remarks == [], "and the file is whole again"


def test_a_graph_that_cannot_be_kept_answers_all_the_same(
    big: list[Vectors], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    vectors = graph(big, tmp_path / "file")
    assert vectors.has_graph
    assert "cannot be kept" in vectors.remarks[0]


def test_a_graph_that_finds_too_little_is_not_used(
    big: list[Vectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_RECALL", 1.1)
    vectors = graph(big, None)
    assert not vectors.has_graph
    assert "all are compared" in vectors.remarks[0]
    rows, query = clouds(2500), clouds(1, 3)[0].astype(np.float32)
    found = [number for number, _ in vectors.search(query, 10)]
    assert found == true(range(2500), rows, query, 10)
    vectors.update([1], clouds(1))
    assert vectors.wait(10)
    assert len(vectors.remarks) == 1, "said once"


def test_too_little_memory_for_a_graph_is_reported_once(
    big: list[Vectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Matrix.ids

    def ids(matrix: Matrix) -> Any:
        if threading.current_thread().name == "lcursor-graph":
            raise MemoryError("no memory left")
        return real.__get__(matrix)

    monkeypatch.setattr(Matrix, "ids", property(ids))
    vectors = graph(big, None)
    assert not vectors.has_graph
    assert len(vectors.remarks) == 1
    assert "no memory left" in vectors.remarks[0]
    vectors.update([1], clouds(1))
    assert vectors.wait(10)
    assert len(vectors.remarks) == 1, "tried again without more vectors"


def test_searching_goes_on_while_a_graph_is_made(
    big: list[Vectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live graph is never fed: nobody waits for it, and changes meanwhile count."""
    begun, goes_on = threading.Event(), threading.Event()
    real = Vectors._build

    def build(self: Vectors, *more: Any) -> Any:
        begun.set()
        assert goes_on.wait(30)
        return real(self, *more)

    monkeypatch.setattr(Vectors, "_build", build)
    vectors = Vectors(None, DIM, exact_below=1000)
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


def test_closing_ends_the_making(big: list[Vectors]) -> None:
    vectors = Vectors(None, DIM, exact_below=1000)
    vectors.update(range(20_000), clouds(20_000))
    vectors.close()
    assert not [one for one in threading.enumerate() if one.name == "lcursor-graph"]
    assert not vectors.has_graph


# The file


def test_a_graph_file_is_what_was_written(tmp_path: Path) -> None:
    file = GraphFile(tmp_path / "deep" / "graph", 4)
    ids, marks = np.array([5, 9]), np.array([1, (1 << 64) - 1], np.uint64)
    for body in (b"first", b"", os.urandom(1000)):
        file.write(ids, marks, body)
        got = file.read()
        assert (got[0].tolist(), got[1].tolist(), got[2]) == (ids.tolist(), marks.tolist(), body)
    assert [path.name for path in file.path.parent.iterdir()] == ["graph"]
    data, dice = file.path.read_bytes(), random.Random(0)
    for _ in range(200):
        broken = bytearray(data)
        broken[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        file.path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"it is|its"):
            file.read()


def test_marks_tell_vectors_apart() -> None:
    rows = clouds(10_000)
    marks = fingerprints(rows)
    assert len(set(marks.tolist())) == len({row.tobytes() for row in rows})
    rows[5, 3] = np.nextafter(rows[5, 3], np.float16(1))
    assert (fingerprints(rows) != marks).nonzero()[0].tolist() == [5]
