"""Open hunks, taken and refused in a real Neovim: nothing goes in the wrong place or for good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.edits import NEW, OLD, Room, changes, file, proposed


@pytest.fixture(scope="module")
def shared(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """One Neovim for all of this file."""
    with Room(neovim, tmp_path_factory.mktemp("home")) as room:
        yield room


@pytest.fixture
def room(shared: Room) -> Room:
    """That Neovim, without turns and buffers."""
    shared.clear()
    return shared


def test_all_of_a_file_is_one_undo_step(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    assert room.states() == ["open"] * 4
    assert room.lines() == OLD
    room.hunks("accept_file")
    assert room.lines() == NEW
    [told] = room.decided()
    assert [hunk["new"] for hunk in told["accepted"]] == [["TWO"], ["4a", "4b"], [], ["TEN", "11"]]
    assert [hunk["row"] for hunk in told["accepted"]] == [1, 4, 8, 10]
    assert told["accepted"][1]["above"] == ["TWO", "three", "four"]
    assert told["accepted"][1]["below"] == ["five", "six", "eight"]
    assert (told["open"], told["rejected"], told["is_undone"]) == (0, [], False)
    room.keys("u")
    assert room.lines() == OLD
    assert room.states() == ["open"] * 4
    [told] = room.decided()
    assert (told["is_undone"], len(told["accepted"]), told["open"]) == (True, 4, 4)
    room.keys("<C-r>")
    assert room.lines() == NEW
    assert room.states() == ["accepted"] * 4
    [told] = room.decided()
    assert (told["is_undone"], len(told["accepted"]), told["open"]) == (False, 4, 0)


def test_one_by_one(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.cursor(0)
    room.hunks("next", 1)
    assert room.row() == 1
    room.keys(":lua require('lcursor.edit.hunks').accept()<CR>")
    assert room.lines()[:3] == ["one", "TWO", "three"]
    room.hunks("next", 1)
    assert room.row() == 3  # the new lines are below it
    room.hunks("reject")
    room.hunks("next", 1)
    assert room.row() == 6
    room.keys(".")
    assert room.states() == ["accepted", "rejected", "rejected", "open"]
    room.hunks("next", -1)
    assert room.row() == 9
    room.hunks("accept")
    assert room.lines() == ["one", "TWO", *OLD[2:9], "TEN", "11"]
    assert [told["open"] for told in room.decided()] == [3, 2, 1, 0]
    room.keys("u")
    assert room.states()[3] == "open"
    assert room.lines() == ["one", "TWO", *OLD[2:]]


def test_part_of_a_hunk(room: Room) -> None:
    old = ["a = 1", "b = 2", "c = 3", "d = 4", "e = 5"]
    new = ["A = 1", "B = 2", "C = 3", "D = 4", "E = 5"]
    path = room.open("a.txt", old)
    room.offer(path, old, new)
    assert room.states() == ["open"]
    room.hunks("accept", 1, 3)
    assert room.lines() == ["a = 1", "B = 2", "C = 3", "d = 4", "e = 5"]
    assert room.states() == ["open", "accepted", "open"]
    room.hunks("reject", 4, 5)
    assert room.states() == ["open", "accepted", "open", "rejected"]
    room.hunks("accept_file")
    assert room.lines() == ["A = 1", "B = 2", "C = 3", "D = 4", "e = 5"]
    told = room.decided()
    assert [len(one["accepted"]) for one in told] == [1, 0, 2]
    assert told[-1]["open"] == 0


def test_part_by_selection_and_dot(room: Room) -> None:
    old = [f"{name} = 1" for name in "abcdef"]
    path = room.open("a.txt", old)
    room.offer(path, old, [line.upper() for line in old])
    room.nvim.lua("vim.keymap.set('x', 'Q', function() require('lcursor.edit.hunks').accept() end)")
    room.cursor(0)
    room.keys("VjQ")
    assert room.lines() == ["A = 1", "B = 1", *old[2:]]
    room.cursor(3)
    room.keys(".")
    assert room.lines() == ["A = 1", "B = 1", "c = 1", "D = 1", "E = 1", "f = 1"]


def test_operator_and_object(room: Room) -> None:
    old = ["a", "", "b", "b", "", "c"]
    path = room.open("a.txt", old)
    room.offer(path, old, ["A", "", "B1", "B2", "B3", "", "C"])
    room.nvim.lua(
        """
        local hunks = require("lcursor.edit.hunks")
        vim.keymap.set("n", "Q", function()
          vim.go.operatorfunc = "v:lua.require'lcursor.edit.hunks'.op_accept_rows"
          return "g@"
        end, { expr = true })
        vim.keymap.set({ "o", "x" }, "ih", hunks.select)
        """
    )
    room.cursor(3)
    room.keys("yih")
    assert room.nvim.lua("return vim.fn.getreg('0')") == "b\nb\n"
    room.cursor(2)
    room.keys("QG")
    assert room.lines() == ["a", "", "B1", "B2", "B3", "", "C"]
    room.keys("u")
    assert room.lines() == old


def test_typing_next_to_a_hunk_moves_it(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys("ggOabove<Esc>")
    room.keys("/five<CR>Obetween<Esc>")
    room.keys("/nine<CR>A<CR>behind<Esc>")
    assert room.states() == ["open"] * 4
    room.hunks("accept_file")
    assert room.lines() == [
        "above",
        *NEW[:4],
        "4a",
        "4b",
        "between",
        *NEW[6:10],
        "behind",
        *NEW[10:],
    ]


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ("2GAx<Esc>", ["conflict", "open", "open", "open"]),
        ("2Gdd", ["conflict", "open", "open", "open"]),
        ("1GJ", ["conflict", "open", "open", "open"]),
        ("2GJ", ["conflict", "open", "open", "open"]),
        ("4GAx<Esc>5GAx<Esc>", ["open", "conflict", "open", "open"]),
        ("4GAx<Esc>", ["open"] * 4),
        ("3G5dd", ["open", "conflict", "conflict", "open"]),
        (":%s/e/E/<CR>", ["open", "conflict", "conflict", "conflict"]),
        (":g/t/m0<CR>", ["conflict", "open", "open", "conflict"]),
        ("ggdG", ["conflict"] * 4),
        (":%!tac<CR>", ["conflict"] * 4),
        (":%!cat<CR>", ["open"] * 4),
    ],
)
def test_what_is_touched_is_in_conflict_until_it_is_back(
    room: Room, keys: str, left: list[str]
) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys(keys)
    changed = room.lines()
    assert room.states() == left
    room.notes()
    room.hunks("accept_file")
    after = room.lines()
    for line in changed:  # nothing that is there now goes, but what a hunk takes
        assert line in after or line in OLD
    if "conflict" in left:
        assert "conflict" in room.notes()[-1] or left == ["conflict"] * 4
    while room.lines() != OLD:
        before = room.lines()
        room.keys("u")
        assert room.lines() != before
    assert room.states() == ["open"] * 4
    room.hunks("accept_file")
    assert room.lines() == NEW


def test_typing_inside_is_kept(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys("2GA and mine<Esc>")
    room.cursor(1)
    room.hunks("accept")
    assert room.lines()[1] == "two and mine"
    assert "hunk is stale" in room.notes()[-1]


def test_marks_stay(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys("5Gma10Gmb")
    room.hunks("accept_file")
    assert room.nvim.lua('return vim.fn.line("\'a")') == 7
    assert room.nvim.lua('return vim.fn.line("\'b")') == 11


def test_a_file_that_is_not_loaded_waits(room: Room) -> None:
    path = room.write("later.txt", OLD)
    room.offer(path, OLD, NEW)
    assert room.states() == ["waiting"] * 4
    assert room.nvim.lua("return require('lcursor.edit.proposals').count()") == 4
    room.hunks("next", 1)
    assert room.nvim.lua("return vim.fn.expand('%:t')") == "later.txt"
    assert room.states() == ["open"] * 4
    assert room.row() == 1
    room.hunks("accept_file")
    assert room.lines() == NEW


def test_a_file_that_is_another_now_is_in_conflict(room: Room) -> None:
    path = room.write("other.txt", ["zero", *OLD])
    room.offer(path, OLD, NEW)
    room.nvim.command(f"edit {path}")
    assert room.states() == ["conflict"] * 4
    room.hunks("accept_file")
    assert room.lines() == ["zero", *OLD]


def test_a_buffer_that_went_on_since_it_was_asked(room: Room) -> None:
    path = room.open("a.txt", OLD)
    tick = room.nvim.lua(
        "_G.sent = require('lcursor.edit.positions').snapshot(vim.api.nvim_get_current_buf())"
        " return _G.sent.tick"
    )
    room.keys("ggOfour<CR>five<Esc>4GAx<Esc>")
    room.offer(path, OLD, NEW, tick=tick)
    assert room.states() == ["conflict", "open", "open", "open"]
    room.hunks("accept_file")
    assert room.lines() == ["four", "five", "one", "twox", *NEW[2:]]


def test_unsaved_text_and_a_base_on_disk(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.keys("GAx<Esc>ggOabove<Esc>")
    room.offer(path, OLD, NEW)
    assert room.states() == ["open", "open", "open", "conflict"]
    room.hunks("accept_file")
    assert room.lines() == ["above", *NEW[:10], "tenx"]


def test_read_again_from_disk(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.hunks("accept", 1, 2)
    assert room.states() == ["accepted", "open", "open", "open"]
    room.nvim.command("edit!")
    assert room.states() == ["open"] * 4
    assert room.decided()[-1]["is_undone"]
    room.hunks("accept", 1, 2)
    room.nvim.command("write")
    room.nvim.command("edit")
    assert room.states() == ["accepted", "open", "open", "open"]
    room.hunks("accept_file")
    assert room.lines() == NEW
    room.nvim.command("write | bdelete")
    path.write_text("\n".join(OLD) + "\n")
    room.nvim.command(f"edit {path}")
    assert room.lines() == OLD


def test_a_buffer_that_is_gone_waits_again(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.command("bwipeout!")
    assert room.states() == ["waiting"] * 4
    room.nvim.command(f"edit {path}")
    assert room.states() == ["open"] * 4


@pytest.mark.parametrize(
    ("content", "new"),
    [
        (b"", ["x", "y"]),
        (b"one", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "2", "three"]),
        (b"\xef\xbb\xbfone\n", ["ONE"]),
        (b"\tone\n\t\ttwo\n", ["\tone", "\t\tthree", "\ttwo"]),
        ("größe = 1\nnaïve\n".encode(), ["größte = 1", "naiv"]),
    ],
)
def test_files_as_they_are(room: Room, content: bytes, new: list[str]) -> None:
    path = room.home / "odd.txt"
    path.write_bytes(content)
    room.nvim.command(f"edit! {path}")
    old = room.lines()
    room.offer(path, [] if content == b"" else old, new)
    assert room.states() == ["open"] * len(changes([] if content == b"" else old, new))
    room.hunks("accept_file")
    assert room.lines() == new
    room.nvim.command("setlocal nofixendofline | write")
    ending = b"\r\n" if b"\r\n" in content else b"\n"
    text = ending.join(line.encode() for line in new)
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    end = b"" if content and not content.endswith(b"\n") else ending
    assert path.read_bytes() == mark + text + end
    room.keys("u")
    assert room.lines() == old


def test_a_file_that_is_created(room: Room) -> None:
    path = room.home / "new.txt"
    path.unlink(missing_ok=True)
    room.propose(proposed([file(path, [], ["a", "b"], base="", kind="create")]))
    assert room.accept_all() == ([str(path)], [])
    room.nvim.command(f"edit {path}")
    assert room.states() == ["open"]
    assert room.accept_all() == ([], [])
    assert room.lines() == ["a", "b"]


def test_a_turn_over_files(room: Room) -> None:
    here = room.open("here.txt", OLD)
    away = room.write("away.txt", OLD)
    gone = room.write("gone.txt", OLD)
    room.propose(
        proposed(
            [
                file(here, OLD, NEW),
                file(away, OLD, NEW, is_outside=True),
                file(gone, OLD, [], kind="delete"),
            ]
        )
    )
    paths, problems = room.accept_all()
    assert room.lines() == NEW
    assert (paths, problems) == ([str(away), str(gone)], [])
    is_decided = "local s = require('lcursor.edit.proposals') return s.is_decided(s.get('t1'))"
    assert not room.nvim.lua(is_decided)
    room.nvim.lua("require('lcursor.edit.proposals').written('t1', ...)", paths)
    assert room.nvim.lua(is_decided)


def test_a_turn_that_is_rejected(room: Room) -> None:
    here = room.open("here.txt", OLD)
    away = room.write("away.txt", OLD)
    room.propose(proposed([file(here, OLD, NEW), file(away, OLD, NEW)]))
    room.nvim.lua(
        "require('lcursor.edit.edits').reject(require('lcursor.edit.proposals').get('t1'))"
    )
    assert room.lines() == OLD
    assert room.states() == ["rejected"] * 8
    assert [(len(told["rejected"]), told["open"]) for told in room.decided()] == [(4, 0), (4, 0)]


def test_a_conflict_in_a_turn_is_left_and_said(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.keys("2GAx<Esc>")
    _, problems = room.accept_all()
    assert room.lines() == ["one", "twox", *NEW[2:]]
    assert "conflict" in problems[0]


def test_alternatives(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    other = ["one", "zwei", *OLD[2:]]
    room.propose(proposed([file(path, OLD, other)], "t2", alternative=2), "t1")
    count = "return require('lcursor.edit.proposals').count()"
    assert room.nvim.lua(count) == 1
    cycle = """
        local proposals = require("lcursor.edit.proposals")
        require("lcursor.edit.edits").cycle(proposals.get(...), select(2, ...))
    """
    room.nvim.lua(cycle, "t2", -1)
    assert room.nvim.lua(count) == 4
    room.nvim.lua(cycle, "t1", 1)
    room.hunks("accept_file")
    assert room.lines() == other
    closed = [each for each in room.decided() if each["turn"] == "t1"]
    assert [(each["open"], each["accepted"]) for each in closed] == [(0, [])]  # nobody waits for it


def test_a_buffer_that_must_not_be_changed(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.command("setlocal nomodifiable")
    room.hunks("accept_file")
    assert room.lines() == OLD
    assert "modifiable" in room.notes()[-1]
    assert room.states() == ["open"] * 4
    assert room.decided() == []


def test_next_goes_through_all_files(room: Room) -> None:
    one = room.open("one.txt", OLD)
    two = room.write("two.txt", OLD)
    room.propose(proposed([file(one, OLD, NEW), file(two, OLD, NEW)]))
    seen = []
    for _ in range(9):
        room.hunks("next", 1)
        seen.append((room.nvim.lua("return vim.fn.expand('%:t')"), room.row()))
    rows = [1, 3, 6, 9]
    assert seen[:8] == [(name, row) for name in ("one.txt", "two.txt") for row in rows]
    assert seen[8] == seen[0]
    room.hunks("next", -1)
    assert room.nvim.lua("return vim.fn.expand('%')") == "two.txt"  # as short as can be


def test_accepting_in_insert_mode_is_its_own_step(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.nvim.lua(
        "vim.keymap.set('i', '<C-q>', '<Cmd>lua require(\"lcursor.edit.hunks\").accept_file()<CR>')"
    )
    room.keys("5GAtyped<C-q>more<Esc>")
    assert "fivetypedmore" in "".join(room.lines())
    assert "TWO" in room.lines()
    room.keys("u")
    assert "TWO" in room.lines()
    assert "more" not in "".join(room.lines())
    room.keys("u")
    assert "TWO" not in room.lines()
    assert "fivetyped" in room.lines()


def test_the_list_of_all(room: Room) -> None:
    one = room.open("one.txt", OLD)
    two = room.write("two.txt", OLD)
    checks = [{"name": "parses", "is_ok": False, "text": "an error"}]
    room.propose(proposed([file(one, OLD, NEW), file(two, OLD, NEW, checks=checks)]))
    room.nvim.lua("require('lcursor.edit.quickfix').open()")
    items = "return vim.tbl_map(function(i) return i.lnum end, vim.fn.getqflist())"
    assert room.nvim.lua(items) == [2, 4, 7, 10] * 2
    texts = room.nvim.lua("return vim.tbl_map(function(i) return i.text end, vim.fn.getqflist())")
    assert texts[0] == "+1 -1 | + TWO | do it"
    assert "[✗ parses]" in texts[4]
    title = "return vim.fn.getqflist({ title = 0 }).title"
    assert room.nvim.lua(title) == "lcursor: 8 open hunks"
    room.nvim.command("cclose")
    room.hunks("accept_file")
    room.nvim.wait_lua("return #vim.fn.getqflist() == 4")
    room.nvim.command("silent cfirst")  # each entry that is gone to says so: two are a prompt
    assert room.nvim.lua("return vim.fn.expand('%')") == "two.txt"  # as short as can be
    room.nvim.command("silent 1,3cdo lua require('lcursor.edit.hunks').accept()")
    room.nvim.wait_lua(f"{title} == 'lcursor: 1 open hunk'")
    room.nvim.command("silent cdo lua require('lcursor.edit.hunks').accept()")
    assert room.lines() == NEW


def test_direct_changes(room: Room) -> None:
    path = room.open("a.txt", OLD)
    tick = room.nvim.lua("return vim.api.nvim_buf_get_changedtick(0)")
    apply = "return require('lcursor.edit.apply').change_files(...)"
    assert room.nvim.lua(apply, [file(path, OLD, NEW, tick=tick)]) == []
    assert room.lines() == NEW
    [problem] = room.nvim.lua(apply, [file(path, OLD, NEW, tick=tick)])
    assert "changed meanwhile" in problem
    room.keys("u")
    assert room.lines() == OLD
    assert room.nvim.lua(apply, [file(room.home / "none.txt", OLD, NEW)]) == []


def test_the_new_lines_can_be_changed_first(room: Room) -> None:
    path = room.open("a.txt", OLD)
    room.offer(path, OLD, NEW)
    room.cursor(3)
    last = room.nvim.lua("return vim.api.nvim_create_buf(false, true)")
    for number in [*range(1, 9), last + 10]:  # as a restored session has them
        room.nvim.lua("vim.fn.bufload(vim.fn.bufadd('lcursor://change/' .. ...))", number)
    room.hunks("edit")
    assert room.lines() == ["4a", "4b"]
    room.keys("Omine<Esc>")
    room.nvim.command("write | close")
    room.hunks("accept")
    assert room.lines()[:7] == ["one", "two", "three", "four", "mine", "4a", "4b"]
    [told] = room.decided()
    assert told["accepted"][0]["new"] == ["mine", "4a", "4b"]
    room.keys("u")
    assert room.lines() == OLD
    assert room.states() == ["open"] * 4


def test_all_lines_are_taken_and_others_put(room: Room) -> None:
    path = room.open("a.txt", ["a"])
    parts = [
        {"first_row": 0, "last_row": 0, "old": [], "new": ["b"]},
        {"first_row": 0, "last_row": 1, "old": ["a"], "new": []},
    ]
    room.propose(proposed([file(path, ["a"], ["b"], changes=parts)]))
    room.hunks("accept_file")
    assert room.lines() == ["b"]
    room.keys("u")
    assert room.lines() == ["a"]
    assert room.states() == ["open"] * 2
