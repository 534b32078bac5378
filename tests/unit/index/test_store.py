"""The index in its database: what is stored is found, also by other readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.index import words
from lcursor.index.reader import Counts
from lcursor.index.records import Filters, Parsed, StoredChunk, StoredSymbol, Symbol
from lcursor.index.store import Store
from tests.unit.index.pieces import chunk, entry, found

ROOT = Path(__file__).resolve().parents[3]
Open = Callable[..., Store]


def ids(store: Store, path: str) -> list[int]:
    found = store.reader()
    try:
        return [one.id for one in found.chunks_of(path)]
    finally:
        found.close()


def counts(store: Store) -> Counts:
    reader = store.reader()
    try:
        return reader.counts()
    finally:
        reader.close()


# What is put is found


def test_stored_files_are_found_whole(store: Store) -> None:
    symbol = Symbol("parse_url", "function", 12, 18, "Reader")
    path, state, parsed = entry(
        "src/net.py", "import os", "def parse_url(text): …", symbols=[symbol]
    )
    store.put(path, state, parsed)
    reader = store.reader()
    assert store.files() == reader.files() == {"src/net.py": state}
    assert reader.state("src/net.py") == state
    assert reader.state("src/other.py") is None
    [hit] = reader.lexical(words.terms("where is parseUrl"), 10)
    piece = reader.chunks([hit[0]])[hit[0]]
    assert hit[1] > 0
    assert piece == StoredChunk(
        **asdict(parsed.chunks[1]), id=hit[0], path="src/net.py", language="python"
    )
    [named] = reader.symbols("parse_url", 5)
    assert named == StoredSymbol(**asdict(symbol), path="src/net.py", language="python")
    assert reader.symbols_in("src/net.py") == [named]
    assert reader.counts() == Counts(1, 2, 1, {"python": 1})
    reader.close()


def test_a_changed_file_keeps_its_unchanged_chunks(store: Store) -> None:
    store.put(*entry("a.py", "first", "second", "third"))
    one, two, three = ids(store, "a.py")
    store.put(*entry("a.py", "new", "first", "third"))
    now = ids(store, "a.py")
    assert now[1:] == [one, three]
    assert now[0] > three
    assert found(store, "second") == []
    assert found(store, "new first third")
    reader = store.reader()
    assert two not in reader.chunks([one, two, three])
    moved = reader.chunks([one])[one]
    assert (moved.first_row, moved.end_row) == (10, 20)
    reader.close()


def test_the_number_of_a_chunk_is_never_used_again(store: Store) -> None:
    store.put(*entry("a.py", "one", "two"))
    before = ids(store, "a.py")
    store.remove(["a.py", "was never there"])
    assert store.files() == {}
    assert counts(store) == Counts(0, 0, 0, {})
    store.put(*entry("a.py", "one", "two"))
    assert min(ids(store, "a.py")) > max(before)


def test_each_change_has_a_number(store: Store) -> None:
    reader = store.reader()
    seen = [reader.revision]
    changes: list[Callable[[], None]] = [
        lambda: store.put(*entry("a.py", "one")),
        lambda: store.remove(["a.py"]),
    ]
    for change in changes:
        change()
        assert store.revision == reader.revision
        seen.append(reader.revision)
    assert [each.generation for each in seen] == [0, 1, 2]
    reader.close()


STRANGE = ["a b.py", "new\nline.py", "caf\udce9.py", "日本/é.py", "'\";--.py", "%_*?.py", "\x01"]


@pytest.mark.parametrize("path", STRANGE)
def test_files_with_any_name_and_any_text_are_stored(store: Store, path: str) -> None:
    text = "odd \udcff \x00 \ud800 Ünïcode 日本語 'quoted' \"twice\""
    store.put(*entry(path, text, symbols=[Symbol("na\udce9me", "function", 0, 1, "s\udcff")]))
    assert list(store.files()) == [path]
    assert found(store, "quoted") == [text]
    reader = store.reader()
    assert reader.symbols("na?me", 1)[0].scope == "s\udcff"
    assert reader.chunks_at(path, 3)[0].text == text
    reader.close()
    store.remove([path])
    assert store.files() == {}
    assert found(store, "quoted") == []


def test_chunks_at_a_row_are_the_smallest_first(store: Store) -> None:
    path, state, _ = entry("a.py")
    parts = [chunk("outline", 0, rows=100), chunk("one", 0, rows=50), chunk("two", 50, rows=50)]
    store.put(path, state, Parsed("python", parts, []))
    reader = store.reader()
    at = {row: [one.text for one in reader.chunks_at(path, row)] for row in (0, 50, 100)}
    assert at == {0: ["one", "outline"], 50: ["two", "outline"], 100: []}
    reader.close()


def test_symbols_are_found_in_any_case_and_the_same_case_comes_first(store: Store) -> None:
    def names(*all_names: str) -> list[Symbol]:
        return [Symbol(name, "class", 0, 1, "") for name in all_names]

    store.put(*entry("a.py", "x", symbols=names("url", "Url", "URLs", "URL", "urllib", "u_l")))
    reader = store.reader()

    def asked(name: str, *, prefix: bool = False) -> list[str]:
        return [one.name for one in reader.symbols(name, 10, prefix=prefix)]

    assert asked("Url")[0] == "Url"
    assert sorted(asked("Url")) == ["URL", "Url", "url"]
    assert asked("URL", prefix=True)[:2] == ["URL", "URLs"]
    assert sorted(asked("url", prefix=True)) == ["URL", "URLs", "Url", "url", "urllib"]
    assert asked("u%", prefix=True) == asked("none") == []
    assert asked("u_", prefix=True) == ["u_l"]
    assert len(reader.symbols("u", 2, prefix=True)) == 2
    reader.close()


# Filters


def test_filters_select_chunks(store: Store) -> None:
    inside = [Symbol("Pipe", "class", 2, 8, ""), Symbol("run", "method", 12, 14, "Pipe")]
    store.put(*entry("src/pipe.py", "pipe one", "pipe two", "pipe three", symbols=inside))
    store.put(*entry("src/pipe.lua", "pipe lua", language="lua"))
    store.put(*entry("tests/pipe.py", "pipe test"))
    table = {
        Filters(paths=("src/",)): {"pipe one", "pipe two", "pipe three", "pipe lua"},
        Filters(languages=("Lua",)): {"pipe lua"},
        Filters(kinds=("method",)): {"pipe two"},
        Filters(kinds=("class", "method")): {"pipe one", "pipe two"},
        Filters(paths=("*.py",), kinds=("class",)): {"pipe one"},
        Filters(paths=("nowhere",)): set(),
        Filters(kinds=("'); --",)): set(),
        Filters(): {"pipe one", "pipe two", "pipe three", "pipe lua", "pipe test"},
    }
    reader = store.reader()
    for filters, texts in table.items():
        assert set(found(store, "pipe", filters)) == texts, filters
        allowed = reader.allowed(filters)
        if filters == Filters():
            assert allowed is None
        else:
            assert allowed is not None
            assert {one.text for one in reader.chunks(allowed).values()} == texts
            assert list(allowed) == sorted(allowed)
    reader.close()


# Others that read and write


def test_a_reader_never_waits_for_the_writer(store: Store) -> None:
    store.put(*entry("a.py", "old"))
    reader = store.reader()

    with store._write() as base:  # a transaction that lasts
        base.execute("DELETE FROM chunks")
        assert len(reader.lexical(["old"], 5)) == 1  # waiting for the lock would raise
        base.execute("ROLLBACK")
        base.execute("BEGIN")
    store.put(*entry("a.py", "new"))
    assert len(reader.lexical(["new"], 5)) == 1
    reader.close()


# Any sequence of changes

TEXTS = st.lists(st.sampled_from(["one", "two", "three", "four", "five"]), max_size=5)
CHANGES = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), TEXTS | st.none()), max_size=12)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=CHANGES)
def test_the_store_is_what_was_put_last(
    tmp_path: Path, changes: list[tuple[str, list[str] | None]]
) -> None:
    store = Store(tmp_path / os.urandom(8).hex(), version=1)
    true: dict[str, list[str]] = {}
    try:
        for path, texts in changes:
            if texts is None:
                store.remove([path])
                true.pop(path, None)
            else:
                store.put(*entry(path, *texts))
                true[path] = texts
        reader = store.reader()
        now = {path: [one.text for one in reader.chunks_of(path)] for path in store.files()}
        assert now == true
        for word in ("one", "two"):
            hits = reader.lexical([f"{word}"], 100)
            assert len(hits) == sum(texts.count(word) for texts in true.values())
        reader.close()
    finally:
        store.close()
