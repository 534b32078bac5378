"""Hunks as people come by them: read anew, undone and redone in one go, gone to from a list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.edits import NEW, OLD, Room, changes, file, proposed

MEAN = [
    "def mean(v):",
    "    n = 0",
    "    for x in v:",
    "        n += x",
    "    return n",
    "",
    "z = 1",
]
QUICK = [
    "def mean(v):",
    '    """D."""',
    "    if v:",
    "        return 0",
    "    return sum(v)",
    *MEAN[5:],
]


@pytest.fixture
def room(neovim: Path, tmp_path: Path) -> Iterator[Room]:
    """A Neovim of its own for each test: where its windows are scrolled to counts."""
    with Room(neovim, tmp_path, columns=76, lines=24) as one:
        yield one


def test_accepted_then_read_again_next_to_other_lines_and_undone(room: Room) -> None:
    path = room.open("a.py", MEAN)
    room.offer(path, MEAN, QUICK)
    room.hunks("accept", 2, 4)
    room.keys("2GA + 1<Esc>")
    assert room.states() == ["conflict", "accepted", "open"]
    room.nvim.command("write")
    room.nvim.command("edit!")
    assert room.states() == ["conflict", "accepted", "open"]
    while room.lines() != MEAN:
        room.keys("u")
    assert room.states() == ["open"] * 3
    room.keys("2<C-r>")
    assert room.lines()[:4] == [MEAN[0], MEAN[1] + " + 1", *QUICK[2:4]]
    assert room.states() == ["conflict", "accepted", "open"]


@pytest.mark.parametrize("keys", ["<CR>", ":wincmd p|cc 2<CR>"])
def test_an_entry_of_the_list_shows_the_new_lines_too(room: Room, keys: str) -> None:
    old = [f"line {i}" for i in range(60)]
    new = [*old[:12], *(f"new {i}" for i in range(6)), *old[12:]]
    path = room.open("a.txt", old)
    room.offer(path, old, ["first", *new[1:]])
    room.nvim.lua("require('lcursor.edit.quickfix').open()")
    room.nvim.keys(f"j{keys}")
    room.nvim.wait_lua("return vim.fn.getline('.') == 'line 11'")
    room.nvim.wait_lua("return vim.fn.winline() + 6 <= vim.api.nvim_win_get_height(0)")


SAID = """
local ns = vim.api.nvim_create_namespace("lcursor.edit.at")
local mark = vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })[1]
local words = vim.iter(mark and mark[4].virt_text or {}):map(function(c) return c[1] end):join("")
return { mark and mark[2], words:find("ghh accept", 1, true) ~= nil }
"""


def test_the_keys_are_said_where_and_while_they_do_something(room: Room) -> None:
    path = room.open("a.py", MEAN)
    room.offer(path, MEAN, QUICK)
    room.hunks("next", 1)
    said = f"return vim.deep_equal((function() {SAID} end)(), {{ ... }})"
    room.nvim.wait_lua(said, 1, True)
    room.nvim.keys("A + 1<Esc>")
    room.nvim.wait_lua(said, 1, False)
    room.nvim.keys("u")
    room.nvim.wait_lua(said, 1, True)
    room.nvim.keys("ddP")
    room.nvim.wait_lua(said, 1, True)


def test_it_is_said_at_its_lines_that_a_file_goes(room: Room) -> None:
    path = room.open("a.py", MEAN)
    room.offer(path, MEAN, [], kind="delete")
    said = "the file is deleted by :LCursor hunk accept all"
    assert room.nvim.screen.wait(lambda screen: any(said in row for row in screen.rows()), 20)


@pytest.mark.parametrize(
    ("line", "lnum"), [(1, 3), (3, 3), (4, 3), (9, 11), (11, 11), (40, 21), (21, 21)]
)
def test_the_list_begins_at_what_is_looked_at(room: Room, line: int, lnum: int) -> None:
    old = [f"line {i}" for i in range(40)]
    new = [*old[:2], "two", *old[3:10], "ten", *old[11:21], "new", *old[21:]]
    other = room.write("other.txt", old)
    room.offer(other, old, ["first", *old[1:]])
    room.offer(room.open("a.txt", old), old, new, "t2")
    room.cursor(line - 1)
    at = "local i = vim.fn.getqflist({ idx = 0 }).idx return { vim.fn.line('.') == i, "
    at += "vim.fn.bufname(vim.fn.getqflist()[i].bufnr), vim.fn.getqflist()[i].lnum }"
    for _ in range(2):  # also where the list is there already
        room.nvim.lua("require('lcursor.edit.quickfix').open()")
        assert room.nvim.lua(at) == [True, "a.txt", lnum]
        room.nvim.lua("require('lcursor.edit.quickfix').open()")  # in its own window
        assert room.nvim.lua(at) == [True, "a.txt", lnum]
        room.nvim.command("wincmd p")
        room.cursor(39)
        room.nvim.lua("require('lcursor.edit.quickfix').open()")
        assert room.nvim.lua(at) == [True, "a.txt", 21]
        room.nvim.command("wincmd p")
        room.cursor(line - 1)


def test_a_hunk_that_is_nowhere_is_shown_where_its_lines_were(room: Room) -> None:
    old = [f"line {i}" for i in range(8)]
    new = ["zero", *old[1:4], "four", *old[5:], "end"]
    path = room.open("a.txt", old)
    room.offer(path, old, new)
    room.write("a.txt", [f"other {i}" for i in range(8)])
    room.nvim.command("edit!")
    assert room.states() == ["conflict"] * 3
    hint = "u may restore it, :LCursor hunk reject file closes them"
    assert room.notes() == [f"lcursor: 3 hunks do not fit the text of a.txt. {hint}"]
    room.nvim.command("redraw!")
    rows = [row for row in room.nvim.screen.rows() if "conflict:" in row]
    assert [row.split(" conflict")[0].strip() for row in rows] == ["other 0", "other 4", "other 7"]
    room.cursor(1)
    for row in (4, 7, 0):
        room.hunks("next", 1)
        assert room.row() == row
        assert room.nvim.lua("return require('lcursor.edit.hunks').at_cursor().state") == "conflict"
    room.nvim.lua("require('lcursor.edit.quickfix').open()")
    lines = "return vim.tbl_map(function(i) return i.lnum end, vim.fn.getqflist())"
    assert room.nvim.lua(lines) == [1, 5, 8]


@pytest.mark.parametrize(("touched", "said"), [(1, "1 hunk"), (2, "2 hunks")])
def test_what_is_left_out_is_counted_in_words(room: Room, touched: int, said: str) -> None:
    old = [f"line {i}" for i in range(12)]
    path = room.open("a.txt", old)
    room.offer(path, old, ["a", *old[1:5], "b", *old[6:10], "c", old[11]])
    for row in (0, 5)[:touched]:
        room.cursor(row)
        room.keys("Amine<Esc>")
    room.notes()
    room.hunks("accept_file")
    assert room.notes() == [f"lcursor: {said} in conflict, left out"]
    _, problems = room.accept_all()
    assert problems == [f"a.txt: {said} in conflict, left out"]


def test_files_that_run_code_are_accepted_one_by_one(room: Room) -> None:
    away = room.write("away.txt", MEAN)
    hook = room.write("conftest.py", MEAN)
    new = room.home / "Makefile"
    new.unlink(missing_ok=True)
    here = room.open("here.txt", MEAN)
    shown = room.open("setup.py", MEAN)
    guarded = {"is_guarded": True, "is_outside": True}
    room.propose(
        proposed(
            [
                file(hook, MEAN, QUICK, **guarded),
                file(shown, MEAN, QUICK, **guarded),
                file(new, [], ["all:"], base="", kind="create", **guarded),
                file(here, MEAN, QUICK),
                file(away, MEAN, QUICK),
            ]
        )
    )
    paths, problems = room.accept_all()
    assert room.lines() == MEAN
    assert paths == [str(away)]
    names = "conftest.py, setup.py, Makefile"
    assert problems == [
        f"left out, since it runs code by itself: {names}. Open it, :LCursor hunk accept file"
    ]
    room.hunks("accept_file")
    assert room.lines() == QUICK
    room.nvim.lua("require('lcursor.edit.proposals').written('t1', ...)", paths)
    room.nvim.command(f"write! | edit! {new}")
    room.hunks("accept_file")
    assert room.lines() == ["all:"]
    room.nvim.command("setlocal nomodified")
    assert room.accept_all() == ([], [problems[0].replace(names, "conftest.py")])
    room.nvim.command(f"edit! {hook}")
    room.hunks("accept_file")
    assert room.lines() == QUICK
    assert room.accept_all() == ([], [])


def test_accepting_many_hunks_stops_at_a_file_that_runs_code(room: Room) -> None:
    hook = room.write("conftest.py", MEAN)
    here = room.open("here.txt", MEAN)
    room.propose(proposed([file(here, MEAN, QUICK), file(hook, MEAN, QUICK, is_guarded=True)]))
    room.nvim.lua("vim.keymap.set('n', 'ghn', require('lcursor.edit.hunks').accept_next)")
    room.nvim.command("normal 999ghn")
    assert room.nvim.lua("return vim.fn.expand('%:t')") == "conftest.py"
    assert room.lines() == MEAN
    assert any("runs code by itself: conftest.py" in note for note in room.notes())
    room.nvim.command("normal 999ghn")
    assert room.lines() == QUICK
    room.nvim.command(f"buffer {here}")
    assert room.lines() == QUICK


def test_a_single_file_that_runs_code_is_accepted_where_it_is_open(room: Room) -> None:
    path = room.open("Makefile", MEAN)
    room.propose(proposed([file(path, MEAN, QUICK, is_guarded=True)]))
    other = room.open("other.py", MEAN)
    _, problems = room.accept_all()
    assert "Makefile. Open it, :LCursor hunk accept file" in problems[0]
    room.nvim.command(f"buffer {path}")
    assert room.accept_all() == ([], [])
    assert room.lines() == QUICK
    assert other.read_text().splitlines() == MEAN


def test_a_file_renamed_to_one_that_runs_code_comes_last_and_alone(room: Room) -> None:
    away, path = room.write("away.txt", MEAN), room.open("here.txt", MEAN)
    to = str(path.with_name(".envrc"))
    renamed = file(path, MEAN, MEAN, kind="rename", to=to, is_guarded=True)
    room.propose(proposed([renamed, file(away, MEAN, QUICK)]))
    paths, problems = room.accept_all()
    assert paths == [str(away)]
    assert problems == [
        "left out, since it runs code by itself: here.txt. Open it, :LCursor hunk accept file"
    ]
    room.nvim.lua("require('lcursor.edit.proposals').written('t1', ...)", paths)
    other = room.open("other.py", MEAN)
    _, problems = room.accept_all()
    assert problems == [
        "left out, since it runs code by itself: here.txt. Open it, :LCursor hunk accept all"
    ]
    room.nvim.command(f"buffer {path}")
    assert room.accept_all() == ([str(path)], [])
    assert other.exists()


def test_it_is_said_that_a_file_runs_code(room: Room) -> None:
    other = room.write("other.py", MEAN)
    path = room.open("conftest.py", MEAN)
    files = [file(other, MEAN, QUICK), file(path, MEAN, QUICK, is_guarded=True)]
    room.propose(proposed(files))
    room.nvim.lua("require('lcursor.edit.quickfix').open()")
    said = "! runs code by itself"
    assert room.nvim.screen.wait(lambda screen: any(said in row for row in screen.rows()), 20)
    names = (
        "vim.fs.basename(vim.fn.bufname(i.bufnr)) .. ' ' .. tostring(i.text:find('[runs', 1, 1))"
    )
    found = room.nvim.lua(f"return vim.tbl_map(function(i) return {names} end, vim.fn.getqflist())")
    assert found == ["conftest.py 7", "other.py nil"]


@pytest.mark.parametrize(
    ("keys", "index"),
    [
        ("2GccTWO<Esc>", 0),
        ("2GccTWO!<Esc>", -1),
        ("2GddOTWO<Esc>", 0),
        ("4Go4a<CR>4b<Esc>", 1),
        ("5GO4a<CR>4b<Esc>", 1),
        ("4GA<CR>4a<CR>4b<Esc>", 1),
        ("4Go4b<Esc>O4a<Esc>", 1),
        ("4Go4a<Esc>", -1),
        ("3Go4a<CR>4b<Esc>", -1),
        (":call append(4, ['4a', '4b'])<CR>", 1),
        ("7Gdd", 2),
        ("6G2dd", -1),
        ("GAx<BS>x<BS><CR>11<Esc>kccTEN<Esc>", 3),
        (":2s/two/TWO/<CR>", 0),
    ],
)
def test_a_hunk_that_is_made_by_hand_is_accepted(room: Room, keys: str, index: int) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys(keys)
    made = room.lines()
    states = room.states()
    assert [i for i, state in enumerate(states) if state == "accepted"] == [index] * (index >= 0)
    if index < 0:
        return
    [told] = room.decided()
    hunk = changes(OLD, NEW)[index]
    [accepted] = told["accepted"]
    assert (accepted["old"], accepted["new"]) == (hunk["old"], hunk["new"])
    assert accepted["row"] == hunk["first_row"]
    while room.lines() != OLD:
        room.keys("u")
    assert room.states() == ["open"] * 4
    [told] = room.decided()
    assert (told["is_undone"], told["open"]) == (True, 4)
    while room.lines() != made:
        room.keys("<C-r>")
    assert room.states() == states
    room.hunks("accept_file")
    assert room.lines() == NEW


def test_what_is_typed_is_compared_when_insert_mode_ends(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.keys("2GccTWO")
    room.nvim.wait_lua("return vim.fn.getline(2) == 'TWO'")
    assert room.states()[0] == "conflict"  # it may become another text
    room.nvim.keys(" more<Esc>")
    room.nvim.wait_lua("return vim.fn.mode() == 'n'")
    assert room.states() == ["conflict", "open", "open", "open"]
    room.nvim.keys("xxxxx")
    room.nvim.wait_lua("return vim.fn.getline(2) == 'TWO'")
    assert room.states() == ["accepted", "open", "open", "open"]


def test_a_text_that_undo_restores_is_no_accepted_hunk(room: Room) -> None:
    path = room.open("a.txt", ["one", "TWO", *OLD[2:]])
    room.keys(":2s/TWO/two/<CR>")
    room.offer(path, OLD, NEW)
    room.keys("u")
    assert room.lines()[1] == "TWO"
    assert room.states() == ["conflict", "open", "open", "open"]
    room.keys("<C-r>")
    assert room.states() == ["open"] * 4


def test_a_hidden_alternative_is_not_accepted_with_the_shown_one(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.propose(proposed([file(path, OLD, [*OLD[:1], "TWO", *OLD[2:]])], "t2"), "t1")
    room.hunks("accept_file")
    assert room.states() == ["conflict", "open", "open", "open", "accepted"]
    assert [told["turn"] for told in room.decided() if told["accepted"]] == ["t2"]


@pytest.mark.parametrize("keys", [":%!cat<CR>", ":call setline(1, getline(1, '$'))<CR>", "u"])
def test_hunks_stay_open_if_a_formatter_replaces_all_lines(room: Room, keys: str) -> None:
    old = [f"line {i}" for i in range(30)]
    new = [*old[:5], "FIVE", *old[6:20], "twenty", *old[20:]]
    path = room.open("a.txt", old)
    room.offer(path, old, new)
    write = "vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)"
    room.nvim.lua(write, ["top", *old[:12], *old[13:]])
    assert room.states() == ["open"] * 2
    room.keys(keys)
    assert room.states() == ["open"] * 2
    room.hunks("accept_file")
    top, without = (["top"], 1) if keys != "u" else ([], 0)
    assert room.lines() == [*top, *new[:12], *new[12 + without :]]
