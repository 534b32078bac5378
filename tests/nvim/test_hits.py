"""How search results are shown: the best line, labels, reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor

Call = Callable[..., Any]
HIT = {
    "path": "/p/a.py",
    "name": "a.py",
    "first_row": 10,
    "end_row": 13,
    "scope": "",
    "kind": "",
    "language": "python",
    "text": "def f(x):\n    # waits for the answer\n    return answer\n",
    "score": 1.0,
    "parts": {"lexical": 0.5, "definition": 2.0, "penalty": -0.7},
    "is_stale": False,
}


@pytest.fixture(scope="module")
def nvim(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as one:
        yield one


@pytest.fixture
def lua(nvim: Editor) -> Call:
    """Call a function of search.lua."""

    def call(name: str, *args: object) -> Any:
        code = "local n = ... return { require('lcursor.index.search')[n](select(2, ...)) }"
        return nvim.lua(code, name, *args)

    return call


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Where is the Answer", ["where", "is", "the", "answer"]),
        ("a a_b a_b", ["a_b"]),
        ('lang:lua path:"my folder" kind:class wait', ["wait"]),
        ("std::vector", ["std", "vector"]),
        ("größe [x] %d", ["größe"]),
        ("", []),
    ],
)
def test_words(lua: Call, query: str, words: list[str]) -> None:
    assert (lua("words", query)[0] or []) == words


@pytest.mark.parametrize(
    ("other", "words", "row", "line"),
    [
        ({}, ["answer", "waits"], 11, "# waits for the answer"),
        ({}, ["return"], 12, "return answer"),
        ({}, ["nothing"], 10, "def f(x):"),
        ({"text": "\n\n  x = 1\n"}, [], 12, "x = 1"),
        ({"text": "class A:\n    def answer(self):\n"}, ["answer"], 10, "def answer(self):"),
        ({"text": ""}, ["x"], 10, ""),
    ],
    ids=["most-words", "one-word", "none", "blank-lines", "outline", "empty"],
)
def test_the_best_line(
    lua: Call, other: dict[str, Any], words: list[str], row: int, line: str
) -> None:
    assert lua("best_line", {**HIT, **other}, words) == [row, line]


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({}, "a.py:13: return answer"),
        ({"scope": "Desk"}, "a.py:13: Desk: return answer"),
        ({"kind": "method", "scope": "Desk"}, "a.py:13: method in Desk: return answer"),
        ({"kind": "function"}, "a.py:13: function: return answer"),
        ({"is_stale": True}, "a.py:13: (changed since): return answer"),
        ({"scope": "Desk > answer"}, "a.py:13: Desk: return answer"),
        ({"scope": "answer"}, "a.py:13: return answer"),
        ({"scope": "answers"}, "a.py:13: answers: return answer"),
    ],
)
def test_a_line(nvim: Editor, other: dict[str, Any], line: str) -> None:
    code = """
        local item = require("lcursor.index.search").items(...)[1]
        return require("lcursor.text").of_cells(item.cells)
    """
    assert nvim.lua(code, {"query": "return", "hits": [{**HIT, **other}]}) == line


def test_a_line_is_listed_once(nvim: Editor) -> None:
    """A class whose text is long is found twice: as its first part and as its outline."""
    outline = {"end_row": 90, "text": "class Desk:\n    def answer(self):\n"}
    first = {"end_row": 12, "text": "class Desk:\n    answer = 1"}
    names = [{"kind": "constant", "scope": "", "text": name} for name in ("answer", "other")]
    code = """
        return vim.tbl_map(function(item)
          return require("lcursor.text").of_cells(item.cells)
        end, require("lcursor.index.search").items(...))
    """

    def shown(hits: list[dict[str, Any]]) -> Any:
        return nvim.lua(code, {"query": "desk", "hits": [{**HIT, **each} for each in hits]})

    assert shown([outline, first, {**first, "path": "/p/b.py", "name": "b.py"}]) == [
        "a.py:11: class Desk:",
        "b.py:11: class Desk:",
    ]
    assert shown(names) == ["a.py:11: constant: answer", "a.py:11: constant: other"]


def test_reasons_are_words_and_begin_with_the_main_one(lua: Call) -> None:
    assert lua("reasons", HIT) == ["defines the name, matching words"]
    parts = {"vector": 1, "tests": -0.8, "lexical": 0.08, "file": 0.04}
    assert lua("reasons", {**HIT, "parts": parts}) == ["similar meaning, matching words"]
