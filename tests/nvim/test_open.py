"""Opening files from results, in windows that may or may not show them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.agents import Agent
from tests.nvim.pilot import Pilot
from tests.nvim.test_index_search import answer, hit
from tests.waiting import wait_for

Start = Callable[..., Pilot]
LINES = "".join(f"line {i}\n" for i in range(1, 21))
FILES: dict[str, str | bytes] = {"a.py": "one\n", "b [1] $x.py": LINES, "c.py": "three\n"}
OPEN = """
local name, opts = ...
local path = vim.fn.getcwd() .. "/" .. name
local win, message = require("lcursor.ui.open").file(path, opts)
assert((win == nil) ~= (message == nil))
assert(not win or win == vim.api.nvim_get_current_win())
return message or vim.fn.expand("%:t") .. ":" .. vim.fn.line(".") .. ":" .. vim.fn.col(".")
"""
B = "b [1] $x.py"
NAMES = """
return vim.iter(vim.api.nvim_tabpage_list_wins(0)):map(function(win)
  return vim.fn.fnamemodify(vim.fn.bufname(vim.api.nvim_win_get_buf(win)), ":t")
end):totable()
"""


def opened(nvim: Editor, name: str = B, **opts: Any) -> object:
    """Open a file of the project, and return where the cursor is, or the message."""
    return nvim.lua(OPEN, name, opts or {"row": 6})


@pytest.mark.parametrize(
    ("before", "windows"),
    [
        ("", [B]),
        ("setlocal winfixbuf", [B, "a.py"]),
        ("setlocal winfixbuf | vsplit c.py | wincmd p", [B, "a.py"]),
        ("set nohidden | call setline(1, 'changed')", [B, "a.py"]),
        ("set nohidden | call setline(1, 'changed') | split", [B, "a.py"]),
        ("setlocal bufhidden=wipe | call setline(1, 'changed')", [B, "a.py"]),
        ("set nohidden | setlocal bufhidden=hide | call setline(1, 'changed')", [B]),
        ("diffthis | diffsplit c.py", [B, "c.py", "a.py"]),
        ("diffthis | diffsplit c.py | wincmd p | diffoff | wincmd p", ["c.py", B]),
        ("new | setlocal buftype=nofile", [B, ""]),
        ("help", ["help.txt", B]),
        ("enew | setlocal buftype=nofile bufhidden=wipe", [B]),
        ("enew | setlocal buftype=nofile | vsplit | copen", [B, "", "", ""]),
        ("enew | setlocal buftype=nofile | file lcursor://x", [B, "x"]),
        ("copen", [B, ""]),
        (r"split c.py | exe 'split' fnameescape('b [1] $x.py') | wincmd b", [B, "a.py", "c.py"]),
    ],
)
def test_a_window_that_may_show_the_file_is_used(
    editor: Start, before: str, windows: list[str]
) -> None:
    nvim = editor(FILES, lines=40)
    nvim.command(before)
    assert opened(nvim) == f"{B}:7:1"
    assert sorted(nvim.lua(NAMES)) == sorted(windows)
    assert nvim.lua("return { vim.wo.diff, vim.wo.winfixbuf }") == [False, False]
    assert nvim.lua("return vim.bo.buflisted") is True


def test_the_window_and_the_column_can_be_chosen(editor: Start) -> None:
    nvim = editor(FILES)
    win = nvim.lua("return vim.api.nvim_get_current_win()")
    nvim.command("split c.py")
    assert opened(nvim, win=win, row=99, col=3) == f"{B}:20:4"
    assert nvim.lua("return vim.api.nvim_get_current_win()") == win
    nvim.press("<C-o>")
    assert nvim.lua("return vim.fn.expand('%:t')") == "a.py"


def test_a_float_shows_no_file(editor: Start) -> None:
    nvim = editor(FILES)
    nvim.lua(
        """vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), true,
            { relative = "editor", row = 1, col = 1, width = 9, height = 3 })"""
    )
    assert opened(nvim) == f"{B}:7:1"
    assert nvim.lua("return vim.api.nvim_win_get_config(0).relative") == ""


@pytest.mark.parametrize("command", ["split", "vsplit", "tabedit"])
def test_a_new_window_is_made_on_request_even_where_the_buffer_is_fixed(
    editor: Start, command: str
) -> None:
    nvim = editor(FILES)
    nvim.command("setlocal winfixbuf")
    assert opened(nvim, row=6, command=command) == f"{B}:7:1"
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2
    assert opened(nvim, row=7, command=command) == f"{B}:8:1"
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 3


def test_a_deleted_file_is_not_opened_but_a_new_one_is(editor: Start) -> None:
    nvim = editor(FILES)
    bufs = nvim.lua("return #vim.api.nvim_list_bufs()")
    assert opened(nvim, "gone.py") == "gone.py no longer exists"
    assert nvim.lua("return #vim.api.nvim_list_bufs()") == bufs
    assert opened(nvim, "gone.py", create=True, row=4) == "gone.py:1:1"


def test_an_error_of_neovim_is_shown_without_its_prefixes(editor: Start) -> None:
    nvim = editor(FILES)
    nvim.lua("vim.o.cedit = '<C-f>'")
    nvim.press(":<C-f>")
    nvim.wait_lua("return vim.fn.getcmdwintype() == ':'")
    message = nvim.lua(OPEN, B, {"row": 1})
    assert message.startswith(f"cannot open {B}: E11: Invalid in command-line window")


def test_an_error_of_another_plugin_does_not_hide_the_file(editor: Start) -> None:
    nvim = editor(FILES)
    nvim.command("autocmd BufReadPost * throw 'broken'")
    assert opened(nvim) == f"{B}:7:1"


@pytest.mark.parametrize("before", ["setlocal winfixbuf", "set nohidden | norm x"])
@pytest.mark.parametrize("way", ["search", "chat", "agent"])
def test_results_open_whatever_the_window_is(
    editor: Start, host: FakeHost, before: str, way: str
) -> None:
    nvim = editor({"a.py": "one\n", "b.py": LINES}, columns=120, lines=40, init=reach.NOTES)
    nvim.command(before)
    if way == "search":
        nvim.command("LCursor search")
        nvim.press("line")
        found = hit(nvim, "b.py", first_row=4, end_row=6, text="line 5\nline 6\n")
        answer(nvim, host, "line", [found])
        nvim.press("<CR>")
    elif way == "chat":
        said = reach.message(2, "assistant", "see b.py:5")
        reach.chat(nvim, host, [reach.message(1, "user", "where?"), said])
        nvim.command("wincmd b")
        nvim.lua("vim.fn.search('b.py')")
        nvim.press("gf")
    else:
        run = Agent(nvim, host)
        run.start("LCursor agent look at b.py:5")
        nvim.lua("vim.fn.search('b.py', 'w')")
        nvim.press("gf")
    nvim.wait_lua("return vim.fn.expand('%:t') == 'b.py' and vim.fn.line('.') == 5")
    assert "a.py" in nvim.lua(NAMES)
    assert reach.told(nvim) == []


@pytest.mark.process
@pytest.mark.parametrize(("key", "shown"), [("e", True), ("o", True), ("q", False), ("a", False)])
def test_a_swap_file_of_a_neovim_that_was_killed(
    editor: Start, neovim: Path, tmp_path: Path, key: str, shown: bool
) -> None:
    swap = "set swapfile updatecount=1 directory=. | setlocal swapfile"
    nvim = editor(FILES, columns=120, lines=40)
    project = Path(nvim.lua("return vim.fn.getcwd()"))
    home = tmp_path / "other"
    home.mkdir()
    with Editor(neovim, home, cwd=project) as other:
        other.command(swap)
        other.command(f"edit {B}".replace("$", r"\$"))
        other.command("call setline(1, 'changed') | preserve")
        pid = other.lua("return vim.uv.os_getpid()")
        assert list(project.glob(".b*.sw?"))
        os.kill(pid, signal.SIGKILL)
    nvim.command(f"{swap} winfixbuf")
    nvim.lua(
        """local path = vim.fn.getcwd() .. "/" .. ...
        vim.schedule(function()
            local win, message = require("lcursor.ui.open").file(path, { row = 6 })
            vim.g.outcome = message or vim.fn.expand("%:t") .. ":" .. vim.fn.line(".")
        end)""",
        B,
    )
    wait_for(lambda: "Swap file" in "\n".join(nvim.screen.rows()) or None)
    nvim.keys(key)
    outcome = nvim.wait_lua("return vim.g.outcome")
    assert sorted(nvim.lua(NAMES)) == (["a.py", B] if shown else ["a.py"])
    if shown:
        assert outcome == f"{B}:7"
    else:
        why = "E325: a swap file exists" if key == "q" else "Keyboard interrupt"
        assert outcome == f"cannot open {B}: {why}"
