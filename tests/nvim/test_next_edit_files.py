"""Next edits in other files, open ones and others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, LONG_MS, SHORT, Typist, wait_for_git
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
FILES: dict[str, str | bytes] = {
    "a.py": "def fetch(url):\n    return url\n",
    "b.py": "from a import fetch\n\nprint(fetch('b'))\n",
    "secret.py": "from a import fetch\n# -----BEGIN RSA PRIVATE KEY-----\n",
    "ignored.py": "from a import fetch\n",
    ".gitignore": "ignored.py\n",
}


WIDE = SHORT + "delays.wide = 20\n"


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Typist:
    nvim = editor(FILES, config=CONFIG, init=WIDE, columns=80)
    nvim.lua("vim.fn.system({ 'git', 'init' })")
    for name in ("secret.py", "ignored.py", "b.py", "a.py"):
        nvim.press(f":silent edit {name}<CR>i<Esc>")
    wait_for_git(nvim)
    return Typist(nvim, host)


def rename(desk: Typist) -> None:
    """Rename the function of a.py, and answer both requests."""
    desk.nvim.press("ggwcwload<Esc>")
    assert names(desk.answer()) == ["a.py"]
    assert names(desk.answer(is_wide=True)) == ["a.py", "b.py"]


def names(request: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return the names of the files in a request."""
    return [Path(one["path"]).name for one in request["files"]]


def test_tab_opens_the_other_file_and_then_applies(desk: Typist) -> None:
    rename(desk)
    assert desk.texts() == ["⇥ b.py line 1 fetch→load (1 of 2)"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lua("return vim.fn.expand('%')") == "b.py"
    assert desk.texts() == ["load"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[0] == "from a import load"
    assert sorted(names(desk.answer())) == ["a.py", "b.py"]
    assert desk.texts() == ["load"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[2] == "print(load('b'))"
    desk.answer()
    assert desk.texts() == []
    desk.nvim.press("<C-o>")
    assert desk.nvim.lua("return vim.fn.expand('%')") == "a.py"


def test_dismissing_silences_all_files(desk: Typist) -> None:
    rename(desk)
    desk.nvim.press("<Esc>")
    assert desk.drawn() == []
    desk.nvim.command("buffer b.py")
    assert desk.drawn() == []


@pytest.mark.parametrize("end", ["bwipeout! b.py", "bunload! b.py"])
def test_a_target_that_is_gone(desk: Typist, end: str) -> None:
    rename(desk)
    desk.nvim.command(end)
    desk.nvim.press("l")
    assert desk.drawn() == []
    desk.nvim.press("<Tab>")
    assert desk.nvim.lua("return vim.fn.expand('%')") == "a.py"


def test_a_target_that_changed_on_disk_is_read_again(desk: Typist) -> None:
    rename(desk)
    path = Path(desk.nvim.lua("return vim.api.nvim_buf_get_name(vim.fn.bufnr('b.py'))"))
    path.write_text("from a import fetch as f\n")
    desk.nvim.command("sbuffer b.py | wincmd p")
    desk.nvim.command("silent checktime")
    desk.nvim.press("l")
    assert desk.drawn() == []


def test_undo_in_the_first_file_drops_those_in_others(desk: Typist) -> None:
    rename(desk)
    desk.nvim.press("u")
    assert desk.drawn() == []
    desk.nvim.command("buffer b.py")
    assert desk.drawn() == []


def test_edits_of_a_file_that_was_left_expire(desk: Typist) -> None:
    rename(desk)
    desk.nvim.lua("local now = vim.uv.now vim.uv.now = function() return now() + 5 * 60 * 1000 end")
    desk.nvim.press(":silent write<CR>:edit b.py<CR>2GAx = 1<Esc>")
    request = desk.answer()
    assert [edit["new"] for edit in request["edits"]] == [["x = 1"]]
    assert names(request) == ["b.py"]
    assert desk.texts() == []


def test_the_list_has_all_files(desk: Typist) -> None:
    rename(desk)
    desk.nvim.command("LCursor next")
    rows = desk.nvim.lua("return vim.fn.getqflist()")
    assert [row["lnum"] for row in rows] == [1, 3]


def test_insert_mode_shows_the_hint_for_another_file_after_a_pause(desk: Typist) -> None:
    rename(desk)
    desk.delay(pause=LONG_MS)
    desk.nvim.press("jA  ")
    assert desk.drawn() == []
    desk.delay(pause=40)
    desk.nvim.press(" ")
    assert desk.wait_drawn() == ["⇥ b.py line 1 fetch→load (1 of 2)"]


@pytest.fixture
def unopened(editor: Start, host: FakeHost) -> Typist:
    """A Neovim in which only a.py is open."""
    nvim = editor(FILES, config=CONFIG, init=WIDE, columns=80)
    nvim.lua("vim.fn.system({ 'git', 'init' })")
    nvim.press(":silent edit a.py<CR>i<Esc>")
    wait_for_git(nvim)
    desk = Typist(nvim, host)
    nvim.press("ggwcwload<Esc>")
    desk.answer()
    assert names(desk.answer(is_wide=True)) == ["a.py"]
    assert desk.texts() == ["⇥ b.py line 1 fetch→load (1 of 2)"]
    return desk


def test_a_file_that_is_not_open_is_not_loaded_before_tab(unopened: Typist) -> None:
    code = "return vim.tbl_map(vim.fs.basename, vim.tbl_map(vim.api.nvim_buf_get_name, %s))"
    loaded = "vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())"
    assert "b.py" not in unopened.nvim.lua(code % loaded)
    unopened.nvim.command("LCursor next")
    assert len(unopened.nvim.lua("return vim.fn.getqflist()")) == 2
    unopened.nvim.command("cclose")
    assert unopened.wait_drawn() == ["⇥ b.py line 1 fetch→load (1 of 2)"]
    unopened.nvim.press("<Tab>")
    assert unopened.nvim.lua("return vim.fn.expand('%')") == "b.py"
    assert unopened.texts() == ["load"]


@pytest.mark.parametrize("command", ["LCursor disable", "LCursor disable buffer", "setlocal ro"])
def test_a_file_that_is_not_open_is_not_offered_where_next_edits_are_off(
    unopened: Typist, command: str
) -> None:
    unopened.nvim.command(command)
    unopened.nvim.lua("require('lcursor.next_edit').refresh()")
    unopened.nvim.settle()
    assert unopened.drawn() == []
    assert "an error" not in unopened.nvim.lua("return vim.fn.execute('messages')")


def test_why_explains_a_next_edit_in_a_file_that_is_not_open(unopened: Typist) -> None:
    said = unopened.nvim.lua("return require('lcursor.next_edit').why()")
    assert said.startswith("Next edit: ")
    assert said.endswith("; 2 changes left.")


@pytest.mark.parametrize("text", [None, "from a import fetch as f\n", "# fetch\n"])
def test_a_file_that_is_not_open_and_changes_on_disk(unopened: Typist, text: str | None) -> None:
    path = Path(unopened.nvim.lua("return vim.fn.fnamemodify('b.py', ':p')"))
    path.unlink() if text is None else path.write_text(text)
    unopened.nvim.press("<Tab>")
    assert unopened.drawn() == []
    unopened.nvim.press("<Tab>")
    lines = ["def load(url):", "    return url"] if text is None else text.splitlines()
    assert unopened.nvim.lines() == lines


def test_a_name_that_is_typed_back_drops_those_in_others(unopened: Typist) -> None:
    unopened.nvim.press("gg0wcwfetch<Esc>")
    assert unopened.drawn() == []


def test_after_an_undo_no_other_files_are_sent(desk: Typist) -> None:
    desk.delay(wide=150)
    desk.nvim.press("ggwcwload<Esc>")
    desk.answer()
    desk.nvim.press("u<C-r>")
    desk.nvim.lua("vim.wait(300)")
    assert [sent["is_wide"] for sent in desk.requests()] == [False]
