"""The keys of hunks: the user's mappings come first, operators, accept and go on, hints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change, file
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

LINES = ["a = 1", "b = 1", "", "c = 1", "d = 1", "e = 1", "", "f = 1"]
FILES = {"a.py": "\n".join(LINES) + "\n", "b.py": "g = 1\n"}
CHANGES = [
    change(0, ["a = 1"], ["A = 1"]),
    change(3, ["c = 1", "d = 1"], ["C = 1", "D = 1"]),
    change(7, ["f = 1"], ["F = 1"]),
]
TWO = [("a.txt", "a"), ("b.txt", "b")]
OWN = "<Cmd>let g:own = get(g:, 'own', 0) + 1<CR>"


@pytest.fixture
def at(editor: Start, host: FakeHost) -> Callable[..., Desk]:
    """Return what opens a file with hunks: `at(init=…, **mappings)`."""

    def begin(init: str = "", **keymap: str | bool) -> Desk:
        nvim = editor(FILES, init=reach.NOTES + init, config={"edit": {"keymap": keymap}})
        desk = Desk(nvim, host)
        desk.edited(desk.ask(), CHANGES)
        return desk

    return begin


def own(desk: Desk) -> int:
    """Return how often the user's own mapping was used."""
    count: int = desk.nvim.lua("return vim.g.own or 0")
    return count


def accepted(desk: Desk) -> str:
    """Return the letters that were accepted."""
    return "".join(line[0] for line in desk.lines() if line[:1].isupper())


def line(desk: Desk) -> int:
    """Return the line of the cursor."""
    number: int = desk.nvim.lua("return vim.fn.line('.')")
    return number


def is_hinted(desk: Desk, words: str) -> bool:
    """Return whether the note at the cursor has these words."""
    return words in desk.drawn("at")


@pytest.mark.parametrize("where", ["", ", { buffer = 0 }"])
def test_a_mapping_of_the_user_comes_before_a_default_key(
    editor: Start, host: FakeHost, where: str
) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.lua(f"vim.keymap.set('n', 'ghh', {OWN!r}{where})")
    nvim.lua(f"vim.keymap.set('n', ']h', {OWN!r}{where})")
    desk = Desk(nvim, host)
    desk.edited(desk.ask(), CHANGES)
    nvim.press("1Gghh")
    assert (accepted(desk), own(desk)) == ("", 1)
    assert is_hinted(desk, ":LCursor hunk accept  gHH reject  ghd compare")  # no ]h
    nvim.press("]h")
    assert own(desk) == 2
    nvim.press("v]hd")  # it is the user's in Normal mode only
    assert desk.lines()[0] == " = 1"


def test_a_key_that_is_set_is_mapped_in_any_case(at: Callable[..., Desk]) -> None:
    desk = at(f"vim.keymap.set('n', 'ghh', {OWN!r})\n", accept="ghh")
    desk.nvim.press("1Gghh")
    assert (accepted(desk), own(desk)) == ("A", 0)
    desk.nvim.command("LCursor hunk accept all")
    desk.nvim.press("ghh")
    assert (accepted(desk), own(desk)) == ("ACDF", 1)


def test_a_key_may_be_set_for_one_buffer(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES + f"vim.keymap.set('n', 'ghh', {OWN!r})\n")
    nvim.lua("vim.b.lcursor = { edit = { keymap = { accept = 'ghh' } } }")
    desk = Desk(nvim, host)
    desk.edited(desk.ask(), CHANGES)
    nvim.press("1Gghh")
    assert (accepted(desk), own(desk)) == ("A", 0)


def test_false_disables_a_key(at: Callable[..., Desk]) -> None:
    desk = at(accept=False, next="<F3>")
    for mode, key, is_mapped in [("n", "ghh", False), ("n", "]h", False), ("x", "<F3>", True)]:
        found = desk.nvim.lua("local l, m = ... return vim.fn.maparg(l, m) ~= ''", key, mode)
        assert found == is_mapped, key
    desk.nvim.press("1G<F3>")
    assert line(desk) == 4
    assert is_hinted(desk, ":LCursor hunk accept  gHH reject  <F3> next")


def test_hints_name_the_keys_of_the_user(at: Callable[..., Desk]) -> None:
    desk = at("vim.keymap.set('n', '+', '<Plug>(lcursor-hunk-accept)')\n", reject="<F4>")
    desk.nvim.press("1G")
    assert is_hinted(desk, " + accept  <F4> reject")
    desk.nvim.press("+")
    assert accepted(desk) == "A"


@pytest.mark.parametrize(
    ("keys", "letters"),
    [
        ("1Gghip", "A"),
        ("4Gghip", "CD"),
        ("1GghG", "ACDF"),
        ("4Ggh_", "C"),
        ("4G2gh_", "CD"),
        ("4Ggh2_j.", "CD"),
        ("4Ggh_j.", "CD"),
        ("1Ggh}", "A"),
        ("4Gghih", "CD"),
        ("4GVgh", "C"),
        ("4GVghj.", "CD"),
        ("1GVGgh", "ACDF"),
        ("5Gghh", "CD"),
        ("1Gghh4G.", "ACD"),
        ("2Gghip", "A"),
    ],
)
def test_accepting_over_a_motion(at: Callable[..., Desk], keys: str, letters: str) -> None:
    desk = at()
    desk.nvim.press(keys)
    assert accepted(desk) == letters
    desk.nvim.press(f"{len(letters)}u")
    assert accepted(desk) == ""


@pytest.mark.parametrize(
    ("keys", "left"), [("4GgHip", "AF"), ("4GVgH", "ADF"), ("1GgHH", "CDF"), ("1GgHG", "")]
)
def test_rejecting_over_a_motion(at: Callable[..., Desk], keys: str, left: str) -> None:
    desk = at()
    desk.nvim.press(keys)
    assert accepted(desk) == ""
    desk.nvim.command("LCursor hunk accept all")
    assert accepted(desk) == left


def test_the_plug_maps_of_operators(editor: Start, host: FakeHost) -> None:
    init = "vim.keymap.set({ 'n', 'x' }, '<F2>', '<Plug>(lcursor-hunk-accept-operator)')\n"
    desk = Desk(editor(FILES, init=reach.NOTES + init), host)
    desk.edited(desk.ask(), CHANGES)
    assert desk.nvim.lua("return vim.fn.maparg('gh', 'n')") == ""
    desk.nvim.press("4G<F2>ipGV<F2>")
    assert accepted(desk) == "CDF"


def test_accepting_and_going_on(editor: Start, host: FakeHost) -> None:
    desk = Desk(editor(FILES, init=reach.NOTES), host)
    asked = desk.ask()
    tick = desk.nvim.lua("return vim.b.changedtick")
    here = file(desk.project / "a.py", CHANGES, tick=tick)
    other = file(desk.project / "b.py", [change(0, ["g = 1"], ["G = 1"])])
    desk.propose(asked["id"], [here, other])
    desk.nvim.press("1Gghn")
    assert (accepted(desk), line(desk)) == ("A", 4)
    desk.nvim.press(".")
    assert (accepted(desk), line(desk)) == ("ACD", 8)
    desk.nvim.press("ghn")
    assert desk.lines() == ["g = 1"]
    desk.nvim.press("ghn")
    assert desk.lines() == ["G = 1"]
    assert reach.told(desk.nvim)[-1] == "lcursor: 4 hunks accepted. Undo: :LCursor edit undo"


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        ("1Gghh4Gghh", []),
        ("1GghG", ["3 hunks accepted. Undo: :LCursor edit undo"]),
        ("1GghGu", ["3 hunks accepted. Undo: :LCursor edit undo"]),
        ("1GgHG", ["3 hunks rejected"]),
        ("1GghhgHG", ["1 accepted, 2 rejected. Undo: :LCursor edit undo"]),
        ("1GgHH4Gghnghn", ["2 accepted, 1 rejected. Undo: :LCursor edit undo"]),
    ],
)
def test_the_end_of_an_edit_is_reported(
    at: Callable[..., Desk], keys: str, messages: list[str]
) -> None:
    desk = at()
    before = len(reach.told(desk.nvim))
    desk.nvim.press(keys)
    assert reach.told(desk.nvim)[before:] == ["lcursor: " + text for text in messages]


@pytest.mark.parametrize(("keys", "letters", "at_line"), [("2ghn", "ACD", 8), ("9ghn", "ACDF", 8)])
def test_accepting_several(at: Callable[..., Desk], keys: str, letters: str, at_line: int) -> None:
    desk = at()
    desk.nvim.press("1G" + keys)
    assert (accepted(desk), line(desk)) == (letters, at_line)


def test_going_on_stops_at_a_conflict(at: Callable[..., Desk]) -> None:
    desk = at()
    desk.nvim.press("4GA + 1<Esc>")
    desk.nvim.press("1G3ghn")
    assert (accepted(desk), line(desk)) == ("A", 4)
    assert "hunk is stale" in reach.told(desk.nvim)[-1]


def test_first_and_last(at: Callable[..., Desk]) -> None:
    desk = at()
    seen: list[Any] = []
    for keys in ("4G]H", "[H"):
        desk.nvim.press(keys)
        seen.append(line(desk))
    assert seen == [8, 1]


@pytest.fixture
def two_files(editor: Start, host: FakeHost) -> Desk:
    """Open hunks in lines 2 and 5 of a file, and one in another file."""
    long = {name: "".join(f"{letter}{n}\n" for n in range(1, 13)) for name, letter in TWO}
    desk = Desk(editor(long, init=reach.NOTES), host)
    asked = desk.ask()
    tick = desk.nvim.lua("return vim.b.changedtick")
    here = [change(1, ["a2"], ["A2"]), change(4, ["a5"], ["A5"])]
    other = file(desk.project / "b.txt", [change(10, ["b11"], ["B11"])])
    desk.propose(asked["id"], [file(desk.project / "a.txt", here, tick=tick), other])
    return desk


@pytest.mark.parametrize(
    "motion", ["5G{}]h", "5G2{}]h", "3G{}2]h", "2G{}[h", "4G{}3[h", "8G{}ih", "1G{}ih"]
)
def test_a_motion_without_a_target_cancels_the_operator(two_files: Desk, motion: str) -> None:
    before = two_files.lines()
    for operator in ("d", "c", ">", "g~", "gh", "gH", "y", "="):
        keys = motion.format(operator)
        two_files.nvim.press(keys)
        assert two_files.nvim.lua("return vim.fn.expand('%:t')") == "a.txt", keys
        assert two_files.nvim.lua("return vim.api.nvim_get_mode().mode") == "n", keys
        assert two_files.lines() == before, keys
        assert str(line(two_files)) == keys[0]
        assert two_files.nvim.lua("return require('lcursor.edit.proposals').count()") == 3, keys
    two_files.nvim.press("1Gd]h")  # the next one has a target
    assert two_files.lines() == before[1:]
    two_files.nvim.press("7G.")
    assert two_files.lines() == before[1:]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("1Gd]h", "a2a3a4a5a6"),
        ("1Gd2]h", "a5a6"),
        ("1G2d]h", "a5a6"),
        ("6Gd[h", "a1a2a3a4a6"),
        ("1Gd]H", "a5a6"),
        ("6Gd[H", "a1a6"),
        ("5Gv]hd", "a1a2a3a45a6"),
        ("5G9gh]h", "a1a2a3a4a5a6"),
    ],
)
def test_motions_of_hunks_stay_in_the_buffer(two_files: Desk, keys: str, text: str) -> None:
    two_files.nvim.press(keys)
    assert two_files.nvim.lua("return vim.fn.expand('%:t')") == "a.txt"
    assert "".join(two_files.lines()).startswith(text)


def test_going_to_the_next_hunk_opens_other_files(two_files: Desk) -> None:
    two_files.nvim.press("5G]h")
    assert two_files.nvim.lua("return vim.fn.expand('%:t')") == "b.txt"
    assert line(two_files) == 11


def test_the_lua_api_of_hunks(two_files: Desk) -> None:
    nvim, call = two_files.nvim, "return require('lcursor').hunks."
    found = nvim.lua(call + "list()")
    names = ["path", "first", "last", "old", "new", "is_conflict", "title"]
    path = str(two_files.project / "a.txt")
    assert [found[0][name] for name in names] == [path, 2, 2, ["a2"], ["A2"], False, "do it"]
    assert [(Path(one["path"]).name, one["first"], one.get("buf") is None) for one in found] == [
        ("a.txt", 2, False),
        ("a.txt", 5, False),
        ("b.txt", 11, True),
    ]
    assert [one["edit"] for one in found] == [found[0]["edit"]] * 3
    assert [one["first"] for one in nvim.lua(call + "list(0)")] == [2, 5]
    nvim.press("1G")
    assert nvim.lua(call + "accept()") == 0
    nvim.lua(call + "next()")
    assert (line(two_files), nvim.lua(call + "reject()")) == (2, 1)
    nvim.lua(call + "prev()")
    assert nvim.lua("return vim.fn.expand('%:t')") == "b.txt"
    assert nvim.lua(call + "list(0)")[0]["first"] == 11
    assert nvim.lua(call + "accept({ buf = ..., range = { 1, 4 } })", found[0]["buf"]) == 0
    assert nvim.lua(call + "accept({ buf = ..., range = { 5, 5 } })", found[0]["buf"]) == 1
    assert nvim.lua(call + "accept({ scope = 'file' })") == 1
    assert nvim.lua(call + "list()") == []
    assert two_files.lines()[10] == "B11"
    nvim.press("u")
    assert nvim.lua(call + "reject({ scope = 'edit' })") == 1


def test_the_next_hunk_opens_next_to_a_window_with_a_fixed_buffer(two_files: Desk) -> None:
    two_files.nvim.command("setlocal winfixbuf")
    two_files.nvim.press("5G]h")
    assert two_files.nvim.lua("return vim.fn.expand('%:t')") == "b.txt"
    assert (line(two_files), two_files.nvim.lua("return vim.fn.winnr('$')")) == (11, 2)
    two_files.nvim.command("only | set nohidden | call setline(1, 'changed')")
    two_files.nvim.press("Gghn")
    assert two_files.nvim.lua("return vim.fn.expand('%:t')") == "a.txt"
    assert two_files.nvim.lua("return vim.fn.winnr('$')") == 2
    assert reach.told(two_files.nvim)[1:] == []


def test_hunks_have_their_colors_before_an_edit_ran(editor: Start, host: FakeHost) -> None:
    """An edit that is resumed after a restart is shown without a run."""
    nvim = editor(FILES)
    nvim.lua("require('lcursor.edit').start()")
    assert nvim.lua("return vim.fn.hlexists('LCursorEditAdded')") == 1
