"""BM25 in memory is that of SQLite FTS5, whatever was put, removed, merged or rebuilt."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.index import postings, words
from lcursor.index.postings import term_vector
from lcursor.index.reader import IndexReader
from lcursor.index.records import Filters
from lcursor.index.store import Store
from tests.unit.index.pieces import entry

WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the text of a chunk its words."""
    monkeypatch.setattr(words, "index_text", lambda path, chunk: chunk.text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "index", version=1)
    yield made
    made.close()


def some(dice: random.Random, path: str, chunks: int = 3) -> tuple[str, ...]:
    """A file whose words are as unevenly spread as in code."""
    weights = [1 / (1 + number) for number in range(len(WORDS))]
    return (
        path,
        *(" ".join(dice.choices(WORDS, weights, k=dice.randrange(1, 40))) for _ in range(chunks)),
    )


def agree(
    reader: IndexReader, terms: list[str], limit: int = 10, filters: Filters | None = None
) -> int:
    """Compare with FTS5; return how much was found."""
    here = reader.lexical(terms, limit, filters)
    allowed = reader.allowed(filters) if filters else None
    chunks = reader.chunks(reader.chunk_ids().tolist())
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE words USING fts5 (text, content = '')")
    base.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        [(number, one.text) for number, one in chunks.items()],
    )
    match = " OR ".join(f'"{term}"' for term in terms)
    there = [
        row
        for row in base.execute(
            "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank", (match,)
        )
        if allowed is None or row[0] in allowed
    ]
    base.close()
    assert len(here) == min(limit, len(there))
    points = dict(there)
    for (number, score), (_, best) in zip(here, there, strict=False):
        assert score == pytest.approx(points[number], rel=1e-3, abs=1e-6)
        assert score == pytest.approx(best, rel=1e-3, abs=1e-6)
    assert here == sorted(here, key=lambda hit: (-hit[1], hit[0]))
    return len(here)


@pytest.mark.parametrize("merged", [20, 20_000])
def test_hits_and_scores_are_those_of_fts5_after_any_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    monkeypatch.setattr(postings, "MAX_SEGMENTS", 3)
    monkeypatch.setattr(postings, "MERGED_CHUNKS", merged)
    dice, reader = random.Random(1), store.reader()
    most = 0
    for turn in range(25):
        store.put_many(entry(*some(dice, f"{dice.randrange(60)}.py")) for _ in range(4))
        if turn % 3 == 0:
            store.remove([f"{dice.randrange(60)}.py" for _ in range(3)])
        for count in (1, 3, 8):
            agree(reader, dice.sample(WORDS, count), dice.choice([1, 5, 50]))
        agree(reader, ["none", *dice.sample(WORDS, 2)], 5, Filters(paths=("1*.py", "2")))
        most = max(most, len(reader._postings._segments))
    assert most < 35, "of 50"
    assert sum(len(one.ids) for one in reader._postings._segments) < 300
    agree(reader, WORDS, 500)
    agree(reader, WORDS[:1], 500)
    reader.close()


def test_the_frequency_of_words(store: Store) -> None:
    reader = store.reader()
    reader.warm()
    assert reader.frequencies(["one"]) == ({"one": 0}, 0)
    store.put(*entry("a.py", "one two", "two two", "three"))
    assert reader.frequencies(["one", "two", "none"]) == ({"one": 1, "two": 2, "none": 0}, 3)
    store.remove(["a.py"])
    assert reader.lexical(["two"], 5) == []
    store.put(*entry("b.py", "two " * 1000))
    assert reader.frequencies(["two"]) == ({"two": 1}, 1)
    assert len(reader.lexical(["two"], 5)) == 1
    reader.close()


def test_a_rebuilt_store_is_followed(tmp_path: Path) -> None:
    store = Store(tmp_path, version=1)
    store.put(*entry("a.py", "one", "two"))
    reader = store.reader()
    assert len(reader.lexical(["one", "two"], 5)) == 2
    store.database.rebuild(store.database.epoch, sqlite3.DatabaseError("a broken page"))
    assert reader.lexical(["one"], 5) == []
    store.put(*entry("a.py", "one"))
    assert len(reader.lexical(["one", "two"], 5)) == 1
    reader.close()
    store.close()


def test_postings_that_missed_too_much_are_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.index.store.MAX_REMOVED", 3)
    store.put_many(entry(f"{number}.py", f"word only{number}") for number in range(20))
    reader = store.reader()
    assert len(reader.lexical(["word"], 50)) == 20
    store.remove([f"{number}.py" for number in range(10)])
    store.tidy()
    base = sqlite3.connect(store.path)
    assert base.execute("SELECT count(*) FROM removed").fetchone()[0] < 10
    base.close()
    assert len(reader.lexical(["word"], 50)) == 10
    agree(reader, ["word", "only15"], 50)
    reader.close()


def test_many_threads_search_while_the_store_changes(store: Store) -> None:
    store.put(*entry("a.py", "always here"))
    wrong: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        reader = store.reader()
        while not stop.is_set():
            try:
                if len(reader.lexical(["always"], 5)) != 1:
                    wrong.append("lost")
            except Exception as error:  # noqa: BLE001 - whatever it is
                wrong.append(error)
        reader.close()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(150):
        store.put(*entry(f"b{number % 20}.py", f"other words{number}"))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_term_vector_is_small_and_takes_any_words() -> None:
    assert term_vector("") == b""
    assert len(term_vector("one two one")) == 10
    assert term_vector("one " * 1000)[-1] == 255
    assert len(term_vector("é \udcff 日本")) == 15
