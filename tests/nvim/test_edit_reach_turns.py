"""Turns as a whole: alternatives, taking all, files that no buffer has, undo and redo, the list."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from lcursor.changes.records import digest
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change, file, row
from tests.nvim.home import accept_all
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {
    "a.py": "def alpha(x):\n    return x\n",
    "b.py": "b = 1\n",
    "c.py": "c = 1\n",
}
RETURN = change(1, ["    return x"], ["    return x + 1"])
HUNKS = "return #require('lcursor.edit.proposals').hunks(vim.api.nvim_get_current_buf())"


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Desk:
    """Three files, the first of them open."""
    return Desk(editor(FILES, init=reach.NOTES), host)


def both(desk: Desk, asked: dict[str, Any]) -> str:
    """Propose a change of the buffer and one of a file that no buffer has; return the turn."""
    number = asked["id"]
    lines = desk.lines()
    tick = desk.nvim.lua("return vim.b.changedtick")
    here = file(desk.project / "a.py", [RETURN], base=digest(lines), tick=tick)
    other = file(desk.project / "b.py", [change(0, ["b = 1"], ["b = 2"])])
    key = desk.propose(number, [here, other])
    desk.done(number)
    return key


def test_another_way_is_asked_for_and_cycled(desk: Desk) -> None:
    asked = desk.ask("1,2LCEdit do it")
    desk.edited(asked, [RETURN])
    desk.nvim.press("2G]v")
    again = desk.heard("edit.ask", 2)
    assert (again["again"], again["remark"]) == (asked["id"], "")
    assert (again["instruction"], again["first_row"], again["last_row"]) == ("do it", 0, 2)
    other = change(1, ["    return x"], ["    return 1 + x"])
    desk.edited(again, [other], alternative=2)
    assert "alternative 2" in reach.told(desk.nvim)[-1]
    assert desk.nvim.lua(HUNKS) == 1  # not both
    desk.nvim.press("[v")
    desk.nvim.press("[v")
    assert reach.told(desk.nvim)[-1] == "lcursor: this is the first alternative"
    desk.nvim.press("ghh")
    assert desk.lines()[1] == "    return x + 1"


def test_it_is_made_again_with_a_remark(desk: Desk) -> None:
    asked = desk.ask()
    desk.edited(asked, [RETURN])
    desk.nvim.press("g.")
    desk.nvim.press("not so<CR>")
    again = desk.heard("edit.ask", 2)
    assert (again["again"], again["remark"], again["instruction"]) == (
        asked["id"],
        "not so",
        "do it",
    )
    desk.edited(again, [change(1, ["    return x"], ["    return -x"])], alternative=2)
    desk.nvim.press("2Gghh")
    assert desk.lines()[1] == "    return -x"


def test_what_did_not_come_from_an_edit_cannot_be_tried_again(desk: Desk) -> None:
    desk.ask()
    desk.propose(7, [])  # nobody waits for this one
    desk.nvim.lua(
        """
        local path = vim.api.nvim_buf_get_name(0)
        require("lcursor.edit").receive({
          id = 999, turn = "x", title = "", alternative = 1, note = "", attempts = 1, chat = "",
          files = { {
            path = path, name = "a.py", kind = "edit", to = "", is_outside = false, checks = {},
            is_guarded = false, unneeded = {},
            tick = -1, base = vim.fn.sha256(table.concat(vim.fn.getline(1, "$"), "\\n")),
            changes = { { first_row = 0, last_row = 1, old = { vim.fn.getline(1) }, new = {} } },
          } },
        })
        """
    )
    desk.nvim.press("ggg.")
    assert "cannot be tried again" in reach.told(desk.nvim)[-1]


def test_all_is_taken_and_what_no_buffer_has_is_written(desk: Desk) -> None:
    key = both(desk, desk.ask())
    assert "in 2 files" in reach.told(desk.nvim)[-1]
    accept_all(desk.nvim)
    assert desk.lines()[1] == "    return x + 1"
    assert desk.nvim.lua("return vim.bo.modified")  # the user saves it
    wanted = desk.heard("edit.write")
    assert (wanted["turn"], wanted["paths"], wanted["outside"]) == (
        key,
        [str(desk.project / "b.py")],
        False,
    )
    decided = desk.heard("edit.decided")
    assert (decided["turn"], decided["path"], decided["open"]) == (
        key,
        str(desk.project / "a.py"),
        0,
    )
    desk.say(
        "edit.written", {"id": wanted["id"], "turn": key, "paths": wanted["paths"], "problem": ""}
    )
    desk.nvim.settle()
    assert "1 file written" in reach.told(desk.nvim)[-1]
    assert desk.nvim.lua("return require('lcursor.edit.proposals').count()") == 0


def test_what_could_not_be_written_stays_open(desk: Desk) -> None:
    key = both(desk, desk.ask())
    accept_all(desk.nvim)
    wanted = desk.heard("edit.write")
    said = {"id": wanted["id"], "turn": key, "paths": [], "problem": "b.py is read-only"}
    desk.say("edit.written", said)
    desk.nvim.settle()
    assert "b.py is read-only" in reach.told(desk.nvim)[-1]
    assert desk.nvim.lua("return require('lcursor.edit.proposals').count()") == 1


def test_files_on_the_disk_are_named_before_they_change(desk: Desk) -> None:
    asked = desk.ask()
    outside = desk.nvim.home / "outside.py"
    outside.write_text("x = 1\n")
    one = file(outside, [change(0, ["x = 1"], ["x = 2"])], is_outside=True)
    here = file(desk.project / "a.py", [RETURN])
    desk.propose(asked["id"], [here, one])
    desk.done(asked["id"])
    desk.nvim.press("2GghA")
    text = "this changes files on the disk: outside.py (outside the project)"
    assert reach.told(desk.nvim)[-1] == f"lcursor: {text}. ghA again accepts all"
    assert desk.host.messages("edit.write") == []
    assert desk.lines()[1] == "    return x"
    desk.nvim.press("ghA")
    assert [each["outside"] for each in desk.host.messages("edit.write")] == [True]
    assert desk.lines()[1] == "    return x + 1"


def test_files_that_run_code_are_not_written_with_the_others(desk: Desk) -> None:
    asked = desk.ask()
    guarded = file(desk.project / "b.py", [change(0, ["b = 1"], ["b = 2"])], is_guarded=True)
    guarded["is_outside"] = True  # is not asked for
    desk.propose(asked["id"], [guarded, file(desk.project / "c.py", [change(0, ["c = 1"], ["c"])])])
    desk.done(asked["id"])
    accept_all(desk.nvim)
    assert desk.heard("edit.write")["paths"] == [str(desk.project / "c.py")]
    assert "b.py. Open it, :LCursor hunk accept file" in reach.told(desk.nvim)[-1]


def test_a_file_that_is_renamed_or_deleted_takes_its_buffer_along(desk: Desk) -> None:
    asked = desk.ask()
    for name in ("b.py", "c.py"):
        desk.nvim.command(f"badd {name} | call bufload('{name}')")
    old, new = desk.project / "b.py", desk.project / "d.py"
    renamed = file(old, [], kind="rename", to=str(new))
    deleted = file(desk.project / "c.py", [change(0, ["c = 1"], [])], kind="delete")
    key = desk.propose(asked["id"], [renamed, deleted])
    desk.done(asked["id"])
    accept_all(desk.nvim)
    wanted = desk.heard("edit.write")
    assert sorted(wanted["paths"]) == [str(old), str(desk.project / "c.py")]
    old.rename(new)
    (desk.project / "c.py").unlink()
    said = {"id": wanted["id"], "turn": key, "paths": wanted["paths"], "problem": ""}
    desk.say("edit.written", said)
    desk.nvim.settle()
    names = desk.nvim.lua(
        """
        local names = {}
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          if vim.bo[buf].buflisted then
            table.insert(names, vim.fs.basename(vim.api.nvim_buf_get_name(buf)))
          end
        end
        return names
        """
    )
    assert sorted(names) == ["a.py", "d.py"]


@pytest.mark.parametrize("is_target_open", [False, True])
def test_what_is_typed_while_a_file_is_renamed_stays(desk: Desk, *, is_target_open: bool) -> None:
    asked = desk.ask()
    old, new = desk.project / "b.py", desk.project / "d.py"
    renamed = file(old, [change(0, ["b = 1"], ["b = 2"])], kind="rename", to=str(new))
    key = desk.propose(asked["id"], [renamed])
    desk.done(asked["id"])
    desk.nvim.command("badd b.py | call bufload('b.py')")
    accept_all(desk.nvim)
    wanted = desk.heard("edit.write")
    desk.nvim.command("call setbufline('b.py', 2, 'typed')")
    if is_target_open:
        desk.nvim.command("badd d.py | call bufload('d.py') | call setbufline('d.py', 1, 'mine')")
    old.unlink()
    new.write_text("b = 2\n")
    said = {"id": wanted["id"], "turn": key, "paths": wanted["paths"], "problem": ""}
    desk.say("edit.written", said)
    desk.nvim.settle()
    name = "b.py" if is_target_open else "d.py"
    assert desk.nvim.lua("return vim.fn.getbufline(..., 1, '$')", name) == ["b = 1", "typed"]
    assert ("d.py is open with unsaved text" in reach.told(desk.nvim)[-2]) == is_target_open


def test_a_file_is_not_renamed_to_one_with_unsaved_text(desk: Desk) -> None:
    asked = desk.ask()
    to = str(desk.project / "d.py")
    desk.propose(asked["id"], [file(desk.project / "b.py", [], kind="rename", to=to)])
    desk.done(asked["id"])
    desk.nvim.command("badd d.py | call bufload('d.py') | call setbufline('d.py', 1, 'mine')")
    accept_all(desk.nvim)
    assert desk.host.messages("edit.write") == []
    assert reach.told(desk.nvim)[-1].startswith("lcursor: close d.py first")


def test_the_keys_of_hunks_stay_while_other_files_of_the_edit_are_open(desk: Desk) -> None:
    """Without the maps `gh` would begin Select mode, and the key after it replace text."""
    key = both(desk, desk.ask())
    accept_all(desk.nvim)
    wanted = desk.heard("edit.write")
    said = {"id": wanted["id"], "turn": key, "paths": [], "problem": "b.py is read-only"}
    desk.say("edit.written", said)
    desk.nvim.settle()
    lines = desk.lines()
    for _ in range(2):
        desk.nvim.press("2GghA")
        assert (desk.lines(), desk.nvim.lua("return vim.fn.mode()")) == (lines, "n")
    assert len(desk.host.messages("edit.write")) == 2
    desk.nvim.command("edit b.py | LCursor hunk accept file | buffer a.py")
    assert desk.nvim.lua("return vim.fn.maparg('ghA', 'n')") == ""


def test_a_changed_buffer_is_not_moved_or_removed(desk: Desk) -> None:
    asked = desk.ask()
    desk.nvim.command("hide edit c.py")
    desk.nvim.press("Ax<Esc>")
    deleted = file(desk.project / "c.py", [change(0, ["c = 1"], [])], kind="delete")
    desk.propose(asked["id"], [deleted])
    desk.done(asked["id"])
    desk.nvim.command("LCursor hunk accept all")
    assert "c.py" in reach.told(desk.nvim)[-1]
    assert desk.host.messages("edit.write") == []
    assert desk.lines() == ["c = 1x"]


def test_all_is_rejected(desk: Desk) -> None:
    both(desk, desk.ask())
    desk.nvim.command("LCursor hunk reject all")
    desk.nvim.settle()
    assert desk.nvim.lua("return require('lcursor.edit.proposals').count()") == 0
    assert desk.lines()[1] == "    return x"
    assert desk.host.messages("edit.write") == []
    assert sorted(len(each["rejected"]) for each in desk.host.messages("edit.decided")) == [1, 1]


def reverted(desk: Desk, wanted: dict[str, Any], one: dict[str, Any]) -> None:
    """Have the host take a turn back: a change of the buffer that was sent, and a file."""
    buffer = wanted["buffers"][0]
    found = file(
        desk.project / "a.py", [one], base=digest(buffer["text"].split("\n")), tick=buffer["tick"]
    )
    said = {
        "id": wanted["id"],
        "turn": wanted["turn"],
        "title": "do it",
        "do": wanted["do"],
        "files": [found],
        "paths": [str(desk.project / "b.py")],
        "problems": [],
    }
    desk.say("edit.reverted", said)
    desk.nvim.settle()


def test_a_turn_is_taken_back_across_files(desk: Desk) -> None:
    asked = desk.ask("2LCEdit do it")
    key = desk.edited(asked, [RETURN])
    desk.nvim.press("2Gghh")
    desk.nvim.press("ggOtyped<Esc>")
    desk.nvim.command("LCursor edit undo")
    paths = [str(desk.project / name) for name in ("a.py", "b.py")]
    desk.turns([row(key, paths=paths)], undo=key)
    wanted = desk.heard("edit.revert")
    assert (wanted["do"], wanted["turn"]) == ("undo", key)
    assert [each["path"] for each in wanted["buffers"]] == [paths[0]]
    reverted(desk, wanted, change(2, ["    return x + 1"], ["    return x"]))
    assert desk.lines() == ["typed", "def alpha(x):", "    return x"]
    told = 'undid "do it" in 1 buffer and 1 file'
    assert reach.told(desk.nvim)[-1] == "lcursor: " + told
    decided = desk.host.messages("edit.decided")
    assert [each["is_undone"] for each in decided] == [False]  # the ledger knows by itself
    desk.nvim.command("LCursor edit redo")
    desk.turns([row(key, paths=paths, state="undone")], redo=key, count=2)
    wanted = desk.heard("edit.revert", 2)
    assert (wanted["do"], wanted["turn"]) == ("redo", key)
    reverted(desk, wanted, change(2, ["    return x"], ["    return x + 1"]))
    assert desk.lines()[2] == "    return x + 1"
    assert "redid" in reach.told(desk.nvim)[-1]


def test_what_could_not_be_taken_back_is_said(desk: Desk) -> None:
    desk.nvim.command("LCursor edit undo")
    desk.turns([row("t1", paths=[str(desk.project / "a.py")])], undo="t1")
    wanted = desk.heard("edit.revert")
    said = {"id": wanted["id"], "turn": "t1", "title": "do it", "do": "undo"}
    here = desk.nvim.lua("return vim.uv.cwd()")
    problems = [f"{here}/b.py was changed since", "/else/c.py was changed since"]
    desk.say("edit.reverted", {**said, "files": [], "paths": [], "problems": problems})
    told = reach.told(desk.nvim)[-1]
    assert told.endswith(": b.py was changed since; /else/c.py was changed since")


@pytest.mark.parametrize("what", ["undo", "redo"])
def test_there_may_be_nothing_to_undo_or_redo(desk: Desk, what: str) -> None:
    desk.nvim.command(f"LCursor edit {what}")
    desk.turns([row("t1", state="open", open=1)])
    assert f"nothing to {what}" in reach.told(desk.nvim)[-1]
    assert desk.host.messages("edit.revert") == []


def test_the_list_shows_the_turns_and_takes_one_back(desk: Desk) -> None:
    desk.nvim.command("LCursor edit list")
    paths = [str(desk.project / "a.py")]
    now = time.time()
    rows = [
        row("t2", "rename it", paths=paths, state="open", open=2, at_s=now),
        row("t1", "make it faster", paths=paths, at_s=now - 7300),
    ]
    desk.turns(rows, undo="t1")
    shown = [" ".join(line.split()) for line in reach.sheet(desk.nvim, "edits")]
    assert shown == ["now 2 open rename it a.py", "2 h done make it faster a.py"]
    desk.nvim.press("ju")
    wanted = desk.heard("edit.revert")
    assert (wanted["do"], wanted["turn"]) == ("undo", "t1")
    assert reach.sheet(desk.nvim, "edits") == []


def test_open_hunks_come_back_after_neovim_ended(desk: Desk) -> None:
    desk.nvim.command("LCursor edit list")
    path = desk.project / "a.py"
    desk.turns([row("t9", paths=[str(path)], state="open", open=1)])
    desk.nvim.press("<CR>")
    wanted = desk.heard("edit.resume")
    assert wanted["turn"] == "t9"
    assert [each["path"] for each in wanted["buffers"]] == [str(path)]
    desk.propose(wanted["id"], [file(path, [RETURN])], turn="t9")
    assert desk.nvim.lua("return vim.bo.buftype") == "quickfix"
    desk.nvim.press("<CR>ghh")
    assert desk.lines()[1] == "    return x + 1"


def test_the_keys_are_there_only_until_hunks_are_decided(editor: Start, host: FakeHost) -> None:
    mappings = {"edit": {"keymap": {"accept_file": "ga"}}}
    desk = Desk(editor(FILES, init=reach.NOTES, config=mappings), host)
    keys = "return vim.fn.maparg('ghh', 'n') ~= ''"
    assert not desk.nvim.lua(keys)
    desk.nvim.command("nnoremap <buffer> ga <Cmd>let g:own = 1<CR>")
    desk.edited(desk.ask(), [RETURN])
    assert desk.nvim.lua(keys)
    desk.nvim.press("ga")
    assert desk.lines()[1] == "    return x + 1"
    assert not desk.nvim.lua(keys)
    desk.nvim.press("ga")
    assert desk.nvim.lua("return vim.g.own") == 1
    desk.nvim.press("u")  # and with the hunk they come again
    desk.nvim.wait_lua(keys)


def test_a_map_of_the_users_takes_the_place_of_a_key(editor: Start, host: FakeHost) -> None:
    init = reach.NOTES + "vim.keymap.set('n', '+', '<Plug>(lcursor-hunk-accept)')\n"
    nvim = editor(FILES, init=init, config={"edit": {"keymap": {"reject": ""}}})
    desk = Desk(nvim, host)
    desk.edited(desk.ask(), [RETURN])
    assert nvim.lua("return vim.fn.maparg('ghh', 'n') .. vim.fn.maparg('gHH', 'n')") == ""
    nvim.press("2G+")
    assert desk.lines()[1] == "    return x + 1"


def test_a_file_that_runs_code_by_itself_is_accepted_alone(desk: Desk) -> None:
    asked = desk.ask("1,2LCEdit do it")
    here = file(desk.project / "a.py", [RETURN])
    other = file(desk.project / ".envrc", [change(0, [], ["make"])], kind="create", is_guarded=True)
    desk.propose(asked["id"], [here, other])
    desk.done(asked["id"])
    desk.nvim.command("LCursor hunk accept all")
    assert desk.lines()[1] == "    return x + 1"
    wanted = "left out, since it runs code by itself: .envrc. Open it, :LCursor hunk accept file"
    assert f"lcursor: {wanted}" in reach.told(desk.nvim)
    desk.nvim.command("LCursor hunk accept all")  # also where it is the only one left
    assert desk.host.messages("edit.write") == []
    desk.nvim.command("edit .envrc | LCursor hunk accept file")
    assert desk.lines() == ["make"]
