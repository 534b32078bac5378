"""How chunks get their vectors, with an embedder that counts."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from lcursor import system
from lcursor.errors import ModelMissing
from lcursor.index import chunk, embed
from lcursor.index.chunk_embedder import BATCH, NONE, ChunkEmbedder
from lcursor.index.records import FileState
from lcursor.index.store import Store

DIM = 16


class Counting:
    """An embedder whose vectors are digests; keeps what it was asked."""

    asked: ClassVar[list[str]] = []
    threads: ClassVar[list[int]] = []
    fails_at = 10**9
    name, dim, on_gpu = "counting", DIM, False

    def __init__(self, spec: Any) -> None: ...

    def texts(
        self, texts: Sequence[str], threads: int = 1
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        self.threads.append(threads)
        if len(self.asked) + len(texts) > self.fails_at:
            raise RuntimeError("out of order")
        self.asked.extend(texts)
        return np.stack([self.query(text) for text in texts])

    def query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        data = hashlib.sha256(text.encode()).digest()[:DIM]
        row = np.frombuffer(data, np.uint8).astype(np.float32) - 127.5
        return np.asarray(row / np.linalg.norm(row), np.float32)


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(embed, "Embedder", Counting)
    monkeypatch.setattr(embed, "find", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(Counting, "asked", [])
    monkeypatch.setattr(Counting, "threads", [])
    return Counting.asked


def fill(store: Store, count: int, word: str = "value") -> None:
    for number in range(count):
        path, text = f"f{number}.py", f"def {word}{number}():\n    return {number}\n"
        state = FileState(len(text), number, hashlib.sha256(text.encode()).digest()[:16])
        store.put(path, state, chunk.read(path, text))


class EmbeddedStores:
    """Stores with their embeddings, closed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: list[tuple[Store, ChunkEmbedder]] = []

    def new(self, name: str, embedder: str = "") -> tuple[Store, ChunkEmbedder]:
        store = Store(self.folder / name)
        one = store, ChunkEmbedder(embedder, store.reader())
        self.open.append(one)
        return one

    def close(self) -> None:
        for store, embedding in self.open:
            embedding.close()
            store.close()
        self.open.clear()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[EmbeddedStores]:
    stores = EmbeddedStores(tmp_path)
    yield stores
    stores.close()


def run(embedding: ChunkEmbedder) -> int:
    steps = 0
    while embedding.step():
        steps += 1
        assert steps < 10_000
    return steps


def test_every_chunk_gets_the_vector_of_its_text(stores: EmbeddedStores, asked: list[str]) -> None:
    store, embedding = stores.new("one")
    fill(store, 50)
    assert run(embedding) >= 50 / BATCH
    assert len(asked) == len(set(asked)) == 50
    assert embedding.left == 0
    assert embedding.note == ""
    assert embedding.vectors is not None
    assert embedding.embedder is not None
    text = "f7.py > value7\ndef value7():\n    return 7"
    assert text in asked
    ((number, score),) = embedding.vectors.search(embedding.embedder.query(text), 1)
    assert store.reader().chunks([number])[number].path == "f7.py"
    assert score == pytest.approx(1, abs=0.01)


def test_a_file_that_is_moved_has_its_vectors(stores: EmbeddedStores, asked: list[str]) -> None:
    store, embedding = stores.new("one")
    fill(store, 5)
    run(embedding)
    asked.clear()
    for number in range(5):
        text = f"def value{number}():\n    return {number}\n"
        place = f"deep/in/f{number}.py"
        store.remove([f"f{number}.py"])
        store.tidy()
        state = FileState(len(text), number, hashlib.sha256(text.encode()).digest()[:16])
        store.put(place, state, chunk.read(place, text))
    run(embedding)
    embedding.sync()
    assert asked == []
    assert embedding.vectors is not None
    assert embedding.embedder is not None
    query = embedding.embedder.query("f3.py > value3\ndef value3():\n    return 3")
    ((found, score),) = embedding.vectors.search(query, 1)
    assert store.reader().chunks([found])[found].path == "deep/in/f3.py"
    assert score == pytest.approx(1, abs=0.01)


def test_a_change_embeds_one_chunk_and_a_way_back_none(
    stores: EmbeddedStores, asked: list[str]
) -> None:
    store, embedding = stores.new("one")
    fill(store, 20)
    run(embedding)
    asked.clear()
    fill(store, 10, word="other")  # another branch
    run(embedding)
    assert len(asked) == 10
    asked.clear()
    fill(store, 20)  # and back
    run(embedding)
    store.remove([f"f{number}.py" for number in range(5)])
    run(embedding)
    assert asked == []
    embedding.sync()
    assert embedding.vectors is not None
    assert len(embedding.vectors) == 15


def test_a_rebuilt_store_has_no_old_vectors(stores: EmbeddedStores, asked: list[str]) -> None:
    store, embedding = stores.new("one")
    fill(store, 30)
    run(embedding)
    assert embedding.vectors is not None
    assert embedding.embedder is not None
    identity = store.revision.identity
    store.database.rebuild(store.database.epoch, sqlite3.DatabaseError("a broken page"))
    assert store.revision.identity != identity
    embedding.sync()
    assert len(embedding.vectors) == 0
    fill(store, 10, "other")  # the numbers of the chunks begin with 1 again
    run(embedding)
    assert len(embedding.vectors) == 10
    text = next(each for each in asked if "other7" in each)
    ((number, score),) = embedding.vectors.search(embedding.embedder.query(text), 1)
    assert store.reader().chunks([number])[number].path == "f7.py"
    assert score == pytest.approx(1, abs=0.01)


def test_an_embedder_that_breaks_is_a_note(
    stores: EmbeddedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counting, "fails_at", 20)
    store, embedding = stores.new("one")
    fill(store, 50)
    run(embedding)
    assert "out of order" in embedding.note
    assert embedding.step() is False


@pytest.mark.parametrize("name", [NONE, ""])
def test_without_an_embedder_nothing_is_tried_twice(
    stores: EmbeddedStores, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []

    def missing(spec: object) -> None:
        tries.append(spec)
        raise ModelMissing("it is not on this machine", "pull it")

    monkeypatch.setattr(embed, "Embedder", missing)
    store, embedding = stores.new("one", name)
    fill(store, 3)
    assert [embedding.step() for _ in range(3)] == [False] * 3
    assert len(tries) == (name != NONE)
    assert embedding.embedder is None
    assert embedding.note
    assert ("pull it" in embedding.note) == (name != NONE)


def test_two_cores_embed_while_the_user_is_away(
    stores: EmbeddedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "usable_cores", lambda: 8)
    store, embedding = stores.new("one")
    fill(store, 60)
    for _ in range(3):
        embedding.step()
    embedding.is_quiet = lambda: True
    for _ in range(3):
        embedding.step()
    assert Counting.threads == [1, 1, 1, 2, 2, 2]
    assert len(Counting.asked) == 3 * BATCH + 3 * 2 * BATCH
    monkeypatch.setattr(system, "usable_cores", lambda: 1)
    embedding.step()
    assert Counting.threads[-1] == 1


def test_the_vectors_follow_the_store_incrementally(
    stores: EmbeddedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, embedding = stores.new("one")
    fill(store, 40)
    run(embedding)
    read: list[int] = []
    original = embedding._reader.digests

    def digests(ids: Iterable[int]) -> dict[int, bytes]:
        found = original(ids)
        read.extend(found)
        return found

    monkeypatch.setattr(embedding._reader, "digests", digests)
    fill(store, 3, word="other")
    store.remove(["f30.py", "f31.py"])
    run(embedding)
    assert embedding.vectors is not None
    assert len(read) == 3
    assert len(embedding.vectors) == 38
    assert embedding.vectors.ids.tolist() == store.reader().chunk_ids().tolist()
