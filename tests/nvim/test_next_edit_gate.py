"""Next edits: what the user decides goes to the host, which hides what is rejected repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, RENAME, SHORT, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]


def test_what_the_user_decides_is_reported(editor: Start, host: FakeHost) -> None:
    desk = Typist(editor({"a.py": RENAME}, config=CONFIG, init=SHORT), host)
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.answer()
    desk.nvim.press("<Tab>")
    desk.answer()
    desk.nvim.press("<Esc>")
    host.wait(lambda: len(host.messages("next_edit.outcome")) == 2)
    decided = {"kind": "rename", "filetype": "python"}
    expected = [{**decided, "is_accepted": True}, {**decided, "is_accepted": False}]
    assert host.messages("next_edit.outcome") == expected


@pytest.mark.parametrize(
    ("kind", "filetype", "seconds", "shown"),
    [
        ("rename", "python", 60, []),
        ("rename", "python", -1, ["deadline"]),
        ("rename", "lua", 60, ["deadline"]),
        ("repetition", "python", 60, ["deadline"]),
    ],
)
def test_a_kind_that_is_hidden(
    editor: Start, host: FakeHost, kind: str, filetype: str, seconds: float, shown: list[str]
) -> None:
    desk = Typist(editor({"a.py": RENAME}, config=CONFIG, init=SHORT), host)
    desk.nvim.press("gg/timeout<CR>cwdeadline<Esc>")
    desk.requests()
    hidden = {"kind": kind, "filetype": filetype, "until_s": time.time() + seconds}
    host.send("next_edit.gate", {"hidden": [hidden]})
    desk.answer()
    assert desk.texts() == shown
    said = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert ("is hidden for a while" in said) == (not shown)
