"""What edits do when a buffer changes: errors are reported, and decided edits cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.editor import DECIDED_EDITS
from tests.nvim.edits import Room

OLD = ["one", "two", "three"]
NEW = ["one", "TWO", "three"]
FAIL = "require('lcursor.edit.track').corrected = function() error('a bug') end"


@pytest.fixture
def room(neovim: Path, tmp_path: Path) -> Iterator[Room]:
    with Room(neovim, tmp_path) as one:
        yield one


def test_an_error_while_hunks_are_followed_is_reported_once(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.lua(FAIL)
    room.keys("ggOabove<Esc>Omore<Esc>")
    [note] = room.notes()
    assert note.startswith("lcursor: an error in lcursor: ")
    assert "a bug" in note
    assert room.lines() == ["more", "above", *OLD]


COUNT = """
_G.calls = { number = 0, slices = 0, getqflist = 0 }
local function count(owner, name, key, is_counted)
  local fn = owner[name]
  owner[name] = function(...)
    if not is_counted or is_counted(...) then
      _G.calls[key] = _G.calls[key] + 1
    end
    return fn(...)
  end
end
count(require("lcursor.editor.buffers"), "change_number", "number")
count(vim.fn, "getqflist", "getqflist", function(what) -- not those that keep the list up to date
  return what.id == 0
end)
count(vim, "defer_fn", "slices", function() -- not those of colours that were asked for before
  local caller = debug.getinfo(5, "f")
  return caller and caller.func == require("lcursor.edit.render").refresh
end)
"""
LINES = [f"line {number}" for number in range(300)]


@pytest.fixture
def decided(room: Room) -> Room:
    """A buffer with 20 decided edits, after the list of hunks was used."""
    room.nvim.lua("require('lcursor.edit.quickfix')")
    path = room.open("a.txt", LINES)
    room.offer(path, LINES, ["new", *LINES])
    room.nvim.lua("require('lcursor.edit.quickfix').open()")
    room.nvim.command("cclose")
    room.hunks("reject_file")
    room.nvim.wait_lua("return #vim.fn.getqflist() == 0")
    room.nvim.lua(DECIDED_EDITS)
    assert room.states() == ["accepted"] * 100
    room.settle()
    return room


def test_decided_edits_are_looked_at_once_per_key(decided: Room) -> None:
    decided.nvim.lua(COUNT)
    decided.keys("Gox<Esc>")
    decided.settle()
    calls = decided.nvim.lua("return _G.calls")
    assert calls["number"] <= 2  # a new line and a character
    assert calls["slices"] == 0
    assert calls["getqflist"] == 0


def test_scrolling_draws_nothing_where_all_is_decided(decided: Room) -> None:
    decided.nvim.lua(COUNT)
    for _ in range(5):
        decided.nvim.command("doautocmd WinScrolled")
        decided.nvim.command("doautocmd CursorMoved")
        decided.settle()
    assert decided.nvim.lua("return _G.calls") == {"number": 0, "slices": 0, "getqflist": 0}


def test_decided_edits_can_be_undone_and_redone(decided: Room) -> None:
    decided.decided()
    decided.keys("Gotyped<Esc>")
    decided.keys("uu")
    assert decided.states().count("open") == 5
    [undone] = decided.decided()
    assert undone["is_undone"]
    assert len(undone["accepted"]) == 5
    decided.keys("<C-r>")
    assert decided.states().count("open") == 0
    assert not decided.decided()[0]["is_undone"]
