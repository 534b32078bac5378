"""`:LCursor tutor`: the practice file, and what marks its lessons as done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.home import Home, proposed
from tests.nvim.next_edits import CONFIG, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]

DONE = """
local namespace = vim.api.nvim_create_namespace("lcursor.tutor")
local marks = vim.api.nvim_buf_get_extmarks(..., namespace, 0, -1, { details = true })
local done = {}
for number, mark in ipairs(marks) do
  if mark[4].virt_text then table.insert(done, number) end
end
return done
"""


def done(nvim: Any, buf: int = 0) -> list[int]:
    """Return the lessons that are marked."""
    found: Any = nvim.lua(DONE, buf)
    return found or []


def go_to(nvim: Any, text: str) -> None:
    nvim.lua("vim.fn.search(..., 'w')", text)


@pytest.mark.parametrize("columns", [80, 60])
def test_screen(editor: Start, golden: Golden, columns: int) -> None:
    nvim = editor(columns=columns, lines=100)
    nvim.command("set laststatus=0 showtabline=0 noruler")
    nvim.command("LCursor tutor")
    nvim.settle()
    rows = [row for row in nvim.screen.rows() if row != "~"]
    golden(f"tutor-{columns}", "\n".join(rows).rstrip() + "\n")


def test_the_file_is_python_that_fits(editor: Start) -> None:
    nvim = editor()
    nvim.command("LCursor tutor")
    path = Path(nvim.lua("return vim.api.nvim_buf_get_name(0)"))
    lines = path.read_text().splitlines()
    assert [line for line in lines if len(line) > 58] == []
    code = path.read_text().replace('first + " " + l', 'first + " " + last')
    path.with_name("whole.py").write_text(code)
    for each in path.parent.glob("*.py"):
        if each != path:
            subprocess.run([sys.executable, "-m", "py_compile", str(each)], check=True)


def test_the_files_of_the_user_are_not_touched(editor: Start) -> None:
    nvim = editor({"a.py": "x = 1\n"})
    nvim.press("oy = 2<Esc>")
    before = sorted(Path(nvim.lua("return vim.fn.getcwd()")).iterdir())
    nvim.command("LCursor tutor")
    path = Path(nvim.lua("return vim.api.nvim_buf_get_name(0)"))
    assert path.is_relative_to(nvim.lua("return vim.fn.stdpath('run')"))
    assert path.parent.stat().st_mode & 0o077 == 0
    nvim.press("dd")
    nvim.command("tabclose")
    assert nvim.lines() == ["x = 1", "y = 2"]
    assert sorted(Path(nvim.lua("return vim.fn.getcwd()")).iterdir()) == before
    nvim.command("edit!")
    nvim.command("LCursor tutor")
    assert nvim.lines()[0].startswith("# lcursor tutor"), "it starts from the beginning"
    nvim.press("dd")
    assert not nvim.lua("return vim.bo.modified"), "Neovim can be quit"


def test_two_editors_use_different_files(editor: Start, host: FakeHost) -> None:
    first, second = editor(), editor()
    run = first.lua("return vim.fn.stdpath('run')")
    paths = list[Path]()
    for nvim in (first, second, first):
        nvim.lua("vim.env.XDG_RUNTIME_DIR = ...", run)
        nvim.command("LCursor tutor")
        paths.append(Path(nvim.lua("return vim.api.nvim_buf_get_name(0)")))
    assert paths[0] == paths[2] != paths[1]
    assert paths[0].parent.name == "lcursor-tutor"
    second.close()
    first.command("tabclose")
    third = editor()
    third.lua("vim.env.XDG_RUNTIME_DIR = ...", run)
    third.command("LCursor tutor")
    assert third.lua("return vim.api.nvim_buf_get_name(0)") == str(paths[1]), "it is free again"


def test_the_keys_are_those_of_the_user(editor: Start) -> None:
    keymap = {"accept": "<C-y>", "dismiss": False}
    nvim = editor(config={"completion": {"keymap": keymap}})
    nvim.command("LCursor tutor")
    assert "#   <C-y>       accept the rest" in nvim.lines()
    assert "#   -           dismiss the suggestion" in nvim.lines()


def test_lesson_1_needs_an_accepted_and_a_dismissed_suggestion(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor()
    nvim.command("LCursor tutor")
    go_to(nvim, "^ *c$")
    nvim.offer("ount += 1", "A")
    nvim.press("<C-Right>")
    assert done(nvim) == []
    host.skip()
    nvim.press("<Esc>")
    go_to(nvim, 'first + " " + l$')
    nvim.offer("ast", "A")
    nvim.press("<C-]>")
    nvim.wait_lua(DONE.replace("return done", "return #done == 1"), 0)


def test_lesson_2_needs_applied_and_dismissed_next_edits(editor: Start, host: FakeHost) -> None:
    nvim = editor(config=CONFIG)
    desk = Typist(nvim, host)
    nvim.command("LCursor tutor")
    go_to(nvim, "^def with_tax")
    nvim.press("/amount<CR>cwnet<Esc>")
    desk.answer()
    assert desk.texts() == ["net"]
    nvim.press("<Tab>")
    desk.answer()
    desk.review()
    nvim.press("ghA")
    desk.answer()
    assert "    return round(net + tax, 2)" in nvim.lines()
    go_to(nvim, "^def with_tax")
    nvim.press("/rate<CR>cwshare<Esc>")
    desk.answer()
    assert desk.texts() == ["share"]
    assert done(nvim) == []
    nvim.lua("vim.wait(300)")  # visible for less, it was not seen
    nvim.press("<Esc>")
    assert done(nvim) == [2]


def test_lessons_of_chat_and_search(editor: Start) -> None:
    nvim = editor()
    nvim.command("LCursor tutor")
    buf = nvim.lua("return vim.api.nvim_get_current_buf()")
    nvim.lua("require('lcursor.host.status').emit('LCursorChatDone', { buf = 1, reason = 'end' })")
    nvim.lua("vim.fn.setqflist({}, ' ', { title = ':LCursor search who may pay less' })")
    nvim.command("copen")
    nvim.settle()
    assert done(nvim, buf) == [5, 6]
    nvim.command("tabclose")
    nvim.command("LCursor tutor")
    assert done(nvim) == [], "a second start begins anew"


@pytest.mark.process
@pytest.mark.timeout(120)
def test_lessons_of_edits(home: Home) -> None:
    """Accept one hunk of two, reject the other, and undo the edit: with the real host."""
    editor = home.open()
    editor.command("LCursor tutor")
    lines = editor.lines()
    first = lines.index("def cheapest(products):")
    last = next(i for i, line in enumerate(lines) if "weight, 3" in line)
    old = "\n".join(lines[first : last + 1])
    new = old.replace("(products):", "(products: list[Product]):")
    home.replies = [f"```python\n{new}\n```\n"]
    editor.command(f"{first + 1},{last + 1}LCEdit add type hints to both functions")
    proposed(editor, 2)
    go_to(editor, "^def cheapest")
    editor.lua("require('lcursor.edit.hunks').accept()")
    assert done(editor) == []
    go_to(editor, "^def total_weight")
    editor.lua("require('lcursor.edit.hunks').reject()")
    editor.wait_lua(DONE.replace("return done", "return vim.deep_equal(done, { 3 })"), 0)
    editor.lua("require('lcursor.edit.edits').revert('undo')")
    editor.wait_lua(DONE.replace("return done", "return vim.deep_equal(done, { 3, 4 })"), 0)
    assert editor.lines()[first : last + 1] == old.splitlines()
