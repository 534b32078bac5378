"""A file beside what it would be with its hunks: follows them, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

LINES = ["a = 1", "b = 1", "c = 1", "d = 1"]
CHANGES = [change(0, ["a = 1"], ["A = 1", "A = 2"]), change(3, ["d = 1"], [])]
PROPOSED = ["A = 1", "A = 2", "b = 1", "c = 1"]
RIGHT = """
local win = vim.fn.win_getid(vim.fn.winnr("l"))
return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
"""
STATE = """
local names = { "diff", "wrap", "foldmethod", "foldenable", "foldcolumn", "scrollbind",
  "cursorbind", "statusline", "winbar" }
local found = { tabs = #vim.api.nvim_list_tabpages(), windows = #vim.api.nvim_list_wins() }
for _, name in ipairs(names) do
  found[name] = vim.wo[name]
end
found.cursor = vim.api.nvim_win_get_cursor(0)
found.name = vim.fn.expand("%:t")
found.buffers = #vim.api.nvim_list_bufs()
return found
"""
DRAWN = """
local space = vim.api.nvim_create_namespace("lcursor.edit")
return #vim.api.nvim_buf_get_extmarks(vim.fn.bufnr("a.py"), space, 0, -1, {}) > 0
"""


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Desk:
    """A file with two hunks."""
    nvim = editor({"a.py": "\n".join(LINES) + "\n"}, init=reach.NOTES, columns=110)
    desk = Desk(nvim, host)
    desk.edited(desk.ask(), CHANGES)
    nvim.press("2G")
    return desk


def right(desk: Desk) -> list[str]:
    """Return the lines of the window on the right."""
    lines: list[str] = desk.nvim.lua(RIGHT)
    return lines


def test_it_shows_the_proposed_text(desk: Desk) -> None:
    desk.nvim.press("ghd")
    assert (desk.lines(), right(desk)) == (LINES, PROPOSED)
    windows = "return vim.tbl_map(function(w) return vim.wo[w].diff end, "
    windows += "vim.api.nvim_tabpage_list_wins(0))"
    assert desk.nvim.lua(windows) == [True, True]
    assert not desk.nvim.lua(DRAWN)  # virtual lines would move one side
    assert "ghd closes the view" in reach.told(desk.nvim)[-1]
    desk.nvim.command("wincmd l")
    assert not desk.nvim.lua("return vim.bo.modifiable")
    assert desk.nvim.lua("return vim.bo.buftype") == "nofile"


def test_it_follows_hunks_and_what_is_typed(desk: Desk) -> None:
    desk.nvim.press("ghd1Gghh")
    assert (desk.lines(), right(desk)) == ([*PROPOSED, "d = 1"], PROPOSED)
    desk.nvim.press("GgHH")
    assert right(desk) == [*PROPOSED, "d = 1"]
    desk.nvim.press("zR3Gonew<Esc>")  # equal lines are folded
    assert right(desk) == desk.lines()
    assert desk.lines() == [*PROPOSED[:3], "new", *PROPOSED[3:], "d = 1"]
    desk.nvim.press("uu")
    assert (desk.lines(), right(desk)) == (LINES, [*PROPOSED, "d = 1"])


@pytest.mark.parametrize("keys", ["1Gdo2Gdo", "<C-w>l1Gdp2Gdp<C-w>h", ":1,2diffget<CR>"])
def test_obtaining_a_change_as_in_any_diff_accepts_its_hunk(desk: Desk, keys: str) -> None:
    desk.nvim.press("ghd")
    for key in (keys[:4], keys[4:]) if keys.startswith("1") else (keys,):
        desk.nvim.press(key)
        assert right(desk) == PROPOSED
    assert desk.lines() == [*PROPOSED, "d = 1"]
    desk.nvim.press("Gdo")
    assert (desk.lines(), right(desk)) == (PROPOSED, PROPOSED)
    assert reach.told(desk.nvim)[-1].endswith("hunks accepted. Undo: :LCursor edit undo")
    desk.nvim.press("u")
    assert (desk.lines(), right(desk)) == ([*PROPOSED, "d = 1"], PROPOSED)
    assert desk.nvim.lua("return require('lcursor.edit.proposals').count()") == 1


@pytest.mark.parametrize(
    "keys",
    ["ghd", ":LCursor hunk diff<CR>", "<C-w>lq", ":quit<CR>", "<C-w>l:quit<CR>", ":tabclose<CR>"],
)
def test_closing_it_leaves_everything_as_it_was(desk: Desk, keys: str) -> None:
    desk.nvim.command("tabnew | tabprevious")
    desk.nvim.wait_lua("return require('lcursor.edit.render').is_done()")
    before = desk.nvim.lua(STATE)
    desk.nvim.press("ghd")
    desk.nvim.press(keys)
    desk.nvim.wait_lua("return #vim.api.nvim_list_tabpages() == 2")
    desk.nvim.settle()
    assert desk.nvim.lua(STATE) == before
    assert desk.lines() == LINES
    desk.nvim.wait_lua(DRAWN)
    desk.nvim.command("tabedit a.py")
    assert desk.nvim.lua("return { vim.wo.diff, vim.wo.foldmethod }") == [False, "manual"]


def test_without_hunks_there_is_nothing_to_show(desk: Desk) -> None:
    desk.nvim.command("LCursor hunk reject all")
    desk.nvim.command("LCursor hunk diff")
    assert "no open hunks in this buffer" in reach.told(desk.nvim)[-1]
    assert desk.nvim.lua("return #vim.api.nvim_list_wins()") == 1
