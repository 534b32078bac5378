"""Next edits: the boundary of an edit, the request, what is drawn, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import (
    CONFIG,
    DRAWN,
    LONG_MS,
    RENAME,
    SHORT,
    Typist,
    predicted,
    wait_for_git,
)
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.waiting import wait_for

Start = Callable[..., Pilot]
Open = Callable[..., Typist]


@pytest.fixture
def start(editor: Start, host: FakeHost) -> Open:
    """Open a file, with next edits drawn."""

    def begin(content: str = RENAME, name: str = "a.py", **more: Any) -> Typist:
        more.setdefault("config", CONFIG)
        init = SHORT + more.pop("init", "")
        return Typist(editor({name: content}, init=init, **more), host)

    return begin


def test_a_rename_is_drawn_and_applied_with_one_key_each(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    request = desk.answer()
    (edit,) = request["edits"]
    assert edit["path"].endswith("/project/a.py")
    assert edit["row"] == 0
    assert edit["old"] == ["def fetch(url, timeout):"]
    assert edit["new"] == ["def fetch(url, deadline):"]
    assert edit["is_accepted"] is False
    assert desk.drawn()[0][0] == 2
    assert desk.texts() == ["deadline"]
    assert desk.has_key()
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[2] == "    session.wait(deadline)"
    desk.answer()
    assert desk.texts() == ["deadline"]
    desk.nvim.press("<Tab>")
    assert (
        desk.nvim.lines()
        == RENAME.replace("timeout", "deadline").replace("deadline=", "timeout=").splitlines()
    )
    desk.answer()
    assert desk.texts() == []
    assert not desk.has_key()
    desk.nvim.press("u")
    assert desk.nvim.lines()[4] == "    return session.get(url, timeout=timeout)"
    assert desk.nvim.lines()[2] == "    session.wait(deadline)"
    assert desk.texts() == []


def test_an_answer_counts_when_the_file_was_written_meanwhile(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.nvim.command("silent write")
    desk.answer()
    assert desk.texts() == ["deadline"]


FAR = "def fetch(url, timeout):\n" + "    pass\n" * 60 + "    return url, timeout\n"
LIST = "colors = [\n" + "".join(f'    paint("{name}"),\n' for name in "abcdef") + "]\n"


def test_insert_mode_shows_a_hint_after_a_pause_and_tab_goes_there_first(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline")
    assert desk.requests() == []
    desk.nvim.press("<Right><Right><Right>")
    desk.answer()
    assert desk.wait_drawn() == ["⇥ line 3 timeout→deadline (1 of 2)"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [3, 17]
    assert desk.drawn()[0][0] == 2
    assert desk.texts() == ["deadline"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[2] == "    session.wait(deadline)"
    assert desk.nvim.lua("return vim.api.nvim_get_mode().mode") == "i"
    desk.answer()
    assert desk.wait_drawn() == ["⇥ line 5 timeout→deadline (2 of 2)"]
    desk.nvim.press("<Esc>uu")
    assert desk.nvim.lines() == RENAME.splitlines()


def test_no_request_inside_a_name(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdead")
    desk.nvim.lua("vim.wait(120)")
    assert desk.requests() == []
    desk.nvim.press("line<Esc>")
    assert desk.requests()[0]["edits"][0]["new"] == ["def fetch(url, deadline):"]


def test_a_far_edit_is_a_hint_and_tab_jumps(start: Open) -> None:
    desk = start(FAR, init="vim.wo.foldmethod = 'manual'\n")
    desk.nvim.command("50,62fold")
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert desk.texts() == ["⇥ line 62 timeout→deadline"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [62, 16]
    assert desk.nvim.lua("return vim.fn.foldclosed(62)") == -1
    assert desk.texts() == ["deadline"]
    desk.nvim.press("<C-o>")
    assert desk.nvim.lua("return vim.fn.line('.')") == 1
    assert desk.texts() == ["⇥ line 62 timeout→deadline"]


def test_dismissing_silences_the_group(start: Open) -> None:
    desk = start()
    desk.delay(glance=LONG_MS)
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("<Esc>")
    assert desk.texts() == ["deadline"]  # it was not seen yet
    desk.delay(glance=0)
    desk.nvim.press("<Esc>")
    assert desk.texts() == []
    assert not desk.has_key()
    desk.nvim.press("jA  # more<Esc>")
    desk.answer()
    assert desk.texts() == []


def test_typing_the_proposed_text_consumes_it(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("/timeout<CR>cwdeadline<Esc>")
    assert desk.texts() == ["deadline"]
    assert desk.drawn()[0][0] == 4
    desk.answer()
    assert desk.drawn()[0][0] == 4


def test_undo_asks_for_nothing_and_shows_nothing(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("u")
    assert desk.texts() == []
    desk.nvim.press("<C-r>")
    assert desk.texts() == []
    assert len(desk.requests()) == 1


def test_two_examples_of_a_repeated_change(start: Open) -> None:
    desk = start(LIST)
    desk.nvim.press("jf(i_text<Esc>")
    desk.answer()
    desk.nvim.press("j0f(i_text<Esc>")
    desk.answer()
    assert desk.texts()[:1] == ["paint_text"]
    assert desk.drawn()[0][0] == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [("qa", "q"), (":diffthis<CR>", ":diffoff<CR>"), ("v", "<C-c>"), ("R", "<C-c>")],
)
def test_nothing_is_shown_in_other_modes(start: Open, before: str, after: str) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert desk.texts() == ["deadline"]
    desk.nvim.press(before)
    assert desk.texts() == []
    assert not desk.has_key()
    desk.nvim.press(after)
    assert desk.texts() == ["deadline"]


def test_a_macro_that_is_recorded_is_no_cause(start: Open) -> None:
    desk = start()
    desk.nvim.press("qagg/timeout<CR>cwdeadline<Esc>")
    assert desk.requests() == []
    desk.nvim.press("q")


def test_a_visual_block_insert_is_one_edit(start: Open) -> None:
    desk = start("aa = 1\nbb = 2\ncc = 3\n")
    desk.nvim.press("gg<C-v>jjIx_")
    desk.nvim.lua("vim.wait(120)")
    assert desk.requests() == []
    desk.nvim.press("<Esc>")
    requests = desk.requests()
    assert len(requests) == 1
    assert requests[0]["edits"][0]["new"] == ["x_aa = 1", "x_bb = 2", "x_cc = 3"]


def test_the_preview_of_a_substitution_is_no_edit(start: Open) -> None:
    desk = start(init="vim.o.inccommand = 'nosplit'\n")
    desk.nvim.press("ia<BS><Esc>")
    desk.nvim.keys(":%s/timeout/deadline/g")
    wait_for(lambda: desk.nvim.screen.rows()[2] == "    session.wait(deadline)")
    desk.nvim.lua("vim.wait(120)")
    desk.nvim.press("<Esc>")
    assert desk.requests() == []


def test_large_and_foreign_changes_are_no_edits(start: Open) -> None:
    desk = start("x = 1\n" * 50)
    desk.nvim.press("ggia<BS><Esc>:%s/x/y/<CR>")
    assert desk.requests() == []
    desk.nvim.lua("vim.fn.writefile({ 'z = 1' }, vim.api.nvim_buf_get_name(0))")
    desk.nvim.command("edit!")
    assert desk.requests() == []
    desk.nvim.press("ggrw")
    (edit,) = desk.answer()["edits"]
    assert (edit["row"], edit["old"], edit["new"]) == (0, ["z = 1"], ["w = 1"])


def test_a_formatter_that_runs_before_a_write_is_no_edit(start: Open) -> None:
    desk = start()
    desk.nvim.press("ia<BS><Esc>")
    desk.nvim.lua(
        "vim.api.nvim_create_autocmd('BufWritePre', { callback = function()"
        " vim.api.nvim_buf_set_lines(0, 0, 1, true, { 'def fetch(url, limit):' }) end })"
    )
    desk.nvim.command("silent write")
    assert desk.requests() == []


@pytest.mark.parametrize("end", ["edit!", "bwipeout!", "bdelete!"])
def test_a_buffer_that_goes_takes_its_proposals_along(start: Open, end: str) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.command(end)
    assert desk.texts() == []
    assert not desk.has_key()
    desk.nvim.command("LCursor next")
    assert desk.nvim.lua("return #vim.fn.getqflist()") == 0


@pytest.mark.parametrize("name", [".env", "id_rsa", "a.pem"])
def test_a_secret_file_is_not_sent(start: Open, name: str) -> None:
    desk = start("timeout = 1\nx = timeout\n", name)
    desk.nvim.press("cwdeadline<Esc>")
    assert desk.requests() == []


def test_a_private_key_anywhere_in_the_file_is_not_sent(start: Open) -> None:
    key = "k = '''-----BEGIN RSA PRIVATE KEY-----'''\n"
    desk = start("timeout = 1\n" + "x = timeout\n" * 100 + key)
    desk.nvim.press("cwdeadline<Esc>")
    assert desk.requests() == []


def test_a_file_that_git_ignores_is_not_sent(start: Open) -> None:
    desk = start("timeout = 1\nx = timeout\n")
    desk.nvim.lua("vim.fn.system({ 'git', 'init' }) vim.fn.writefile({ 'a.py' }, '.gitignore')")
    desk.nvim.press("cwdeadline<Esc>")
    wait_for_git(desk.nvim)
    desk.nvim.press("ggcwlimit<Esc>")
    assert desk.requests() == []


def test_a_buffer_that_becomes_read_only_shows_nothing(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.command("setlocal nomodifiable")
    desk.nvim.press("l")
    assert desk.texts() == []
    assert "cannot be modified" in desk.nvim.lua("return require('lcursor.next_edit').why()")


def test_lines_that_change_meanwhile_are_not_overwritten(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.lua("vim.api.nvim_buf_set_lines(0, 2, 3, true, { '    session.rest(timeout)' })")
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[2] == "    session.rest(timeout)"


def test_an_answer_to_an_older_text_is_dropped(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.nvim.press("Go")
    desk.answer()
    assert desk.drawn() == []


def test_two_windows_of_a_buffer(start: Open) -> None:
    desk = start(FAR)
    desk.nvim.command("split")
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert desk.texts() == ["⇥ line 62 timeout→deadline"]
    desk.nvim.press("<C-w>wG")
    wait_for(lambda: desk.texts() == ["deadline"])
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[61] == "    return url, deadline"


def test_the_menu_and_snippets_come_first(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Right><Right><Right>")
    desk.answer()
    assert len(desk.wait_drawn()) == 1
    desk.nvim.press("<C-x><C-n>")
    assert desk.drawn() == []
    desk.nvim.press("<C-e><Esc>")
    assert desk.texts() == ["deadline"]
    desk.nvim.press("Go")
    desk.nvim.lua("vim.snippet.expand('for $1 in $2:')")
    desk.nvim.lua("vim.wait(120)")
    assert desk.drawn() == []


def test_a_mapping_of_the_user_stays_or_is_restored(start: Open) -> None:
    keymap = {"accept_all": "<S-Tab>"}
    config = {**CONFIG, "next_edit": {"mode": "draw", "keymap": keymap}}
    desk = start(init="vim.keymap.set('n', '<Tab>', 'G')\n", config=config)
    desk.nvim.lua("vim.keymap.set('n', '<S-Tab>', 'G', { buffer = true })")
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert not desk.has_key("<Tab>")
    assert desk.has_key("<Tab>", "i")
    assert desk.has_key("<S-Tab>")
    assert [2, "1 of 2"] in desk.nvim.lua(DRAWN)  # names no key
    desk.nvim.press("<Esc>")
    assert desk.nvim.lua("return vim.fn.maparg('<Tab>', 'n')") == "G"
    assert desk.nvim.lua("return vim.fn.maparg('<S-Tab>', 'n')") == "G"


def test_a_hint_that_does_not_fit_is_at_the_next_line(start: Open) -> None:
    desk = start(FAR.replace("url,", "u" * 54 + ","))
    desk.nvim.press("gg$F,wcwdeadline<Esc>")
    desk.answer()
    assert desk.drawn()[0] == (1, "⇥ line 62 timeout→deadline")
    assert desk.has_key()


def test_a_hint_that_fits_in_no_line_is_hidden(start: Open) -> None:
    desk = start(FAR.replace("url,", "u" * 54 + ",").replace("pass", "p" * 70))
    desk.nvim.press("gg$F,wcwdeadline<Esc>")
    desk.answer()
    assert desk.drawn() == []
    assert not desk.has_key()


def test_why_names_the_cause(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.lua(NOTES)
    desk.nvim.press(":LCursor why<CR>")
    said = "Next edit: `timeout` became `deadline` in line 1; 2 changes left."
    assert said in str(notes(desk.nvim)[0][0])[:90]


def test_why_names_the_limit_of_a_large_file(start: Open) -> None:
    desk = start("x = 1\n" * 10001)
    desk.nvim.press("cwy<Esc>")
    said = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert said == "This file has no next edits: it has more than 10,000 lines or 1 MiB."


@pytest.mark.parametrize(("setting", "shown"), [("hint", 1), ("off", 0)])
def test_modes(start: Open, setting: str, shown: int) -> None:
    desk = start(config={**CONFIG, "next_edit": {"mode": setting}})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    if not shown:
        assert desk.requests() == []
        return
    desk.answer()
    assert desk.texts() == ["⇥ line 3 timeout→deadline (1 of 2)"]


def test_a_kind_that_is_off(start: Open) -> None:
    desk = start(config={**CONFIG, "next_edit": {"mode": "draw", "rename": False}})
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert desk.texts() == []


def test_text_without_a_grammar(start: Open) -> None:
    desk = start("one = timeout\ntwo = timeout\n", "a.unknown")
    desk.nvim.press("wwcwdeadline<Esc>")
    desk.answer()
    assert desk.nvim.lines()[0] == "one = deadline"


@pytest.mark.parametrize("is_colored", [True, False])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["    session.wait(timeout)"], ["    with session:", "        session.wait(deadline)"]),
        ([], ["    assert deadline > 0"]),
        (["    session.wait(timeout)", ""], []),
    ],
)
def test_whole_lines_are_drawn_below_the_old_ones_and_applied(
    start: Open, host: FakeHost, old: list[str], new: list[str], is_colored: bool
) -> None:
    desk = start()
    desk.nvim.client.request("nvim_ui_set_option", "rgb", is_colored)
    desk.nvim.client.request("nvim_ui_set_option", "term_colors", 8)
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    host.wait(lambda: any(one["edits"] for one in host.messages("next_edit.predict")))
    [request] = desk.requests()
    path = request["files"][0]["path"]
    proposal = {"kind": "rename", "path": path, "row": 2, "old": old, "new": new}
    proposal |= {"cause": "", "group": "a"}
    answer = predicted(request["id"], proposal)
    host.send("next_edit.predicted", answer)
    desk.nvim.wait_lua("return vim.fn.maparg('<Tab>', 'n') ~= ''")
    desk.nvim.settle()
    assert desk.nvim.screen.has("DiffDelete") == bool(old)
    signed = new if is_colored else [*("-" for _ in old), *("+ " + line for line in new)]
    assert sorted(" ".join(desk.texts()).split()) == sorted(" ".join(signed).split())
    before = desk.nvim.lines()
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == [*before[:2], *new, *before[2 + len(old) :]]


def test_a_block_insert_of_nothing_is_over_when_it_ends(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg<C-v>jI<Esc>")
    desk.nvim.press("/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    assert desk.texts() == ["deadline"]


@pytest.mark.parametrize(("count", "is_read"), [(6000, True), (10_001, False)])
def test_long_files(start: Open, count: int, is_read: bool) -> None:
    desk = start("timeout = 1\nx = timeout\n" + "pass\n" * (count - 2))
    desk.nvim.press("cwdeadline<Esc>")
    if is_read:
        desk.answer()
        assert desk.texts() == ["deadline"]
    else:
        desk.nvim.press("i")  # starts the host
        desk.host.wait_count(1)
        desk.nvim.press("<Esc>x")
        assert desk.requests() == []


def test_nothing_is_shown_while_a_plugin_has_several_cursors(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.lua("vim.b.visual_multi = 1")
    desk.nvim.press("l")
    assert desk.drawn() == []


def test_undo_and_redo_of_an_applied_edit_ask_for_nothing(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("<Tab>")
    desk.answer()
    desk.nvim.press("u<C-r>u")
    assert len(desk.requests()) == 2
    desk.nvim.press("GA  # more<Esc>")
    desk.answer()
    assert desk.drawn() == []


def test_lines_below_the_last_one(start: Open, host: FakeHost) -> None:
    desk = start("def f(x):\n" + "    pass\n" * 60)
    desk.nvim.press("ggfxcwY<Esc>")
    host.wait(lambda: any(one["edits"] for one in host.messages("next_edit.predict")))
    [request] = desk.requests()
    proposal = {"kind": "repetition", "path": request["files"][0]["path"], "row": 61, "old": []}
    proposal |= {"new": ["    return Y"], "cause": "", "group": "a"}
    answer = predicted(request["id"], proposal)
    host.send("next_edit.predicted", answer)
    assert desk.wait_drawn() == ["⇥ line 62 +return Y"]
    desk.nvim.press("<Tab>")
    assert desk.texts() == ["return Y"]
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[-1] == "    return Y"
