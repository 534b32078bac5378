"""The cache of vectors: shared by processes, bounded, and never in the way."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from lcursor.index import vector_store
from lcursor.index.vector_store import VectorStore
from lcursor.storage import folders
from tests.fakes.disk import full_disk
from tests.unit.index.pieces import key, pairs, vector

ROOT = Path(__file__).resolve().parents[3]
DIM = 8


def numbers(cache: VectorStore, *wanted: int) -> list[int]:
    """Which of some are known, each with its true vector."""
    found = cache.get(key(number) for number in wanted)
    for number in wanted:
        if key(number) in found:
            assert (found[key(number)] == vector(number)).all()
    return [number for number in wanted if key(number) in found]


def test_vectors_are_shared_by_all_users_of_the_embedder(tmp_path: Path) -> None:
    one, two, other = (VectorStore(tmp_path, name) for name in ("mini", "mini", "big/v2"))
    assert one.get([]) == one.get([key(1)]) == {}
    one.put(pairs(1, 2, 3))
    two.put(pairs(3, 4))
    assert numbers(one, 4, 3, 2, 1, 0) == numbers(two, 4, 3, 2, 1, 0) == [4, 3, 2, 1]
    assert numbers(other, 1, 2, 3, 4) == []
    other.put([])
    assert sorted(path.name for path in tmp_path.glob("*.sqlite3")) == [
        "big_v2.sqlite3",
        "mini.sqlite3",
    ]
    for cache in (one, two, other):
        cache.close()
        assert cache.remarks == []
    assert one.get([key(1)]) == {}, "closed"


def test_the_path_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folders.vectors_home() == tmp_path / "lcursor" / "vectors"
    cache = VectorStore(None, "m")
    cache.put(pairs(1))
    cache.close()
    path = tmp_path / "lcursor" / "vectors" / "m.sqlite3"
    assert path.stat().st_mode & 0o077 == 0
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folders.vectors_home() == Path("~/.cache/lcursor/vectors").expanduser()


def test_the_oldest_vectors_are_deleted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "CHECK_EVERY", 50)
    cache = VectorStore(tmp_path, "m", max_bytes=80_000)
    for at in range(0, 3000, 50):
        cache.put(pairs(*range(at, at + 50)))
    assert numbers(cache, *range(200)) == []
    assert numbers(cache, *range(2950, 3000)) == list(range(2950, 3000))
    cache.close()
    assert cache.path.stat().st_size < 300_000


@pytest.mark.parametrize("how", ["noise", "truncated", "version", "empty"])
def test_a_damaged_file_is_rebuilt_with_one_remark(tmp_path: Path, how: str) -> None:
    cache = VectorStore(tmp_path, "m")
    cache.put(pairs(*range(100)))
    cache.close()
    if how == "noise":
        cache.path.write_bytes(os.urandom(30_000))
    elif how == "truncated":
        os.truncate(cache.path, cache.path.stat().st_size // 2)
    elif how == "empty":
        os.truncate(cache.path, 0)
    else:
        base = sqlite3.connect(cache.path)
        base.execute("PRAGMA user_version = 99")
        base.close()
    cache = VectorStore(tmp_path, "m")
    assert numbers(cache, *range(100)) == []
    cache.put(pairs(7))
    assert numbers(cache, 7) == [7]
    assert len(cache.remarks) == (how in ("noise", "truncated"))
    cache.close()


def test_without_a_folder_or_space_everything_else_works(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = VectorStore(tmp_path / "file", "m")
    cache.put(pairs(1))
    cache.put(pairs(1))
    assert numbers(cache, 1) == []
    [said] = cache.remarks
    assert "cannot be used" in said

    cache = VectorStore(tmp_path, "m")
    cache.put(pairs(1))
    with full_disk(cache.path.stat().st_size + 100_000):
        cache.put(pairs(*range(10, 5000)))
        cache.put(pairs(2))
        assert numbers(cache, 1, 10) == [1], "what it has is still given"
        assert len(cache.remarks) == 1
    cache.close()


def test_a_locked_cache_is_waited_for_and_then_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "BUSY_S", 0.05)
    cache = VectorStore(tmp_path, "m")
    cache.put(pairs(1))
    base = sqlite3.connect(cache.path, isolation_level=None)
    base.execute("BEGIN IMMEDIATE")
    cache.put(pairs(2))
    assert numbers(cache, 1, 2) == [1], "reading goes on"
    base.execute("COMMIT")
    base.close()
    cache.put(pairs(2))
    assert numbers(cache, 1, 2) == [1, 2]
    assert cache.remarks == []
    cache.close()
