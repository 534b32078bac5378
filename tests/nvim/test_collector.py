"""LuaJIT's collector: it rests when told, ends its cycle by itself, and always works again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.nvim.edits import Room

IS_RUNNING = "return collectgarbage('isrunning')"
REST = "require('lcursor.collector').rest()"
TIDY = "require('lcursor.collector').tidy()"
LEAVE = """
_G.left = setmetatable({}, { __mode = "v" })
for i = 1, 100 do
  left[i] = { i }
end
"""
IS_SWEPT = "return next(_G.left) == nil"


@pytest.fixture
def editor(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    with Editor(neovim, tmp_path) as one:
        one.wait_lua("return vim.v.vim_did_enter == 1")
        yield one


def test_it_rests_when_told_and_works_again_by_itself(editor: Editor) -> None:
    assert editor.lua(f"{REST} {IS_RUNNING}") is False

    editor.wait_lua(IS_RUNNING)


def test_the_cycle_is_ended_in_turns(editor: Editor) -> None:
    editor.lua("collectgarbage() " + LEAVE)

    for _ in range(2):  # what is left during a cycle goes with the next one
        editor.lua(TIDY)
        editor.wait_lua(IS_RUNNING)

    editor.wait_lua(IS_SWEPT)


@pytest.mark.parametrize("megabytes", [0, 8])
def test_no_turn_is_long(editor: Editor, megabytes: int) -> None:
    editor.lua("_G.kept = {} for i = 1, 4e5 do kept[i % 1000] = { i, kept[i % 1000] } end")
    editor.lua(
        """
local check, prepare, woke = vim.uv.new_check(), vim.uv.new_prepare(), nil
_G.busy_ms = 0
check:start(function() woke = os.clock() end)
prepare:start(function()
  if woke then
    _G.busy_ms = math.max(_G.busy_ms, (os.clock() - woke) * 1e3)
  end
end)
"""
    )
    # A long string in the middle of a cycle: what is owed for it is worked off in the next step.
    editor.lua(
        "collectgarbage() for _ = 1, 20 do collectgarbage('step', 0) end"
        f" _G.long = ('x'):rep({megabytes} * 1024 * 1024)"
    )
    editor.lua(f"_G.busy_ms = 0 {TIDY}")
    editor.wait_lua(IS_RUNNING)

    turns_ms = editor.lua("return _G.busy_ms")
    whole_ms = editor.lua(
        "local began = os.clock() collectgarbage() return (os.clock() - began) * 1e3"
    )
    assert whole_ms > 2 * turns_ms, f"{turns_ms:.1f} ms at once, {whole_ms:.1f} ms in all"


def test_too_much_garbage_ends_the_rest(editor: Editor) -> None:
    much = "_G.more = ('x'):rep(64 * 1024 * 1024)"

    assert editor.lua(f"{REST} {much} {REST} {IS_RUNNING}") is True


def test_it_works_after_a_change_was_drawn(neovim: Path, tmp_path: Path) -> None:
    old = [f"line {row}" for row in range(300)]
    new = [*old[:10], *(["-- new"] * 200), *old[10:]]
    with Room(neovim, tmp_path) as room:
        path = room.open("a.lua", old)

        room.offer(path, old, new)

        assert room.nvim.lua(IS_RUNNING) is False
        room.nvim.wait_lua("return require('lcursor.edit.draw').is_done()")
        room.nvim.wait_lua(IS_RUNNING)
