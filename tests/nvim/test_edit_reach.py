"""Asking for an edit: what is sent, what is seen while it runs, how it ends and is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return y\n"}
RETURN = change(1, ["    return x"], ["    return x + 1"])


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Desk:
    """One file, and what the user is told."""
    return Desk(editor(FILES, init=reach.NOTES), host)


def test_a_range_is_sent_with_all_of_the_buffer(desk: Desk) -> None:
    desk.nvim.press("ggonew<Esc>")
    asked = desk.ask("1,3LCEdit  make it faster ")
    assert asked["instruction"] == "make it faster"
    assert (asked["first_row"], asked["last_row"]) == (0, 3)
    assert asked["path"] == str(desk.project / "a.py")
    assert (asked["name"], asked["filetype"]) == ("a.py", "python")
    assert asked["text"].split("\n") == desk.lines()
    assert asked["text"].split("\n")[1] == "    new"
    assert asked["tick"] == desk.nvim.lua("return vim.b.changedtick")
    assert (asked["buffers"], asked["attachments"], asked["again"]) == ([], [], 0)


def test_without_a_range_it_is_the_cursor(desk: Desk) -> None:
    desk.nvim.press("5G")
    asked = desk.ask()
    assert (asked["first_row"], asked["last_row"]) == (4, 4)


def test_other_buffers_that_are_not_saved_go_along(editor: Start, host: FakeHost) -> None:
    nvim = editor({**FILES, "b.py": "b = 1\n", ".env": "KEY=1\n"})
    desk = Desk(nvim, host)
    nvim.command("edit b.py")
    nvim.press("Aa<Esc>")
    nvim.command("edit .env")
    nvim.press("Aa<Esc>")
    nvim.command("edit a.py")
    asked = desk.ask()
    assert [each["path"] for each in asked["buffers"]] == [str(desk.project / "b.py")]
    assert asked["buffers"][0]["text"] == "b = 1a"


def test_a_mention_brings_what_only_the_editor_has(desk: Desk) -> None:
    desk.nvim.lua(
        """
        local space = vim.api.nvim_create_namespace("test")
        vim.diagnostic.set(space, 0, { { lnum = 1, col = 4, message = "no such x" } })
        """
    )
    asked = desk.ask("LCEdit mend @diagnostics")
    assert [each["kind"] for each in asked["attachments"]] == ["diagnostics"]
    assert "no such x" in asked["attachments"][0]["text"]


REFUSED = [
    ({".env": "KEY=1\n"}, "edit .env", "secrets"),
    ({"k.txt": "-----BEGIN RSA PRIVATE KEY-----\n"}, "edit k.txt", "private key"),
    ({"n.txt": b"a\0b\n"}, "edit n.txt", "NUL"),
    ({}, "enew", "no name yet"),
    ({}, "help", "not a file"),
]


@pytest.mark.parametrize(("files", "command", "why"), REFUSED)
def test_what_must_not_be_edited_is_rejected(
    editor: Start, host: FakeHost, files: dict[str, Any], command: str, why: str
) -> None:
    nvim = editor({**FILES, **files}, init=reach.NOTES)
    nvim.command(command)
    nvim.command("LCEdit do it")
    assert any(why in text for text in reach.told(nvim)), reach.told(nvim)
    nvim.command("LCEdit")  # and no window asks in vain
    assert nvim.lua("return require('lcursor.editor.input').is_open()") is False
    assert host.messages("edit.ask") == []


def test_it_is_switched_off_by_a_setting(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES, config={"enabled": False})
    nvim.command("LCEdit do it")
    assert "switched off by the setting enabled" in reach.told(nvim)[-1]
    assert host.messages("edit.ask") == []


def test_what_it_does_is_seen_and_goes_when_it_ends(desk: Desk) -> None:
    asked = desk.ask("1LCEdit do it")
    desk.nvim.wait_lua("return vim.g.lcursor_status == 'lc editing'")
    desk.started(asked, 0, 2)
    desk.progress(asked["id"], "writing", done=1, total=2, seconds_left=3.2)
    assert "writing function alpha, 1 of 2 lines, 4 s left" in desk.drawn()
    assert "<C-c> stops" in desk.drawn()
    desk.delta(asked["id"], ["def alpha(x):"])
    desk.delta(asked["id"], ["\treturn x"])
    assert "def alpha(x):\n    return x" in desk.drawn()
    desk.nvim.command("redraw")
    desk.started(asked, 0, 2, attempt=2)
    assert "attempt 2" in desk.drawn()
    assert "return x" not in desk.drawn()
    desk.edited(asked, [RETURN])
    assert desk.drawn() == ""
    assert desk.nvim.lua("return vim.g.lcursor_status") == "lc"
    assert "1 hunk proposed" in reach.told(desk.nvim)[-1]
    assert desk.lines()[1] == "    return x"  # nothing is done yet


def test_the_region_moves_with_what_is_typed(desk: Desk) -> None:
    rows = """
        local run = require("lcursor.edit").running()[1]
        return { require("lcursor.edit.progress").rows(run) }
    """
    asked = desk.ask("5,6LCEdit do it")
    desk.nvim.press("ggOfirst<CR>second<Esc>")  # before it is known which region it is
    desk.started(asked, 4, 6)
    assert desk.nvim.lua(rows) == [6, 8]
    desk.nvim.press("ggdd")
    assert desk.nvim.lua(rows) == [5, 7]
    desk.edited(asked, [change(5, ["    return y"], ["    return 2 * y"])])
    desk.nvim.press("]hghh")
    assert desk.lines()[6] == "    return 2 * y"


def test_a_key_stops_it_and_is_the_users_again(editor: Start, host: FakeHost) -> None:
    stop = {"edit": {"keymap": {"stop": "<C-c>"}}}
    desk = Desk(editor(FILES, init=reach.NOTES, config=stop), host)
    desk.nvim.command("nnoremap <buffer> <C-c> <Cmd>let g:own = 1<CR>")
    asked = desk.ask()
    desk.nvim.press("<C-c>")
    assert desk.heard("edit.stop")["id"] == asked["id"]
    assert "stopping" in desk.drawn()
    desk.done(asked["id"], reason="stopped")
    assert desk.running() == 0
    desk.nvim.press("<C-c>")
    assert desk.nvim.lua("return vim.g.own") == 1
    assert len(desk.host.messages("edit.stop")) == 1


def test_the_keys_of_hunks_change_nothing_while_it_runs(desk: Desk) -> None:
    """Without the maps `gh` would begin Select mode, and the key after it replace text."""
    asked = desk.ask()
    text = desk.lines()
    desk.nvim.press("ghhgHHghAghn]h")
    assert desk.lines() == text
    assert desk.nvim.lua("return vim.fn.mode()") == "n"
    assert "no open hunk" in reach.told(desk.nvim)[-1]
    desk.done(asked["id"], reason="stopped")
    assert desk.nvim.lua("return vim.fn.maparg('ghh', 'n')") == ""


def test_escape_leaves_insert_mode_and_does_not_stop_it(desk: Desk) -> None:
    desk.ask()
    desk.nvim.press("ix<Esc><Esc>")
    assert desk.nvim.lua("return vim.fn.mode()") == "n"
    assert desk.running() == 1
    assert "stopping" not in desk.drawn()


def test_a_host_that_does_not_answer_a_stop_is_not_waited_for(desk: Desk) -> None:
    desk.nvim.lua("require('lcursor.edit').stop_ms = 100")
    desk.ask()
    desk.nvim.command("LCursor edit stop")
    desk.heard("edit.stop")
    desk.nvim.wait_lua("return #require('lcursor.edit').running() == 0")
    assert desk.drawn() == ""


def test_new_lines_at_the_end_of_a_file_are_on_the_screen(editor: Start, host: FakeHost) -> None:
    text = "".join(f"line {number}\n" for number in range(60))
    desk = Desk(editor({"a.txt": text}, init=reach.NOTES), host)
    desk.nvim.command("normal! G")
    asked = desk.ask("LCEdit do it")
    desk.edited(asked, [change(59, ["line 59"], ["new 59", "new 60", "new 61"])])
    found = desk.nvim.screen.wait(lambda screen: "new 61" in "\n".join(screen.rows()), 20)
    assert found
    assert desk.nvim.lua("return vim.fn.line('.')") == 60


def test_a_host_that_dies_ends_it(desk: Desk) -> None:
    desk.ask()
    desk.host.kill()
    desk.nvim.wait_lua("return #require('lcursor.edit').running() == 0")
    assert desk.drawn() == ""
    desk.nvim.wait_lua("return vim.inspect(_G.notes):find('that was running is lost') ~= nil")


def test_a_buffer_that_goes_stops_it(desk: Desk) -> None:
    asked = desk.ask()
    desk.nvim.command("enew | bwipeout! #")
    assert desk.heard("edit.stop")["id"] == asked["id"]
    assert reach.told(desk.nvim)[-1].endswith("stopped: a.py was closed or read again")


ENDS = [
    ("same", "The model wrote what was there already", "The model wrote what was there"),
    ("nothing", "It wrote no code", "It wrote no code"),
    ("rejected", "the reply was cut off", "nothing was changed: the reply was cut off"),
    ("stopped", "", ""),
]


@pytest.mark.parametrize(("reason", "message", "told"), ENDS)
def test_each_end_is_reported(desk: Desk, reason: str, message: str, told: str) -> None:
    asked = desk.ask()
    desk.done(asked["id"], reason=reason, message=message)
    texts = reach.told(desk.nvim)
    assert texts == [] if not told else told in texts[-1]
    assert desk.running() == 0


def test_a_failure_is_reported_once(desk: Desk) -> None:
    asked = desk.ask()
    desk.fail(asked["id"], "the server is gone", "Run :LCursor server start")
    desk.done(asked["id"], reason="failed")
    assert [text for text in reach.told(desk.nvim) if "server is gone" in text] == [
        "lcursor: the server is gone. Run :LCursor server start"
    ]
    assert desk.running() == 0


def test_after_an_error_nothing_says_that_it_runs(desk: Desk) -> None:
    asked = desk.ask()
    desk.fail(asked["id"], "the server is gone")
    assert desk.drawn() == ""
    assert desk.running() == 0
    assert desk.nvim.lua("return vim.g.lcursor_status") == "lc"


def test_two_edits_of_two_buffers_run_side_by_side(editor: Start, host: FakeHost) -> None:
    nvim = editor({**FILES, "b.py": "b = 1\n"}, init=reach.NOTES)
    desk = Desk(nvim, host)
    one = desk.ask()
    nvim.command("hide edit b.py")
    other = desk.ask(count=2)
    assert desk.running() == 2
    nvim.wait_lua("return vim.g.lcursor_status == 'lc 2 edits'")
    desk.edited(other, [change(0, ["b = 1"], ["b = 2"])])
    assert desk.running() == 1
    nvim.press("ghh")
    assert desk.lines() == ["b = 2"]
    desk.edited(one, [RETURN])
    assert desk.running() == 0


def test_two_edits_of_the_same_lines_are_distinguished(desk: Desk) -> None:
    one = desk.ask("1,2LCEdit say what it does")
    two = desk.ask("1,2LCEdit rename x", 2)
    assert "  2 edits run here  <C-c> stops them\n" in desk.drawn()
    assert "rename x: reading files" in desk.drawn()
    for asked in (one, two):
        desk.started(asked, 0, 2)
    desk.progress(one["id"], "writing", done=1, total=2)
    desk.delta(one["id"], ["def alpha(x):"])
    desk.progress(two["id"], "writing", done=1, total=1)
    desk.delta(two["id"], ["def alpha(n):"])
    desk.nvim.command("redraw")
    desk.done(two["id"], reason="same")
    assert "edits run here" not in desk.drawn()
    assert "rename x" not in desk.drawn()
    assert "writing function alpha, 1 of 2 lines  <C-c> stops" in desk.drawn()
    assert "\ndef alpha(x):" in f"\n{desk.drawn()}"


def test_what_two_edits_write_below_the_same_line_is_distinguished(desk: Desk) -> None:
    one, two = desk.ask("1,2LCEdit all of it"), desk.ask("2LCEdit rename x", 2)
    desk.started(one, 0, 2)
    desk.started(two, 1, 2, what="a line")
    for asked in (one, two):
        desk.progress(asked["id"], "writing")
        desk.delta(asked["id"], ["def"])
    said = re.sub("[⠀-⣿]", "*", desk.drawn())
    assert "  * all of it: writing function alpha\ndef" in said
    assert "  * rename x: writing a line\ndef" in said
    assert said.count("<C-c> stops") == 2  # each says at its own first line what it does
    desk.done(one["id"], reason="same")
    assert "rename x" not in desk.drawn()
