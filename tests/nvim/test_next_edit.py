"""Next edits: the boundary of an edit, the request, what is drawn, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Open = Callable[..., Typist]


@pytest.fixture
def start(editor: Start, host: FakeHost) -> Open:
    """Open a file, with next edits drawn."""

    def begin(content: str = RENAME, name: str = "a.py", **more: Any) -> Typist:
        more.setdefault("config", CONFIG)
        return Typist(editor({name: content}, **more), host)

    return begin


def test_a_rename_is_drawn_and_applied_with_one_key_each(start: Open) -> None:
    desk = start()
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    request = desk.answer()
    assert request["edits"] == [
        {
            "row": 0,
            "old": ["def fetch(url, timeout):"],
            "new": ["def fetch(url, deadline):"],
            "is_accepted": False,
        }
    ]
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
