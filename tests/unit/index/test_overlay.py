"""Unsaved buffers in the place of their files: what keeps its number, and how words are counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lcursor.index import chunk, overlay, words
from lcursor.index.overlay import Overlay
from lcursor.index.records import Filters, Parsed
from tests.unit.index import searching

TASKS = [
    f"def task_{number}(argument):\n" + f"    value_{number} = argument + argument\n" * 40
    for number in range(6)
]
TEXT = "\n\n".join(TASKS)


def test_words_are_counted_as_the_store_counts_them(tmp_path: Path) -> None:
    files = {f"{number}.py": text for number, text in enumerate(TASKS)}
    store = searching.made(tmp_path / "index", files)
    reader = store.reader()
    every = {one.id: one for path in files for one in reader.chunks_of(path)}
    counted = {
        number: Counter(words.index_text(one.path, one).split()) for number, one in every.items()
    }
    asked = "argument of task_3 value_2"
    own = overlay.search_terms(reader, counted, words.terms(asked))
    stored = reader.lexical(words.terms(asked), 100)
    assert [number for number, _ in own[:2]] == [number for number, _ in stored[:2]]
    assert dict(own) == pytest.approx(dict(stored), rel=1e-4)


def test_unchanged_chunks_keep_their_ids(tmp_path: Path) -> None:
    store = searching.made(tmp_path / "index", {"a.py": TEXT})
    reader = store.reader()
    stored = {one.id: one for one in reader.chunks_of("a.py")}
    laid = Overlay(reader).chunks({"a.py": TEXT.replace("value_3", "other_3")})
    assert laid.new
    assert laid.unchanged
    assert laid.unchanged.keys() | laid.removed == stored.keys()
    assert {number: one.digest for number, one in laid.unchanged.items()} == {
        number: stored[number].digest for number in laid.unchanged
    }
    assert set(laid.successors) <= laid.removed
    assert set(laid.successors.values()) <= laid.new.keys()


def test_a_buffer_is_cut_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = searching.made(tmp_path / "index", {"a.py": TEXT})
    cut: list[str] = []
    real = chunk.read

    def read(path: str, text: str) -> Parsed:
        if path == "a.py":
            cut.append(path)
        return real(path, text)

    monkeypatch.setattr(chunk, "read", read)
    buffers = Overlay(store.reader())
    first = buffers.chunks({"a.py": TEXT + "# 1\n"})
    assert buffers.chunks({"a.py": TEXT + "# 1\n"}) is first
    searching.put(store, {"b.py": "x = 1\n"})
    assert buffers.chunks({"a.py": TEXT + "# 1\n"}) is not first
    assert cut == ["a.py"]
    buffers.chunks({"a.py": TEXT + "# 2\n"})
    assert cut == ["a.py", "a.py"]
    assert not buffers.chunks({}).parsed


@pytest.mark.parametrize(
    ("filters", "is_passing"),
    [
        (Filters(), True),
        (Filters(paths=("src",)), True),
        (Filters(paths=("lib",)), False),
        (Filters(languages=("python",)), True),
        (Filters(languages=("lua",)), False),
        (Filters(kinds=("function",)), True),
        (Filters(kinds=("class",)), False),
    ],
)
def test_buffers_pass_the_filters_that_files_pass(
    tmp_path: Path, filters: Filters, is_passing: bool
) -> None:
    text = "def wash(car):\n    return car\n"
    store = searching.made(tmp_path / "index", {"src/a.py": text})
    reader = store.reader()
    laid = Overlay(reader).chunks({"src/a.py": text + "# more\n"})
    one = laid.new[-1]
    assert overlay.passes(one, laid.parsed["src/a.py"], filters) is is_passing
    allowed = reader.allowed(filters)
    assert (allowed is None or len(allowed) == 1) is is_passing
