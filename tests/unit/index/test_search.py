"""Questions to a real store: words, names, vectors, filters, unsaved buffers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lcursor.index import chunk
from lcursor.index.query import parse
from lcursor.index.records import Hit, Mode, StoredSymbol
from lcursor.index.search import Searcher, certainty_of, find_definitions
from lcursor.index.store import Store
from tests.unit.index import searching

CARS = '''"""Cars."""


class Car:
    """Something with wheels."""

    def start_engine(self):
        return ignite(self.engine)

    def park(self):
        return None


def buy_car(price):
    return Car() if price else None
'''
BOATS = '''"""Boats."""


class Boat:
    def start_engine(self):
        return ignite(self.motor)

    def anchor(self):
        return drop(self.weight)
'''
LUA = "local M = {}\n\nfunction M.ignite(engine)\n  return engine\nend\n\nreturn M\n"
FILES = {
    "src/car.py": CARS,
    "src/boat.py": BOATS,
    "src/ignition.lua": LUA,
    "tests/test_car.py": "def test_buy_car():\n    assert buy_car(3)\n    assert not buy_car(0)\n",
    "README.md": "# Garage\n\nCars and boats, and how to start an engine.\n",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return searching.made(tmp_path / "index", FILES)


@pytest.fixture
def search(store: Store) -> Searcher:
    return searching.searcher(store)


def paths(hits: list[Hit]) -> list[str]:
    return [hit.path for hit in hits]


def rows(path: str, line: str) -> int:
    """Return the row of a line in one of the files."""
    return FILES[path].split("\n").index(line)


def test_words_answer_without_vectors(search: Searcher) -> None:
    hits = search.search("drop the anchor of a boat")
    assert hits[0].path == "src/boat.py"
    assert hits[0].language == "python"
    assert "lexical" in hits[0].parts
    assert "vector" not in hits[0].parts


def test_a_hit_has_its_path_and_rows(search: Searcher) -> None:
    hits = search.search("start engine")
    assert hits
    for hit in hits:
        lines = FILES[hit.path].split("\n")
        assert hit.text == "\n".join(lines[hit.first_row : hit.end_row])
        assert hit.score == pytest.approx(sum(hit.parts.values()))


@pytest.mark.parametrize(
    ("kind", "own_scope", "name", "scope", "certainty"),
    [
        ("function", "", "run", "", 1.0),
        ("function", "", "Run", "", 0.8),
        ("function", "", "ru", "", 1.0),  # how much is missing is counted elsewhere
        ("function", "", "RU", "", 0.8),
        ("method", "", "run", "", 0.9),
        ("method", "", "RUN", "", 0.72),
        ("function", "Job", "run", "job", 1.0),
        ("function", "Job > Part", "run", "gone Part", 1.0),  # the next name is enough
        ("function", "Job > Part", "run", "Job", 1.0),
        ("function", "Job > Part", "run", "Job gone", 0.7),
        ("function", "Job > Part", "run", "no gone", 0.4),
        ("function", "", "run", "work", 1.0),  # a folder
        ("function", "", "run", "work jobs", 1.0),  # and the file
        ("function", "", "run", "Work gone", 0.7),
        ("function", "", "run", "gone", 0.4),
    ],
)
def test_the_certainty_of_a_definition(
    kind: str, own_scope: str, name: str, scope: str, certainty: float
) -> None:
    symbol = StoredSymbol("run", kind, 3, 9, own_scope, "src/work/jobs.x.py", "python")
    assert certainty_of(symbol, name, scope.split()) == pytest.approx(certainty)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start_engine", [("src/boat.py", 0.9), ("src/car.py", 0.9)]),
        ("Car.start_engine", [("src/car.py", 0.9), ("src/boat.py", 0.36)]),
        ("who calls buy_car or Boat.anchor", [("src/car.py", 1.0), ("src/boat.py", 0.9)]),
        ("test_buy_car", [("tests/test_car.py", 1.0)]),
        ("buy_c", [("src/car.py", 0.4 + 0.4 * 5 / 7)]),  # only its beginning
        ("Buy_c", [("src/car.py", 0.8 * (0.4 + 0.4 * 5 / 7))]),  # in another case
        ("buy_c kind:class", []),
        ("ancho", []),  # but not of a plain word
    ],
)
def test_the_definitions_of_the_names_in_a_question(
    search: Searcher, text: str, expected: list[tuple[str, float]]
) -> None:
    found = find_definitions(parse(text), search.reader, {})
    assert [one.symbol.path for one in found] == [path for path, _ in expected]
    assert [one.certainty for one in found] == pytest.approx([each for _, each in expected])


def test_equal_definitions_in_tests_come_last(tmp_path: Path) -> None:
    text = "\n\ndef turn_it():\n    pass\n"
    files = {"a_test.py": text, "b.py": text, "a/c.py": text + text}
    search = searching.searcher(searching.made(tmp_path / "index", files))
    found = find_definitions(parse("turn_it"), search.reader, {})
    assert [(one.symbol.path, one.symbol.first_row) for one in found] == [
        ("a/c.py", 2),
        ("a/c.py", 6),
        ("b.py", 2),
        ("a_test.py", 2),
    ]


IDENTIFIERS = {
    "save/zqsave.py": "zqsave = 0\n\ndef x():\n    return zqsave(x, x, zqsave)\n",
    "tests/test_it.py": "def test_it():\n    zqsave0x = 3\n    assert zqsave0x\n",
    **{f"src/q{n}.py": f"def q{n}():\n    return zqsave{n}x + zqsave\n" for n in range(1, 9)},
    "src/defined.py": "def zqother1x():\n    pass\n",
    "src/uses.py": "zqother1x(zqother1x, zqother1x)\n" * 9,
}


@pytest.mark.parametrize("has_vectors", [False, True])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("zqsave0x", "tests/test_it.py"),  # nothing else has it, so also a test is meant
        ("zqsave5x", "src/q5.py"),
        ("ZQSave5x", "src/q5.py"),
        ("zqother1x", "src/defined.py"),
        ("zqsave", "save/zqsave.py"),
    ],
)
def test_an_undefined_identifier_is_found(
    tmp_path: Path, name: str, path: str, has_vectors: bool
) -> None:
    store = searching.made(tmp_path / "index", IDENTIFIERS)
    search = searching.with_vectors(store) if has_vectors else searching.searcher(store)
    (hit, *_) = search.search(name)
    assert hit.path == path
    assert abs(sum(hit.parts.values()) - hit.score) < 1e-6


def test_tests_rank_below_the_code_they_test(search: Searcher) -> None:
    found = paths(search.search("buy a car"))
    assert found.index("src/car.py") < found.index("tests/test_car.py")
    assert paths(search.search("test of buying a car"))[0] == "tests/test_car.py"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("engine path:boat", {"src/boat.py"}),
        ("engine path:*.lua", {"src/ignition.lua"}),
        ("engine lang:md", {"README.md"}),
        ("engine lang:lua,markdown", {"src/ignition.lua", "README.md"}),
        ("engine kind:class lang:py", {"src/boat.py", "src/car.py"}),
        ("start_engine path:boat", {"src/boat.py"}),
        ("start_engine kind:class path:none", set()),
        ("path:src lang:lua", {"src/ignition.lua"}),
        ("path:nowhere", set()),
        ("", set()),
        ("zzzzqqq", set()),
    ],
)
@pytest.mark.parametrize("has_vectors", [False, True])
def test_search_filters(store: Store, text: str, expected: set[str], has_vectors: bool) -> None:
    search = searching.with_vectors(store) if has_vectors else searching.searcher(store)
    mode: Mode = "hybrid" if text != "zzzzqqq" else "lexical"
    assert set(paths(search.search(text, mode=mode))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("needle path:app/[slug]/", "app/[slug]/page.tsx"),
        ("needle path:app/[slug]/*.tsx", "app/[slug]/page.tsx"),
        ("needle path:app/[...all]", "app/[...all]/page.tsx"),
        ("needle path:app/[st]/", "app/s/page.tsx"),
    ],
)
def test_brackets_of_a_path_are_literal_if_it_exists(
    tmp_path: Path, text: str, expected: str
) -> None:
    names = ["app/[slug]/page.tsx", "app/s/page.tsx", "app/[...all]/page.tsx"]
    store = searching.made(tmp_path, {name: f"const needle = '{name}'\n" for name in names})
    assert paths(searching.searcher(store).search(text)) == [expected]


def test_vectors_find_synonyms(store: Store) -> None:
    assert "src/car.py" not in paths(searching.searcher(store).search("purchase automobile"))
    hits = searching.with_vectors(store).search("purchase automobile")
    assert hits[0].path in {"src/car.py", "tests/test_car.py"}
    assert "vector" in hits[0].parts


def test_the_more_unusual_of_two_equally_near_chunks_comes_first(tmp_path: Path) -> None:
    alike = {f"a{n}.py": f"def polish(wax, cloth, chrome, a{n}): pass\n" for n in range(6)}
    store = searching.made(tmp_path, {**alike, "b.py": "def polish(deck, rope, sail, b0): pass\n"})
    search = searching.with_vectors(store)
    scores = dict.fromkeys(range(1, 8), 0.5)
    assert search.vectors is not None
    search.vectors.search = lambda *_: list(scores.items())  # type: ignore[method-assign]
    hits = search.search("make it shine", mode="vector")
    assert paths(hits)[0] == "b.py"
    store.close()


def test_each_mode_searches_its_lists(store: Store) -> None:
    search = searching.with_vectors(store)
    modes: tuple[Mode, ...] = ("lexical", "vector", "hybrid")
    asked = {
        mode: {part for hit in search.search("buy_car engine", mode=mode) for part in hit.parts}
        for mode in modes
    }
    assert "vector" not in asked["lexical"]
    assert not {"lexical", "symbol"} & asked["vector"]
    assert {"lexical", "vector", "symbol"} <= asked["hybrid"]


def test_a_name_that_is_defined_needs_no_vector(store: Store) -> None:
    search = searching.with_vectors(store)
    assert isinstance(search.embedder, searching.Meanings)
    assert search.search("buy_car")[0].scope == "buy_car"
    assert search.embedder.asked == []
    search.search("no_such_name")
    assert search.embedder.asked == ["no_such_name"]


def test_words_are_looked_for_while_a_sentence_is_embedded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searching.with_vectors(store)
    assert search.embedder is not None
    is_looking, embed, look = threading.Event(), search.embedder.query, search.reader.lexical
    waited: list[bool] = []

    def query(text: str) -> NDArray[np.float32]:
        waited.append(is_looking.wait(10))
        return embed(text)

    def lexical(*args: Any) -> list[tuple[int, float]]:
        is_looking.set()
        return look(*args)

    monkeypatch.setattr(search.embedder, "query", query)
    monkeypatch.setattr(search.reader, "lexical", lexical)
    assert "src/car.py" in paths(search.search("how to acquire an automobile"))
    assert waited == [True]


def test_errors_while_embedding_are_raised(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    search = searching.with_vectors(store)

    def query(text: str) -> NDArray[np.float32]:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(search.embedder, "query", query)
    with pytest.raises(RuntimeError, match="out of memory"):
        search.search("how to acquire an automobile")


def test_recent_files_rank_above_equal_ones(tmp_path: Path) -> None:
    text = "def turn(wheel):\n    return wheel\n"
    store = searching.made(tmp_path / "index", {"src/a.py": text, "src/b.py": text})
    for search in (searching.searcher(store), searching.with_vectors(store)):
        for first in ("src/a.py", "src/b.py"):
            for question in ("turn", "wheel", "turn a wheel", "how does turn_x turn"):
                hits = search.search(question, recent=[first, "gone.py"])
                assert hits[0].path == first, question
                assert "recent" in hits[0].parts


def test_staleness_is_checked_once_per_file(search: Searcher) -> None:
    asked: list[str] = []

    def is_stale(path: str) -> bool:
        asked.append(path)
        return path == "src/car.py"

    hits = search.search("engine", is_stale=is_stale)
    assert {hit.path for hit in hits if hit.is_stale} == {"src/car.py"}
    assert len(asked) == len(set(asked))


# Unsaved buffers


def test_an_unsaved_buffer_is_searched_as_it_is(search: Searcher) -> None:
    text = CARS.replace("def park", "def levitate")
    hit = search.search("levitate", overlay={"src/car.py": text}, is_stale=lambda path: True)[0]
    assert (hit.path, hit.is_stale) == ("src/car.py", False)
    assert hit.first_row == rows("src/car.py", "    def park(self):")
    assert hit.text.startswith("    def levitate")


def test_text_deleted_from_a_buffer_is_not_found(search: Searcher) -> None:
    without = CARS[: CARS.index("def buy_car")]
    found = search.search("buy_car", overlay={"src/car.py": without})
    assert all(hit.path == "src/car.py" or "definition" not in hit.parts for hit in found)
    assert all("def buy_car" not in hit.text for hit in found if hit.path == "src/car.py")


def test_an_empty_buffer_hides_its_file(search: Searcher) -> None:
    assert "src/boat.py" not in paths(search.search("anchor boat", overlay={"src/boat.py": ""}))


def test_a_buffer_of_no_file_is_found(search: Searcher) -> None:
    overlay = {"src/plane.py": "def take_off(runway):\n    return runway\n"}
    for text in ("take_off", "take off from a runway", "runway path:plane", "path:plane"):
        assert paths(search.search(text, overlay=overlay))[0] == "src/plane.py", text
    assert search.search("runway lang:lua", overlay=overlay) == []
    assert paths(search.search("kind:class", overlay=overlay)).count("src/plane.py") == 0


def test_a_changed_buffer_is_as_near_as_it_was(store: Store) -> None:
    search = searching.with_vectors(store)
    text = CARS.replace("return None", "return 0")
    hits = search.search("purchase automobile", mode="vector", overlay={"src/car.py": text})
    hit = next(hit for hit in hits if hit.path == "src/car.py")
    assert "return 0" in hit.text


def test_rows_follow_the_buffer(tmp_path: Path) -> None:
    body = "\n\n".join(
        f"def task_{number}(argument):\n" + "    value = argument + argument\n" * 40
        for number in range(8)
    )
    store = searching.made(tmp_path / "index", {"a.py": body})
    search = searching.with_vectors(store)
    moved = "# first\n# second\n" + body
    hit = search.search("task_5", overlay={"a.py": moved})[0]
    assert moved.split("\n")[hit.first_row] == "def task_5(argument):"
    for hit in search.search("value argument", overlay={"a.py": moved}):
        assert hit.text == "\n".join(moved.split("\n")[hit.first_row : hit.end_row])


def test_for_a_large_buffer_the_stored_file_is_searched(search: Searcher) -> None:
    large = {"src/car.py": "x = 1\n" * 100_000}
    assert search.search("buy_car", overlay=large)[0].path == "src/car.py"


def test_words_of_code_are_no_filters(tmp_path: Path) -> None:
    store = searching.made(tmp_path / "index", {"car.py": "def buy_car(path):\n    return path\n"})
    search = searching.searcher(store)
    for has_filters, expected in ((False, ["car.py"]), (True, [])):
        hits = search.search("buy_car( path:str", has_filters=has_filters)
        assert paths(hits) == expected


def test_an_incomplete_last_word_is_completed(tmp_path: Path) -> None:
    """So that the results for a word do not change while it is typed."""
    files = {
        "src/env.py": "def read(environ):\n    # hosts without a proxy\n    return proxies\n",
        "src/approx.py": "def approximate(hosts):\n    return bypass(hosts, hosts)\n",
        "src/zstd.py": "class Decoder:\n    def bypass(self, which):\n        return which\n",
    }
    search = searching.searcher(searching.made(tmp_path, files))
    texts = [f"which hosts bypass the {word}" for word in ("proxy", "pro", "prox", "Prox", "proxi")]
    first, *rest = [paths(search.search(text)) for text in texts]
    assert first[0] == "src/env.py"
    assert rest == [first] * len(rest)
    unsaved = {"new.py": "prox = 1\n"}
    assert paths(search.search("the prox", overlay=unsaved)) == ["new.py"]


RUST = """//! Doors of a garage: opening and closing of doors.
use std::{};

/// Opens.
pub fn open_door() {{
    push(closing);
}}

#[cfg(test)]
mod tests {{
    #[test]
    fn door_opens_and_closes() {{
        open_door();
    }}
}}
"""


@pytest.mark.parametrize("is_saved", [True, False])
def test_imports_and_tests_in_a_file_of_code_rank_below_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_saved: bool
) -> None:
    for limit in ("MAX_CHARS", "GOOD_CHARS", "MIN_CHARS"):  # each part is a chunk
        monkeypatch.setattr(chunk, limit, 60)
    text = RUST.format("closing")
    store = searching.made(tmp_path, {"a.rs": text if is_saved else "fn a() {}\n"})
    overlay = {} if is_saved else {"a.rs": text}
    found = searching.searcher(store).search("opening and closing of doors", overlay=overlay)
    rows = {hit.text.split("\n")[0].strip(): set(hit.parts) for hit in found}
    assert "bare" in rows[RUST.split("\n")[0]]
    assert "tests" in rows["#[cfg(test)]"]
    assert not {"bare", "tests"} & rows["/// Opens."]
    store.close()
