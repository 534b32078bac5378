"""Next edits next to ghost text: the ghost at the cursor comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
GHOSTS: dict[str, Any] = {**CONFIG, "completion": {}}
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
