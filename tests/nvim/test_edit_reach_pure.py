"""What is said about edits, and other functions of theirs that only compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.nvim.edits import digest

Call = Callable[..., Any]
BAD = {"name": "parses", "is_ok": False, "text": ""}
GOOD = {"name": "indent", "is_ok": True, "text": ""}


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as nvim:
        yield nvim.lua


def call(module: str, name: str) -> str:
    """Return Lua that calls a function of a module."""
    return f"return require('lcursor.{module}').{name}(...)"


@pytest.mark.parametrize(
    ("first", "last", "place"),
    [(0, 0, "a.py:1"), (0, 1, "a.py:1"), (4, 9, "a.py:5-9"), (4, 6, "a.py:5-6")],
)
def test_a_place_counts_from_one(lua: Call, first: int, last: int, place: str) -> None:
    assert lua(call("editor.buffers", "location"), "a.py", first, last) == place


def file(changes: int, *checks: dict[str, Any]) -> dict[str, Any]:
    """Return what a proposal says of a file, as far as it is counted."""
    return {"changes": [{}] * changes, "checks": list(checks)}


@pytest.mark.parametrize(
    ("said", "files", "text"),
    [
        ({}, [file(1)], "1 hunk proposed"),
        ({}, [file(0)], "1 hunk proposed"),  # a file that is deleted has no lines to change
        ({}, [file(2, GOOD), file(1)], "3 hunks proposed in 2 files"),
        ({"attempts": 2}, [file(1)], "1 hunk proposed after 2 attempts"),
        ({"alternative": 3}, [file(1)], "1 hunk proposed (alternative 3)"),
        ({}, [file(1, BAD, GOOD), file(1, BAD)], "in 2 files; not passed: parses"),
        ({"note": "a\nb"}, [file(1)], "1 hunk proposed. a b"),
    ],
)
def test_a_proposal_in_one_line(
    lua: Call, said: dict[str, Any], files: list[dict[str, Any]], text: str
) -> None:
    message = {"alternative": 1, "attempts": 1, "note": "", "files": files, **said}
    found = lua("return require('lcursor.edit').describe(...)", message)
    assert found.endswith(text)


@pytest.mark.parametrize(
    ("view", "text"),
    [
        ({"phase": "server", "detail": "loading"}, "starting the server: loading"),
        ({"phase": "queue"}, "waiting for other requests"),
        ({"phase": "reading", "what": "function f", "done": 10, "total": 90},
         "reading function f, 10 of 90 tokens"),
        ({"phase": "writing", "what": "class A", "done": 1, "total": 3, "seconds_left": 0.4},
         "writing class A, 1 of 3 lines, 1 s left"),
        ({"phase": "writing", "seconds_left": 130.0}, "writing, 3 min left"),
        ({"phase": "writing", "what": "class A", "done": 12, "total": 5, "seconds_left": 0.0},
         "writing class A, 12 lines"),
        ({"phase": "reading", "done": 90, "total": 90, "seconds_left": 0.0},
         "reading, 90 of 90 tokens"),
        ({"phase": "checking", "attempt": 2}, "checking (attempt 2)"),
        ({"phase": "writing", "is_stopping": True}, "stopping"),
    ],
)  # fmt: skip
def test_what_an_edit_does_in_one_line(lua: Call, view: dict[str, Any], text: str) -> None:
    none = {"what": "", "detail": "", "done": 0, "total": 0, "seconds_left": -1.0, "attempt": 1}
    assert lua(call("edit.progress", "sentence"), {**none, "is_stopping": False, **view}) == text


def test_the_gravest_and_nearest_diagnostic_comes_first(lua: Call) -> None:
    found = lua(
        """
        local buf = vim.api.nvim_create_buf(true, false)
        vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "a b c", "d", "e" })
        local space = vim.api.nvim_create_namespace("t")
        vim.diagnostic.set(space, buf, {
          { lnum = 0, col = 0, end_col = 1, message = "far", severity = 1 },
          { lnum = 0, col = 4, end_col = 5, message = "near", severity = 1 },
          { lnum = 0, col = 4, message = "hint", severity = 4 },
          { lnum = 0, end_lnum = 2, col = 0, message = "long", severity = 2 },
          { lnum = 1, col = 0, message = "below", severity = 1 },
        })
        local found = require("lcursor.editor.diagnostics").at(buf, ...)
        return vim.tbl_map(function(each) return each.message end, found)
        """,
        0,
        1,
        4,
    )
    assert found == ["near", "far", "long", "hint"]


@pytest.mark.parametrize("lines", [[], [""], ["a"], ["größe", "", "\t"]])
def test_a_digest_is_that_of_the_backend(lua: Call, lines: list[str]) -> None:
    assert lua(call("text.diff", "digest"), lines) == digest(lines)


@pytest.mark.parametrize("lines", [[""], ["a"], ["a", ""], ["", "", "b"], ["é", "a\0b", "c"]])
def test_a_text_has_as_many_lines_on_either_side(lua: Call, lines: list[str]) -> None:
    """A NUL, which the API says as a newline, ends no line."""
    text = lua(
        """
        local buf = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_lines(buf, 0, -1, false, ...)
        local text = require("lcursor.editor.buffers").text
        local found = { text(buf).text }
        vim.api.nvim_buf_set_lines(buf, 0, 0, false, { "more" })
        table.insert(found, text(buf).text)
        return found
        """,
        lines,
    )
    assert text[0].split("\n") == lines
    assert text[1].split("\n") == ["more", *lines]  # what was read is not kept beyond a change


def test_the_diff_is_found_where_neovim_0_12_has_it(neovim: Path, tmp_path: Path) -> None:
    moved = "vim.text.diff, vim.diff = vim.text.diff or vim.diff, nil\n"
    with Editor(neovim, tmp_path, init=moved) as nvim:
        blocks = nvim.lua(call("text.diff", "blocks"), ["a", "b", "c"], ["x", "b", "y"])
    assert [block["first"] for block in blocks] == [0, 2]
