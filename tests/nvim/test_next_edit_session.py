"""Next edits over several edits: which cause comes first, undo, keys of the user, and the cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, SHORT, Typist, wait_for_git
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Open = Callable[..., Typist]
TWO = RENAME + "\n\ndef store(url, limit):\n    keep(url, limit)\n    return limit\n"
COUNT = """
local lines, count = vim.api.nvim_buf_get_lines, 0
_G.copied = function() local found = count count = 0 return found end
vim.api.nvim_buf_get_lines = function(buf, first, last, ...)
  local found = lines(buf, first, last, ...)
  count = count + #found
  return found
end
"""


@pytest.fixture
def start(editor: Start, host: FakeHost) -> Open:
    """Open files, with next edits drawn."""

    def begin(files: dict[str, str], **more: Any) -> Typist:
        more.setdefault("config", CONFIG)
        return Typist(editor(files, init=SHORT + more.pop("init", ""), **more), host)

    return begin


def test_the_newest_cause_comes_first(start: Open) -> None:
    desk = start({"a.py": TWO})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("/limit<CR>cwcount<Esc>")
    desk.answer()
    assert desk.drawn()[0][0] == 8
    assert desk.texts() == ["count"]
    desk.nvim.press("<Tab>")
    desk.answer()
    assert desk.drawn()[0][0] == 9
    desk.nvim.press("<Tab>")
    desk.answer()
    assert desk.texts() == ["deadline"]


@pytest.mark.parametrize("name", ["deadline", "limit"])
@pytest.mark.parametrize("undo", ["uu", "u<C-r>uu", ":undo 0<CR>"])
def test_after_an_undo_the_same_or_another_rename_goes_on(
    start: Open, undo: str, name: str
) -> None:
    desk = start({"a.py": RENAME})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("<Tab>")
    desk.answer()
    for key in undo.replace(":undo 0<CR>", "0").replace("<C-r>", "r"):
        desk.nvim.press({"0": ":undo 0<CR>", "r": "<C-r>"}.get(key, key))
        desk.nvim.settle()
    assert desk.nvim.lines() == RENAME.splitlines()
    desk.nvim.press(f"gg0/timeout<CR>cw{name}<Esc>")
    desk.answer()
    assert (desk.drawn()[0][0], desk.texts()) == (2, [name])
    desk.nvim.press("<Tab>")
    desk.answer()
    assert (desk.drawn()[0][0], desk.texts()) == (4, [name])


def test_an_edit_that_was_undone_alone_is_not_proposed_at_once(start: Open) -> None:
    desk = start({"a.py": RENAME})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("<Tab>")
    desk.answer()
    desk.nvim.press("u")
    desk.nvim.press("GA  # more<Esc>")
    desk.answer()
    assert desk.drawn() == []
    said = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert said == "No next edit: you dismissed it, or undid one like it."


def test_no_hint_for_a_file_of_another_language_or_project(start: Open) -> None:
    files = {"a.py": RENAME, "b.lua": "local one = 1\nprint(1)\n", "other/c.py": "one = 1\n"}
    desk = start(files)
    desk.nvim.lua(
        "for _, name in ipairs({ '.git', 'other/.git' }) do"
        " vim.fn.mkdir(name .. '/objects', 'p')"
        " vim.fn.mkdir(name .. '/refs', 'p')"
        " vim.fn.writefile({ 'ref: refs/heads/main' }, name .. '/HEAD') end"
    )
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    wait_for_git(desk.nvim)
    desk.answer()
    assert desk.texts() == ["deadline"]
    for name in ("b.lua", "other/c.py"):
        desk.nvim.command(f"edit {name}")
        assert desk.drawn() == []
        desk.nvim.press("$x")
        wait_for_git(desk.nvim)
        request = desk.answer()
        assert [one["path"].rpartition("/")[2] for one in request["files"]] == [
            name.rpartition("/")[2]
        ]
        assert desk.drawn() == []
    desk.nvim.command("buffer a.py")
    assert desk.wait_drawn() == ["deadline"]


def test_a_hint_stays_in_the_line_of_the_last_change(start: Open) -> None:
    text = "def fetch(url, timeout):\n" + "    pass\n" * 60 + "    return url, timeout\n"
    clock = (
        "local time, more = vim.uv.hrtime, 0 vim.uv.hrtime = function() return time() + more end"
    )
    late = " function _G.wait_s(s) more = more + s * 1e9 end"
    desk = start({"a.py": text}, init=clock + late + "\n")
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    hint = ["⇥ line 62 timeout→deadline"]
    assert desk.texts() == hint
    desk.nvim.lua("wait_s(60)")
    desk.nvim.press("h")
    assert desk.wait_drawn() == hint
    desk.nvim.press("j")
    desk.nvim.lua("vim.wait(60)")
    assert desk.drawn() == []
    assert "see :LCursor next" in desk.nvim.lua("return require('lcursor.next_edit').why()")
    desk.nvim.press("k")
    assert desk.wait_drawn() == hint
    desk.nvim.press("<Tab>")
    assert desk.nvim.lua("return vim.fn.line('.')") == 62


def test_esc_also_does_what_the_user_mapped_it_to(start: Open) -> None:
    desk = start({"a.py": TWO}, init="vim.keymap.set('n', '<Esc>', '<Cmd>let g:done += 1<CR>')\n")
    desk.nvim.lua("vim.g.done = 0")
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("/limit<CR>cwcount<Esc>")
    desk.answer()
    before = desk.nvim.lua("return vim.g.done")
    desk.nvim.press("<Esc>")
    assert desk.texts() == ["deadline"]  # the other cause
    desk.nvim.press("<Esc>")
    assert desk.texts() == []
    assert desk.nvim.lua("return vim.g.done") == before + 2
    desk.nvim.press("<Esc>")
    assert desk.nvim.lua("return vim.g.done") == before + 3


@pytest.mark.parametrize(
    ("text", "keys", "said"),
    [
        ("def f(a):\n    return 1\n", "facwb<Esc>", "there is no other `a` in the file"),
        ("def f(a):\n    return a\n", "facwb<Esc>uj", "the last change was an undo or a redo"),
        ("x = 1\n" * 50, ":%s/x/y/<CR>", "the last change was too large, or not yours"),
        ("f(1)\ng(2)\n", "A + 1<Esc>", "no other line fits; the same change on two or three"),
        ("f(1)\ng(2)\n", "qaA + 1<Esc>", "a macro is being recorded"),
        ("import os\nos.a()\nos = 2\n", "wcwio<Esc>", "no other `os` is surely the same name"),
    ],
)
def test_why_explains_a_next_edit_that_does_not_come(
    start: Open, text: str, keys: str, said: str
) -> None:
    desk = start({"a.py": text})
    desk.nvim.press("ia<BS><Esc>gg0")
    desk.nvim.press(keys)
    sent = desk.requests()
    if sent and sent[-1]["edits"]:
        desk.answer()
    found = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert found.startswith("No next edit: " + said)


def test_why_says_that_they_are_off(start: Open) -> None:
    desk = start({"a.py": RENAME}, config={**CONFIG, "next_edit": {"mode": "off"}})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    said = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert said == "Next edits are off (next_edit.mode)."
    desk = start({"a.py": RENAME}, config={**CONFIG, "next_edit": {"rename": False}})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    said = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert said == "No next edit: next_edit.rename is off."


SAVE_KEY = 'vim.keymap.set("i", "<C-s>", "<Cmd>silent write<CR>")\n'
SAVE_ON_LEAVE = 'vim.cmd("autocmd InsertLeave * ++nested silent! update")\n'


@pytest.mark.parametrize(
    ("init", "keys"),
    [(SAVE_KEY, "dead<C-s>line<C-s>"), (SAVE_KEY, "deadline<C-s>"), (SAVE_ON_LEAVE, "deadline")],
)
def test_an_edit_counts_if_the_file_is_written_before_it_ends(
    start: Open, init: str, keys: str
) -> None:
    desk = start({"a.py": RENAME}, init=init)
    desk.nvim.press("i<Esc>")
    desk.nvim.lua("vim.wait(120)")  # until its text has been sent
    desk.nvim.press(f"gg/timeout<CR>cw{keys}<Esc>")
    (edit,) = desk.requests()[-1]["edits"]
    assert edit["old"] == ["def fetch(url, timeout):"]
    assert edit["new"] == ["def fetch(url, deadline):"]
    assert not desk.nvim.lua("return vim.bo.modified")


def test_the_first_edit_counts_if_git_answers_later(start: Open) -> None:
    desk = start({"a.py": RENAME})
    desk.nvim.lua("vim.fn.system({ 'git', 'init' })")
    desk.nvim.keys("gg/timeout<CR>cwdeadline<Esc>")
    desk.nvim.settle()
    assert [one["new"] for one in desk.answer()["edits"]] == [["def fetch(url, deadline):"]]
    assert desk.texts() == ["deadline"]


def test_keys_in_a_long_file_do_not_copy_it(start: Open) -> None:
    desk = start({"a.py": "word = 1\n" * 5000}, init=COUNT)
    desk.nvim.press("ix<BS><Esc>ggx")
    desk.answer()
    desk.delay(again=30_000)
    desk.nvim.press("x")
    desk.nvim.lua("copied()")
    desk.nvim.press("xxx")
    desk.nvim.settle()
    assert desk.nvim.lua("return copied()") < 50


def test_the_text_of_a_file_is_retained_only_while_it_is_edited(start: Open) -> None:
    text = "".join(f"word_{number} = {number}\n" for number in range(2000))
    files = {f"f{number}.py": text.replace("word", f"w{number}") for number in range(20)}
    desk = start({"a.py": "x = 1\n", **files})
    desk.nvim.press("ix<BS><Esc>")
    size = "collectgarbage() collectgarbage() return collectgarbage('count')"
    before = desk.nvim.lua(size)
    for name in files:
        desk.nvim.command(f"edit {name}")
    desk.nvim.command("buffer a.py")
    assert desk.nvim.lua(size) - before < 600  # KiB; the texts have 700, and as tables 2,500


def test_reading_files_asks_git_nothing(start: Open) -> None:
    files = {f"f{number}.py": "x = 1\n" for number in range(5)}
    desk = start({"a.py": "x = 1\n", **files})
    desk.nvim.lua("vim.fn.system({ 'git', 'init' })")
    desk.nvim.press("dwu")  # not in Insert mode, where other features begin
    wait_for_git(desk.nvim)
    desk.nvim.lua(
        "_G.calls = 0 local system = vim.system vim.system = function(...)"
        " _G.calls = _G.calls + 1 return system(...) end"
    )
    for name in files:
        desk.nvim.command(f"edit {name}")
    desk.nvim.lua("vim.wait(50)")
    assert desk.nvim.lua("return _G.calls") == 0
    desk.nvim.press("dw")
    desk.nvim.wait_lua("return _G.calls > 0")


def test_what_is_typed_at_a_target_in_insert_mode_can_be_undone(start: Open) -> None:
    desk = start({"a.py": RENAME})
    nvim = desk.nvim
    nvim.press("gg/timeout<CR>cwdeadline")
    nvim.press("<Right><Right><Right>")
    desk.answer()
    nvim.press("  ")
    desk.wait_drawn()
    before = nvim.lines()
    nvim.press("<Tab><Del><Del><Del>XYZ<Esc>")
    assert nvim.lines()[2] == "    session.wait(XYZeout)"
    nvim.press("u")
    assert nvim.lines() == before
    nvim.press("uu")
    assert nvim.lines() == RENAME.splitlines()
