"""Next edits while the user types and moves: ghost text comes first, and hints wait for a pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, LONG_MS, RENAME, SHORT, Typist
from tests.nvim.pilot import Pilot
from tests.waiting import wait_for

Start = Callable[..., Pilot]
GHOSTS: dict[str, Any] = {**CONFIG, "completion": {}}
HINT = "⇥ line 62 timeout→deadline"
RENAMED = "gg/timeout<CR>cwdeadline<Esc>"


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Typist:
    return Typist(editor({"a.py": RENAME}, config=GHOSTS, init=SHORT), host)


def test_the_delays_that_the_help_names(editor: Start) -> None:
    found = editor().lua("return require('lcursor.next_edit.delays')")
    assert (found["pause"], found["glance"]) == (400, 250)
    assert found["rest"] < found["pause"]


def test_tab_accepts_the_ghost_while_there_is_one(desk: Typist, host: FakeHost) -> None:
    desk.nvim.press(RENAMED)
    desk.answer()
    assert desk.texts() == ["deadline"]
    host.skip()
    desk.nvim.keys("jA")
    request = desk.nvim.request()
    assert desk.wait_drawn() == ["⇥ line 3 timeout→deadline (1 of 2)"]
    host.done(request, "  # connected")
    assert desk.nvim.wait_ghost() == "  # connected"
    assert desk.drawn() == []
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[1] == "    session = connect(url)  # connected"
    assert desk.nvim.lines()[2] == "    session.wait(timeout)"


def test_an_accepted_ghost_ends_an_edit(desk: Typist, host: FakeHost) -> None:
    desk.nvim.press("gg/timeout<CR>cwdead<Esc>0")
    host.skip()
    desk.nvim.keys("A")
    request = desk.nvim.request()
    host.done(request, "  # a")
    desk.nvim.wait_ghost()
    before = len(desk.requests())
    desk.nvim.press("<Tab>")
    wait_for(lambda: len(desk.requests()) > before)
    assert len(desk.requests()) == before + 1


def test_no_ghost_is_requested_where_tab_went(desk: Typist, host: FakeHost) -> None:
    desk.nvim.press(RENAMED)
    desk.answer()
    desk.nvim.press("jA")
    assert desk.wait_drawn() == ["⇥ line 3 timeout→deadline (1 of 2)"]
    count = desk.nvim.count()
    desk.nvim.press("<Tab>")
    assert desk.texts() == ["deadline"]
    assert desk.nvim.count() == count
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines()[2] == "    session.wait(deadline)"


def test_typing_draws_nothing_and_moves_nothing(desk: Typist) -> None:
    desk.nvim.press(RENAMED)
    desk.answer()
    desk.delay(pause=LONG_MS)
    desk.nvim.press("jA")
    drawn = []
    for key in "  # connect again":
        desk.nvim.type(key, pace_ms=5)
        drawn += desk.drawn()
    assert drawn == []
    desk.delay(pause=40)
    desk.nvim.type(".")
    assert len(desk.wait_drawn()) == 1


def test_tab_indents_in_the_indent_of_a_line(desk: Typist) -> None:
    desk.nvim.press(RENAMED)
    desk.answer()
    desk.nvim.press("jO")
    desk.nvim.lua("vim.wait(150)")
    assert desk.drawn() == []
    assert not desk.has_key("<Tab>", "i")


@pytest.fixture
def hint(editor: Start, host: FakeHost) -> Typist:
    """Open a file with a hint in line 1 for the last line."""
    text = "def fetch(url, timeout):\n" + "    pass\n" * 60 + "    return url, timeout\n"
    desk = Typist(editor({"a.py": text}, config=CONFIG, init=SHORT), host)
    desk.nvim.press(RENAMED)
    desk.answer()
    assert (0, HINT) in desk.drawn()
    desk.delay(edit=0)
    return desk


def test_a_hint_stays_until_the_cursor_rests(hint: Typist) -> None:
    hint.delay(move=LONG_MS)
    for key in "jjj":
        hint.nvim.type(key, pace_ms=5)
        assert (0, HINT) in hint.drawn()
    hint.delay(move=40)
    hint.nvim.press("j")
    wait_for(lambda: (4, HINT) in hint.drawn())


def test_an_operator_draws_nothing_until_a_pause(hint: Typist) -> None:
    hint.delay(move=LONG_MS)
    hint.nvim.type("yl", pace_ms=5)
    assert hint.drawn() == []
    hint.delay(move=40)
    hint.nvim.press("l")
    wait_for(lambda: (0, HINT) in hint.drawn())


def test_a_hint_in_insert_mode_waits_for_a_pause(hint: Typist) -> None:
    hint.nvim.press("j")
    wait_for(lambda: (1, HINT) in hint.drawn())
    hint.delay(pause=LONG_MS)
    hint.nvim.press("i")
    assert hint.drawn() == []
    hint.delay(pause=40)
    hint.nvim.press("<Right>")
    wait_for(lambda: (1, HINT) in hint.drawn())
