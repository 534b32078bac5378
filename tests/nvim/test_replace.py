"""A suggestion that says what is right of the cursor as well and goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]

CODE = {"a.py": "def f()\nx = 1\n"}
SAID = "a, b) -> int:"


def offer(nvim: Pilot, text: str = SAID, replaces: int = 1) -> dict[str, Any]:
    """Go in front of the bracket, and let the host say something that takes its place."""
    nvim.command("call cursor(1, 7)")
    request = nvim.insert("i")
    nvim.host.done(request, text, replaces=replaces)
    nvim.settle()
    return request


def cursor(nvim: Pilot) -> list[int]:
    """Return the cursor's row, from 1, and column."""
    place: list[int] = nvim.lua("return vim.api.nvim_win_get_cursor(0)")
    return place


def test_it_is_drawn_around_what_is_there(editor: Start, host: FakeHost, golden: Golden) -> None:
    nvim = editor(CODE, columns=60, lines=12)
    request = offer(nvim)
    assert request["single_line"] is True
    assert nvim.lines()[0] == "def f()"
    golden("replaces-a-bracket", nvim.grid())


def test_accepting_it_replaces_what_is_there(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE, columns=60, lines=12)
    offer(nvim)
    seen = nvim.screen.rows()[0]
    nvim.press("<Tab>")
    assert nvim.lines() == ["def f(a, b) -> int:", "x = 1"]
    assert nvim.screen.rows()[0] == seen
    assert cursor(nvim) == [1, len("def f(a, b) -> int:")]
    assert host.requests[-1]["prefix"] == "def f(a, b) -> int:"
    assert (len(host.requests), host.requests[-1]["suffix"]) == (2, "\nx = 1\n")


def test_one_undo_takes_it_back(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    offer(nvim)
    nvim.press("<Tab>")
    nvim.press("  # x<Esc>u")
    assert nvim.lines()[0] == "def f(a, b) -> int:"
    nvim.press("u")
    assert nvim.lines()[0] == "def f()"
    nvim.press("2<C-r>")
    assert nvim.lines()[0] == "def f(a, b) -> int:  # x"


def test_it_streams_up_to_what_is_there(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    nvim.command("call cursor(1, 7)")
    request = nvim.insert("i")
    host.partial(request, "a, b")
    assert nvim.wait_ghost() == "a, b"
    host.done(request, SAID, replaces=1)
    nvim.settle()
    assert nvim.screen.rows()[0] == "def f(a, b) -> int:"


def test_an_own_bracket_is_not_taken_for_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    nvim.command("call cursor(1, 7)")
    request = nvim.insert("i")
    host.partial(request, "a=g(1)")
    nvim.wait_ghost()
    host.done(request, "a=g(1), b) -> int:", replaces=1)
    nvim.settle()
    for _ in range(7):
        nvim.press("<C-Right>")
    assert nvim.lines()[0] == "def f(a=g(1), b)"
    assert nvim.screen.rows()[0] == "def f(a=g(1), b) -> int:"


def test_word_by_word_and_then_the_rest(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    offer(nvim)
    states = []
    for _ in range(4):
        nvim.press("<C-Right>")
        states.append(nvim.lines()[0])
    assert states == ["def f(a)", "def f(a,)", "def f(a, b)", "def f(a, b) -> int:"]
    assert cursor(nvim) == [1, len(states[-1])]


def test_the_line_is_all_of_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    offer(nvim)
    nvim.press("<S-Tab>")
    assert nvim.lines()[0] == "def f(a, b) -> int:"


def test_typing_through_the_first_part(editor: Start, host: FakeHost) -> None:
    nvim = editor(CODE)
    offer(nvim)
    nvim.press("a, ")
    assert nvim.screen.rows()[0] == "def f(a, b) -> int:"
    nvim.press("<Tab>")
    assert nvim.lines()[0] == "def f(a, b) -> int:"


@pytest.mark.parametrize("keys", ["a, b)", "a, b<Del>", "<Esc>"])
def test_it_goes_when_the_text_around_changes(editor: Start, host: FakeHost, keys: str) -> None:
    nvim = editor(CODE)
    offer(nvim)
    nvim.press(keys)
    assert nvim.shows() == ""
    marks = "return vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {})"
    assert nvim.lua(marks) == []


@pytest.mark.parametrize(("text", "replaces"), [(SAID, 2), ("a, b -> int:", 1)])
def test_what_is_about_another_text_is_not_shown(
    editor: Start, host: FakeHost, text: str, replaces: int
) -> None:
    nvim = editor(CODE)
    offer(nvim, text, replaces)
    assert nvim.shows() == ""


def test_bytes_count_and_not_letters(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        {"a.py": "x = f('é)\n"}, init="vim.keymap.set('i', '<C-l>', '<Plug>(lcursor-trigger)')\n"
    )
    nvim.command("call cursor(1, 8)")
    nvim.keys("i")
    nvim.wait_why("midline")
    nvim.keys("<C-l>")
    host.done(nvim.request(), "ö é) + 1", replaces=3)
    nvim.settle()
    assert nvim.screen.rows()[0] == "x = f('ö é) + 1"
    nvim.press("<Tab>")
    assert nvim.lines()[0] == "x = f('ö é) + 1"
