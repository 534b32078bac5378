"""How hunks look, and how long drawing them holds Neovim up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.edit_screen import DRAWN, NOTES, big
from lcursor.drive.screen import Screen
from tests.nvim import edits
from tests.nvim.edits import Room, file, proposed

Golden = Callable[[str, str], None]

# Redraw events name the group that a link ends at, so ours get colours of their own.
COLOURS = """
for i, name in ipairs({ "Added", "AddedWord", "Removed", "RemovedWord", "Conflict", "Badge",
  "Failed", "Key", "Disputed" }) do
  vim.api.nvim_set_hl(0, "LCursorEdit" .. name, { bg = 0x101010 + i })
end
"""
# A clock that goes on by 0.2 ms whenever it is read, and how many slices are put off.
SLOW_CLOCK = """
local now = 0
vim.uv.hrtime = function()
  now = now + 2e5
  return now
end
_G.slices = 0
local defer = vim.defer_fn
vim.defer_fn = function(...)
  local caller = debug.getinfo(3, "S") -- behind notify.later
  if caller and caller.source:find("ui/slices.lua", 1, true) then
    _G.slices = _G.slices + 1
  end
  return defer(...)
end
"""
# The virtual lines of the buffer.
SHOWN = """
local found = {}
local space = vim.api.nvim_create_namespace("lcursor.edit")
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  for _, line in ipairs(mark[4].virt_lines or {}) do
    local words = vim.tbl_map(function(chunk) return chunk[1] end, line)
    table.insert(found, vim.trim(table.concat(words)))
  end
end
return found
"""
OLD = """\
import os


def alpha(x, y):
    total = x + y
    return total


class Beta:
    def run(self):
        print("run")
        return alpha(1, 2)
""".splitlines()
NEW = """\
import os
import sys


def alpha(x, y, z):
    total = x + y + z
    return total


class Beta:
    def run(self):
        return alpha(1, 2, len(sys.argv))
""".splitlines()


@pytest.fixture
def room(neovim: Path, tmp_path: Path) -> Iterator[Room]:
    """A Neovim of its own for each test: what is drawn depends on what was before."""
    with Room(neovim, tmp_path, COLOURS, columns=76, lines=24) as one:
        yield one


def drawn(room: Room) -> None:
    """Wait until all is drawn, with its colours."""
    room.nvim.wait_lua("return require('lcursor.edit.render').is_done()")
    room.nvim.command("redraw")
    room.settle()


def grid(room: Room) -> str:
    """Return the screen: `+` before rows with new text, `-` before old ones, words in marks."""
    screen = room.nvim.screen
    added = screen.marked("LCursorEditAdded", "\1", "")
    added_words = screen.marked("LCursorEditAddedWord", "«", "»")
    removed = screen.marked("LCursorEditRemoved", "\1", "")
    removed_words = screen.marked("LCursorEditRemovedWord", "«", "»")
    rows = []
    for i, row in enumerate(added):
        sign = "+" if "\1" in row else "-" if "\1" in removed[i] else " "
        text = added_words[i] if sign == "+" else removed_words[i]
        if text.strip() not in ("", "~"):
            rows.append(f"{sign}{text}".rstrip())
    return "\n".join(rows) + "\n"


def test_the_remark_of_a_check_is_shown_next_to_what_passed(room: Room) -> None:
    path = room.open("a.py", OLD)
    room.offer(path, OLD, NEW, checks=[{"name": "size", "is_ok": True, "text": "9 lines are gone"}])
    room.hunks("next", 1)
    drawn(room)
    assert "✓ indentation, 9 lines are gone" in grid(room)
    assert "✗" not in grid(room)


def test_the_tick_names_what_was_checked(room: Room) -> None:
    path = room.open("a.py", OLD)
    names = ("test", "size", "parses", "lint", "effect")
    checks = [{"name": name, "is_ok": True, "text": ""} for name in names]
    checks[-1]["text"] = "only comments have changed"
    room.offer(path, OLD, NEW, checks=checks)
    drawn(room)
    assert "✓ parses, lint, tests, only comments have changed" in grid(room)


def test_hunks_on_the_screen(room: Room, golden: Golden) -> None:
    path = room.open("a.py", OLD)
    checks = [
        {"name": "parses", "is_ok": True, "text": ""},
        {"name": "test", "is_ok": False, "text": "1 failed\nmore"},
    ]
    room.offer(path, OLD, NEW, checks=checks)
    room.hunks("next", 1)
    room.hunks("next", 1)
    drawn(room)
    golden("edit-hunks", grid(room))
    room.hunks("accept")
    drawn(room)
    golden("edit-hunk-taken", grid(room))
    room.hunks("reject_file")
    drawn(room)
    assert "+" not in {row[0] for row in grid(room).splitlines()}
    assert (
        room.nvim.lua(
            "return #vim.api.nvim_buf_get_extmarks("
            "0, vim.api.nvim_create_namespace('lcursor.edit'), 0, -1, {})"
        )
        == 0
    )


def test_a_change_that_no_test_needs_is_a_line(room: Room) -> None:
    old, new = edits.OLD, edits.NEW
    path, other = room.open("a.py", old), room.write("b.py", old)
    files = [file(path, old, new, unneeded=[1, 3]), file(other, old, new, unneeded=[0])]
    room.propose(proposed(files))
    drawn(room)
    shown = grid(room)
    assert "▸ −0 +2 lines that no test needs" in shown
    assert "TWO" in shown
    assert "4a" not in shown
    assert "TEN" not in shown
    room.nvim.command("LCursor hunk list")
    listed = room.nvim.lua("return vim.tbl_map(function(e) return e.text end, vim.fn.getqflist())")
    room.nvim.command("cclose")
    assert sum("[no test needs it]" in text for text in listed) == 3
    room.nvim.command("LCursor hunk reject unneeded")
    left = room.nvim.lua("return require('lcursor.edit.hunks').list()")
    assert [each["new"][0] for each in left if each["new"]] == ["TWO", "4a", "TEN"]
    assert len(left) == 2 * len(edits.changes(old, new)) - 3
    room.nvim.command("LCursor hunk reject unneeded")
    assert "no open hunk is one that no test needs" in room.nvim.lua("return _G.notes")[-1]


@pytest.mark.parametrize("colours", [-1, 8, 16])
def test_lines_have_signs_where_colours_are_few(room: Room, golden: Golden, colours: int) -> None:
    room.nvim.client.request("nvim_ui_set_option", "rgb", False)
    room.nvim.client.request("nvim_ui_set_option", "term_colors", colours)
    long = "    # " + "long " * 20 + "comment"
    path = room.open("a.py", OLD)
    room.offer(path, OLD, [*NEW, long])
    drawn(room)
    rows = "\n".join(row.rstrip() for row in room.nvim.screen.rows()) + "\n"
    if colours < 16:
        golden("edit-few-colours", rows)
    else:
        assert not re.search("^[+-] ", rows, re.M)


def test_lines_above_the_first(room: Room, golden: Golden) -> None:
    path = room.open("a.py", OLD)
    room.offer(path, OLD, ["#!/usr/bin/env python", '"""A file."""', "", *OLD])
    drawn(room)
    golden("edit-top", grid(room))


def test_long_lines_and_tabs(room: Room, golden: Golden) -> None:
    old = ["\tif (x)", "\t\ty();", "end"]
    long = ", ".join(f"argument{i}" for i in range(12))
    new = ["\tif (x)", f"\t\tlong({long});", "你好" * 30]
    path = room.open("a.c", old)
    room.offer(path, old, [*new, "end"])
    drawn(room)
    golden("edit-wrapped", grid(room))
    seen = "".join(room.nvim.screen.text_of("LCursorEditAdded").split())
    assert all(f"argument{i}" in seen.replace("\n", "") for i in range(12))
    assert seen.count("你好") == 30


def test_a_conflict_on_the_screen(room: Room, golden: Golden) -> None:
    path = room.open("a.py", OLD)
    room.offer(path, OLD, NEW)
    room.keys("5GA  # mine<Esc>")
    drawn(room)
    golden("edit-conflict", grid(room))
    room.keys("u")
    drawn(room)
    assert "conflict" not in grid(room)
    assert "+    total = x + y« + z»\n" in grid(room)


@pytest.mark.parametrize(
    ("name", "old", "new", "group"),
    [
        ("a.lua", ["x = 1"], ["x = 1", "local function f() end"], "@keyword.function.lua"),
        ("a.py", ["x = 1"], ["x = 1", "import os"], "pythonInclude"),
        ("a.txt", ["x"], ["x", "y"], "LCursorEditAdded"),
    ],
)
def test_new_lines_have_the_colours_of_code(
    room: Room, name: str, old: list[str], new: list[str], group: str
) -> None:
    if group != "LCursorEditAdded":
        room.nvim.lua("vim.api.nvim_set_hl(0, ..., { fg = 0x123456 })", group)
    path = room.open(name, old)
    room.offer(path, old, new)
    drawn(room)
    seen = room.nvim.screen.text_of(group)
    assert seen.strip() == {"a.lua": "functionend", "a.py": "import", "a.txt": "y"}[name]


BIG = {
    "one block": (big(1000, 0), [*big(500, 0), *NOTES, *big(500, 0)]),
    "each line": (big(500, 0), [line.replace("a", "b") for line in big(500, 0)]),
    "500 hunks": (big(2500, 0), big(2500, 7)),
    "all new": ([""], big(500, 0)),
    "a long file": (big(20000, 0), [*big(20000, 0)[:19500], *NOTES, *big(20000, 0)[19500:]]),
}


def pairs_of(old: Sequence[str], new: Sequence[str]) -> list[dict[str, Any]]:
    """Return a change of one line for each row that differs."""
    return [
        {"first_row": i, "last_row": i + 1, "old": [a], "new": [b]}
        for i, (a, b) in enumerate(zip(old, new, strict=False))
        if a != b
    ]


@pytest.mark.parametrize("suffix", ["lua", "py", "txt"])
@pytest.mark.parametrize("name", BIG)
def test_a_change_of_500_lines_is_drawn(room: Room, name: str, suffix: str) -> None:
    """`python -m lcursor bench edit-screen` measures how long that takes."""
    old, new = BIG[name]
    path = room.open(f"a.{suffix}", old)
    more = {"changes": pairs_of(old, new)} if name == "500 hunks" else {}
    message = proposed([file(path, old, new, **more)])
    room.cursor(max(message["files"][0]["changes"][0]["first_row"] - 3, 0))
    room.nvim.command("normal! zt")
    room.nvim.command("redraw")
    assert not room.nvim.screen.has("LCursorEditAdded")
    room.propose(message)
    assert room.nvim.screen.wait(lambda screen: screen.has("LCursorEditAdded"), 20)
    room.nvim.wait_lua(DRAWN)
    added = [line.strip() for change in message["files"][0]["changes"] for line in change["new"]]
    assert sorted(room.nvim.lua(SHOWN)) == sorted(added)


def test_drawing_is_done_in_slices(room: Room) -> None:
    old, new = BIG["500 hunks"]
    path = room.open("a.txt", old)
    room.nvim.lua(SLOW_CLOCK)
    room.propose(proposed([file(path, old, new, changes=pairs_of(old, new))]))
    room.nvim.wait_lua("return #require('lcursor.edit.proposals').hunks(0) == 500")
    room.nvim.wait_lua(DRAWN)
    assert room.nvim.lua("return _G.slices") > 40  # one would do without a limit to their length


@pytest.mark.parametrize("last", ["line 59", "line 59 " + "x" * 60])
def test_going_to_a_change_at_the_end_shows_its_lines(room: Room, last: str) -> None:
    """They stand below the last line, which is where the window ends, as may be a line of keys."""
    old = [*(f"line {number}" for number in range(59)), last]
    new = [*old, *(f"new {number}" for number in range(8))]
    path = room.open("a.txt", old)
    room.cursor(0)
    room.offer(path, old, new)
    room.hunks("next", 1)
    drawn(room)
    shown = "\n".join(room.nvim.screen.rows())
    assert room.row() == 59
    assert "line 59" in shown
    assert "new 7" in shown


def test_going_to_a_change_longer_than_the_window_leaves_the_cursor(room: Room) -> None:
    old = [f"line {number}" for number in range(60)]
    new = [*old[:30], *(f"new {number}" for number in range(80)), *old[30:]]
    path = room.open("a.txt", old)
    room.cursor(0)
    room.offer(path, old, new)
    room.hunks("next", 1)
    drawn(room)
    shown = "\n".join(room.nvim.screen.rows())
    assert room.row() == 29
    assert "line 29" in shown
    assert "new 15" in shown


def test_new_lines_stand_in_their_order(neovim: Path, tmp_path: Path) -> None:
    """Those below one row came from several extmarks, among which Neovim keeps no order."""
    old = ["def total(amounts):", "    return 0"]
    added = [f"    step {number}" for number in range(130)]
    new = ["def total(amounts: list) -> int:", *added, "    return 0"]
    with Room(neovim, tmp_path, COLOURS, columns=90, lines=160) as room:
        path = room.open("a.py", old)
        room.offer(path, old, new)
        drawn(room)
        assert [row.rstrip() for row in room.nvim.screen.rows()][1:133] == new


def test_a_change_higher_than_the_window_says_how_to_read_it(room: Room) -> None:
    """Neovim shows no more lines between two rows than the window has."""
    path = room.open("a.txt", ["a", "b"])
    room.offer(path, ["a", "b"], ["a", *(f"new {number}" for number in range(30)), "b"])
    drawn(room)
    assert "ghd read all" in "\n".join(room.nvim.screen.rows())
    room.nvim.command("set lines=60")
    room.keys("j")
    room.keys("k")
    drawn(room)
    assert "read all" not in "\n".join(room.nvim.screen.rows())


HINTS = "ghh accept  gHH reject  ]h next  ghd compare"


@pytest.mark.parametrize("length", [4, 40, 79, 100])
def test_the_keys_are_never_cut_off_at_80_columns(room: Room, length: int) -> None:
    room.nvim.command("set columns=80")
    old = ["first", "x" * length, "last"]
    path = room.open("a.txt", old)
    room.offer(path, old, ["first", "y" * length, "last"])
    room.hunks("next", 1)
    drawn(room)
    rows = [row.rstrip() for row in room.nvim.screen.rows()]
    assert [row.endswith(HINTS) for row in rows].count(True) == 1, rows
    room.nvim.command("set columns=200")
    beside = f"^{'x' * length} .*{HINTS}$"  # there is room at the end of the line

    def is_beside(screen: Screen) -> bool:
        return any(re.match(beside, row.rstrip()) for row in screen.rows())

    assert room.nvim.screen.wait(is_beside, 20), room.nvim.screen.rows()


def test_a_failed_check_is_shown_once_per_file(room: Room) -> None:
    path = room.open("a.py", OLD)
    checks = [{"name": "test", "is_ok": False, "text": "1 failed"}]
    room.offer(path, OLD, NEW, checks=checks)
    drawn(room)
    assert grid(room).count("✗ test: 1 failed") == 1
    room.hunks("accept")  # that of the first hunk: the next one shows it
    drawn(room)
    assert grid(room).count("✗ test: 1 failed") == 1
    room.hunks("accept_file")
    drawn(room)
    assert "✗" not in grid(room)


def test_new_lines_that_are_to_be_changed_are_not_folded(room: Room) -> None:
    room.nvim.command("set foldmethod=indent foldlevel=0")
    added = ["def beta():", *(f"    step {number}" for number in range(6))]
    path = room.open("a.txt", ["a", "b"])
    room.offer(path, ["a", "b"], ["a", *added, "b"])
    room.cursor(0)
    room.hunks("edit")
    drawn(room)
    rows = [row.rstrip() for row in room.nvim.screen.rows()]
    assert [row for row in rows[-9:] if row in added] == added


@pytest.mark.parametrize("do", ["accept", "undo", "redo", "reject"])
def test_500_hunks_at_once(room: Room, do: str) -> None:
    """In a file of 20,000 lines."""
    old, new = big(20000, 0), big(20000, 7)
    changes = pairs_of(old, new)[::8]
    assert len(changes) == 500
    path = room.open("a.txt", old)
    room.propose(proposed([file(path, old, new, changes=changes)]))
    room.nvim.wait_lua("return #require('lcursor.edit.proposals').hunks(0) == 500")
    drawn(room)
    acts = {
        "accept": "require('lcursor.edit.hunks').accept_file()",
        "undo": "vim.cmd('silent undo')",
        "redo": "vim.cmd('silent redo')",
        "reject": "require('lcursor.edit.hunks').reject_file()",
    }
    for act in {"undo": ["accept", "undo"], "redo": ["accept", "undo", "redo"]}.get(do, [do]):
        room.nvim.lua(acts[act])
        room.settle()
        drawn(room)
    now = room.nvim.lines()
    taken = [row for row, (a, b) in enumerate(zip(old, now, strict=True)) if a != b]
    is_made = do in ("accept", "redo")
    assert taken == ([change["first_row"] for change in changes] if is_made else [])
    open_hunks = room.nvim.lua("return #require('lcursor.edit.proposals').hunks(0)")
    assert open_hunks == (500 if do == "undo" else 0)


def test_a_change_is_seen_while_a_parser_reads_the_file(room: Room) -> None:
    """What is scheduled without end must not keep Neovim from drawing."""
    path = room.open("a.txt", OLD)
    room.nvim.lua(
        """
        local function step()
          if not _G.is_enough then
            local slice_ns = vim.uv.hrtime() + 3e6
            while vim.uv.hrtime() < slice_ns do end
            vim.schedule(step)
          end
        end
        vim.schedule(step)
        """
    )
    room.offer(path, OLD, NEW)
    assert room.nvim.screen.wait(lambda screen: screen.has("LCursorEditAdded"), 20)
    room.nvim.lua("_G.is_enough = true")


def test_a_parser_is_there_before_the_first_change(room: Room) -> None:
    room.open("a.c", ["int one(void) { return 1; }"])
    room.nvim.command("setfiletype c")
    if room.nvim.lua("return vim._ts_has_language('c')"):
        pytest.fail("something else has loaded it: take another language")
    room.nvim.lua("require('lcursor.edit.render').prepare(vim.api.nvim_get_current_buf())")
    room.nvim.wait_lua("return vim._ts_has_language('c')")
    path = room.open("b.c", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.wait_lua(DRAWN)


def test_a_parser_that_cannot_be_loaded_costs_the_colours_only(room: Room) -> None:
    parser = room.home / "runtime" / "parser" / "odd.so"
    parser.parent.mkdir(parents=True, exist_ok=True)
    parser.write_bytes(b"of another Neovim")
    room.nvim.command(f"set runtimepath^={parser.parent.parent}")
    path = room.open("a.odd", OLD)
    room.nvim.command("setlocal filetype=odd")
    room.nvim.lua("require('lcursor.edit.render').prepare(vim.api.nvim_get_current_buf())")
    room.offer(path, OLD, NEW)
    assert room.nvim.screen.wait(lambda screen: screen.has("LCursorEditAdded"), 10)
    room.nvim.wait_lua(DRAWN)
    room.nvim.command("setlocal filetype=lua")  # what waits behind it goes on
    room.nvim.command("edit!")
    room.offer(path, OLD, NEW, "t2")
    room.nvim.wait_lua(DRAWN)
    assert room.notes() == []


def test_what_is_far_away_has_its_colours_when_it_comes_near(room: Room) -> None:
    old = big(1000, 0)
    new = [
        line.replace("value", "other") if at in (3, 903) else line for at, line in enumerate(old)
    ]
    path = room.open("a.lua", old)
    room.offer(path, old, new)
    room.nvim.wait_lua(DRAWN)
    coloured = """
        local space = vim.api.nvim_create_namespace("lcursor.edit")
        local marks = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
        return vim.iter(marks):filter(function(mark)
          return mark[4].virt_lines ~= nil
        end):map(function(mark)
          return vim.iter(mark[4].virt_lines[1]):any(function(chunk)
            return type(chunk[2]) == "table"
          end)
        end):totable()
    """
    assert room.nvim.lua(coloured) == [True, False]
    room.nvim.command("normal! 900Gzt")
    room.nvim.wait_lua(f"return (function() {coloured} end)()[2]")
    room.nvim.wait_lua(DRAWN)
