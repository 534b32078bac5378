"""What the pickers of other plugins can show: search results, chats, models and hunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.edits import file, proposed
from tests.nvim.pilot import Pilot
from tests.nvim.test_chat_list import TALK, row
from tests.nvim.test_chat_list import answer as answer_chats
from tests.nvim.test_index import FILES
from tests.nvim.test_index_search import answer, hit

Start = Callable[..., Pilot]

# Finds items, and keeps what can be read of them.
FIND = """
function _G.find(name, query)
  _G.source = _G.source or require("lcursor.integrations.sources").get(name)
  _G.answers = _G.answers or {}
  local number = #_G.answers + 1
  _G.answers[number] = false
  if not _G.source then return end
  _G.source.find(query or "", function(items)
    assert(_G.answers[number] == false, "answered twice")
    _G.items = items
    _G.answers[number] = vim.tbl_map(function(item)
      item = vim.deepcopy(item)
      item.confirm, item.cells = nil, require("lcursor.text").of_cells(item.cells)
      return item
    end, items)
  end)
end
"""


def find(nvim: Pilot, name: str, query: str = "") -> None:
    """Ask a source."""
    nvim.lua("_G.find(...)", name, query)


def items(nvim: Pilot) -> list[dict[str, Any]]:
    """Return the items of the last answer."""
    nvim.settle()
    found: list[dict[str, Any]] = nvim.lua("return _G.answers[#_G.answers]")
    return found


def lines(nvim: Pilot) -> list[str]:
    """Return the lines of the items of the last answer."""
    return [item["cells"] for item in items(nvim)]


def place(nvim: Pilot) -> tuple[str, int]:
    """Return the current file and the line of the cursor."""
    name, line = nvim.lua("return { vim.fn.bufname(), vim.fn.line('.') }")
    return name, line


@pytest.fixture
def start(editor: Start) -> Start:
    """Start a Neovim that can ask sources."""

    def begin(files: dict[str, str] | None = None, **more: Any) -> Pilot:
        return editor(files or FILES, init=reach.NOTES + FIND, **more)

    return begin


def propose(nvim: Pilot, *files: dict[str, Any]) -> None:
    """Propose changes, as the host would."""
    nvim.lua("require('lcursor.edit').start()")
    nvim.lua("require('lcursor.edit.proposals').propose(...)", proposed(files))


def test_search_results_are_items(start: Start, host: FakeHost) -> None:
    nvim = start()
    find(nvim, "search", "call beta")
    answer(nvim, host, "call beta", [hit(nvim), hit(nvim, "sub/b.py", first_row=0, end_row=9)])
    first, second = items(nvim)
    path = str(nvim.home / "project/a.py")
    assert first.pop("hit")["name"] == "a.py"
    assert first == {
        "cells": "a.py:5: def beta(y):",
        "file": path,
        "row": 4,
        "end_row": 6,
        "text": "def beta(y):",
    }
    assert second["cells"] == "sub/b.py:1: def beta(y):"


@pytest.mark.parametrize(
    ("command", "windows", "tabs"),
    [("edit", 1, 1), ("split", 2, 1), ("vsplit", 2, 1), ("tabedit", 1, 2), (None, 1, 1)],
)
def test_a_search_result_is_opened(
    start: Start, host: FakeHost, command: str | None, windows: int, tabs: int
) -> None:
    nvim = start()
    find(nvim, "search", "z")
    answer(nvim, host, "z", [hit(nvim), hit(nvim, "sub/b.py", first_row=0, end_row=1, text="z")])
    nvim.lua("_G.items[2].confirm(...)", *([command] if command else []))
    assert place(nvim) == ("sub/b.py", 1)
    counts = "return { #vim.api.nvim_tabpage_list_wins(0), #vim.api.nvim_list_tabpages() }"
    assert nvim.lua(counts) == [windows, tabs]


def test_every_search_is_answered_once(start: Start, host: FakeHost) -> None:
    """A picker that waits for an answer would wait for ever."""
    nvim = start()
    find(nvim, "search", " @ ")
    assert items(nvim) == []
    find(nvim, "search", "be")
    host.wait(lambda: [each for each in host.messages("index.search") if each["text"] == "be"])
    find(nvim, "search", "beta")
    nvim.settle()
    assert nvim.lua("return _G.answers") == [[], [], False]
    answer(nvim, host, "be", [hit(nvim)])
    assert nvim.lua("return _G.answers[3]") is False
    answer(nvim, host, "beta", [hit(nvim)])
    assert lines(nvim) == ["a.py:5: def beta(y):"]
    find(nvim, "search", "gamma")
    asked = reach.asked(host, "index.search", 3)
    error = {"code": "index_failed", "message": "no index", "hint": "", "level": "warn"}
    host.send("error", {"id": asked["id"], **error})
    assert items(nvim) == []


def test_a_note_about_the_index_is_shown_once(start: Start, host: FakeHost) -> None:
    nvim = start()
    for query in ("a1", "a2"):
        find(nvim, "search", query)
        answer(nvim, host, query, [], "34 of 100 files are indexed")
    assert reach.told(nvim) == ["lcursor: 34 of 100 files are indexed"]


def test_chats_are_items(start: Start, host: FakeHost) -> None:
    nvim = start()
    find(nvim, "chats")
    rows = [row(nvim, "k1", "One", 125), row(nvim, "key2", "Two", 7300, preview="why\nso")]
    assert answer_chats(nvim, host, rows)["path"] == str(nvim.home / "project/a.py")
    assert lines(nvim) == ["  2 min  One  One please", "  2 h    Two  why so"]
    preview = ["# Two", "", "4 messages, small", "", "why", "so"]
    assert (items(nvim)[1]["preview"], items(nvim)[1]["filetype"]) == (preview, "markdown")
    nvim.lua("_G.items[2].confirm()")
    assert reach.asked(host, "chat.open")["chat"] == "key2"


def test_models_are_items(start: Start, host: FakeHost) -> None:
    nvim = start()
    find(nvim, "models")
    assert reach.told(nvim) == ["lcursor: no chat is open; :LCChat opens one"]
    reach.chat(nvim, host, TALK)
    find(nvim, "models")
    assert lines(nvim) == ["small (current)", "large"]
    nvim.lua("_G.items[1].confirm()")
    assert reach.told(nvim)[-1] == "lcursor: this chat already uses small"
    nvim.lua("_G.items[2].confirm()")
    assert reach.asked(host, "chat.use")["model"] == "large"


def test_hunks_are_items(start: Start) -> None:
    nvim = start({"a.txt": "one\ntwo\nthree\n", "b.txt": "x\n"})
    find(nvim, "hunks")
    assert reach.told(nvim) == ["lcursor: no open hunks"]
    root = nvim.home / "project"
    propose(
        nvim,
        file(root / "a.txt", ["one", "two", "three"], ["one", "TWO", "three", "four"]),
        file(root / "b.txt", ["x"], ["y"]),
        file(root / "c.txt", [], ["new"], kind="create", base=""),
    )
    find(nvim, "hunks")
    assert lines(nvim) == [
        "a.txt:2: +1 -1 | + TWO | do it",
        "a.txt:3: +1 -0 | + four | do it",
        "b.txt:1: +1 -1 | + y | do it",
        "c.txt:1: is created | do it",
    ]
    first, last = items(nvim)[0], items(nvim)[3]
    assert first["preview"] == ["--- a.txt", "@@ -2,1 +2,1 @@", "-two", "+TWO"]
    assert (first["row"], first["end_row"], first["filetype"]) == (1, 2, "diff")
    assert last["preview"] == ["--- c.txt", "@@ -1,0 +1,1 @@", "+new"]
    nvim.lua("_G.items[2].confirm()")
    assert place(nvim) == ("a.txt", 3)
    nvim.lua("_G.items[1].confirm('vsplit')")
    assert place(nvim) == ("a.txt", 2)
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2
    nvim.lua("_G.items[3].confirm('tabedit')")  # its hunk is placed once its file is read
    assert place(nvim) == ("b.txt", 1)
    assert nvim.lua("return #vim.api.nvim_list_tabpages()") == 2
    assert nvim.lua("return require('lcursor.edit.hunks').at_cursor() ~= nil")
    nvim.lua("_G.items[4].confirm()")
    assert place(nvim) == ("c.txt", 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("search", "lcursor: the index is switched off by the setting enabled"),
        ("chats", "lcursor: the chat is switched off by the setting enabled"),
        ("models", "lcursor: the chat is switched off by the setting enabled"),
        ("hunks", "lcursor: edits are switched off by the setting enabled"),
        (
            "chat",
            "lcursor: there is no source chat (expected: chats, hunks, models, search)",
        ),
    ],
)
def test_what_cannot_be_picked(start: Start, name: str, text: str) -> None:
    nvim = start(config={"enabled": False})
    find(nvim, name)
    assert reach.told(nvim) == [text]
