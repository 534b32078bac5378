"""Next edits while the user types and moves: ghost text comes first, and hints wait for a pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, Typist
from tests.nvim.pilot import Pilot
from tests.waiting import wait_for

Start = Callable[..., Pilot]
GHOSTS: dict[str, Any] = {**CONFIG, "completion": {}}
HINT = "⇥ line 62 timeout→deadline"
RENAMED = "gg/timeout<CR>cwdeadline<Esc>"


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Typist:
    return Typist(editor({"a.py": RENAME}, config=GHOSTS), host)


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
    desk.nvim.press("jA")
    drawn = []
    for key in "  # connect again":
        desk.nvim.type(key, pace_ms=120)
        drawn += desk.drawn()
    assert drawn == []


def test_tab_indents_in_the_indent_of_a_line(desk: Typist) -> None:
    desk.nvim.press(RENAMED)
    desk.answer()
    desk.nvim.press("jO")
    desk.nvim.lua("vim.wait(500)")
    assert desk.drawn() == []
    assert not desk.has_key("<Tab>", "i")


@pytest.fixture
def hint(editor: Start, host: FakeHost) -> Typist:
    """Open a file with a hint in line 1 for the last line."""
    text = "def fetch(url, timeout):\n" + "    pass\n" * 60 + "    return url, timeout\n"
    desk = Typist(editor({"a.py": text}, config=CONFIG), host)
    desk.nvim.press(RENAMED)
    desk.answer()
    assert (0, HINT) in desk.drawn()
    return desk


def test_a_hint_stays_until_the_cursor_rests(hint: Typist) -> None:
    time.sleep(0.1)
    for key in "jjj":
        hint.nvim.type(key, pace_ms=40)
        assert (0, HINT) in hint.drawn()
    wait_for(lambda: (3, HINT) in hint.drawn())


def test_an_operator_draws_nothing_until_a_pause(hint: Typist) -> None:
    time.sleep(0.1)
    hint.nvim.type("yl", pace_ms=40)
    assert hint.drawn() == []
    wait_for(lambda: (0, HINT) in hint.drawn())


def test_a_hint_in_insert_mode_waits_for_a_pause(hint: Typist) -> None:
    time.sleep(0.5)
    hint.nvim.type("j", pace_ms=500)
    hint.nvim.press("i")
    assert hint.drawn() == []
    wait_for(lambda: (1, HINT) in hint.drawn())
