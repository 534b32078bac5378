"""`$/progress` of long work, where something handles it, and what is shown besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk
from tests.nvim.test_index import tell_state

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n", "b.py": "b = 1\n"}
HANDLER = """
_G.heard = {}
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local value = event.data.params.value
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    assert(client.name == "lcursor")
    table.insert(_G.heard, { value.kind, value.title, value.message, value.percentage or -1 })
  end,
})
"""
ECHO = """
_G.echoed = {}
local echo = vim.api.nvim_echo
vim.api.nvim_echo = function(chunks, ...)
  table.insert(_G.echoed, chunks[1][1])
  return echo(chunks, ...)
end
"""


@pytest.fixture
def nvim(editor: Start, host: FakeHost) -> Pilot:
    """A Neovim in which something handles LspProgress."""
    return editor(FILES, init=HANDLER + ECHO + reach.NOTES)


def heard(nvim: Pilot) -> list[list[Any]]:
    """Return what was reported since the last time."""
    nvim.settle()
    found: list[list[Any]] = nvim.lua("local found = _G.heard; _G.heard = {}; return found")
    return list(found)


def wait_for(nvim: Pilot, count: int) -> None:
    """Wait until so much was reported: reports that come at once are one."""
    nvim.wait_lua("return #_G.heard >= ...", count)


def test_an_index_that_has_much_to_do(nvim: Pilot, host: FakeHost) -> None:
    nvim.insert()
    nvim.press("<Esc>")
    heard(nvim)
    tell_state(nvim, host, phase="reading", done=499, total=500)  # a file was written
    tell_state(nvim, host)
    assert heard(nvim) == []
    tell_state(nvim, host, phase="reading", done=20, total=200)
    tell_state(nvim, host, phase="paused", done=20, total=200)
    tell_state(nvim, host, phase="embedding", done=20, total=40)
    tell_state(nvim, host, phase="embedding", done=30, total=40)
    wait_for(nvim, 2)
    tell_state(nvim, host)
    title = "index of project"
    assert heard(nvim) == [
        ["begin", title, "20 of 200 files read", 10],
        ["report", title, "30 of 40 chunks embedded; searchable", 75],
        ["end", title, "ready: 1712 files, 20000 chunks, 9000 definitions", -1],
    ]
    assert nvim.lua("return _G.echoed") == []


def test_the_model_that_is_loaded(nvim: Pilot, host: FakeHost) -> None:
    nvim.insert()
    heard(nvim)
    for progress in (0.25, 0.5, 0.75, 1):
        host.send("state", {"state": "loading_model", "detail": "", "progress": progress})
    wait_for(nvim, 2)
    host.send("state", {"state": "ready", "detail": "", "progress": -1})
    title = "completion model"
    assert heard(nvim) == [
        ["begin", title, "loading", 25],
        ["report", title, "starting", 100],
        ["end", title, "loaded", -1],
    ]


def test_an_edit_that_no_window_shows(nvim: Pilot, host: FakeHost) -> None:
    desk = Desk(nvim, host)
    asked = desk.ask("LCEdit rename it")
    desk.progress(asked["id"], "reading", done=10, total=100)
    assert [each for each in heard(nvim) if each[1].startswith("edit")] == []
    nvim.command("edit b.py")
    wait_for(nvim, 1)
    assert heard(nvim) == [["begin", "edit: rename it", "reading, 10 of 100 tokens", 10]]
    desk.progress(asked["id"], "reading", done=50, total=100)
    wait_for(nvim, 1)
    assert heard(nvim) == [["report", "edit: rename it", "reading, 50 of 100 tokens", 50]]
    nvim.command("buffer a.py")
    desk.progress(asked["id"], "reading", done=60, total=100)
    assert [each[0] for each in heard(nvim)] == ["end"]
    nvim.command("buffer b.py")
    wait_for(nvim, 1)
    desk.done(asked["id"])
    assert [each[0] for each in heard(nvim)] == ["begin", "end"]


def test_an_answer_that_no_window_shows(nvim: Pilot, host: FakeHost) -> None:
    talk = Talk(nvim, host).open(title="Tests")
    number = talk.ask("why?")
    talk.delta(number, "Because")
    assert [each for each in heard(nvim) if each[1].startswith("chat")] == []
    nvim.command("close")
    nvim.wait_lua("return #_G.heard > 0")
    assert heard(nvim)[0] == ["begin", "chat: Tests", "writing", -1]
    talk.done(number)
    nvim.wait_lua("return #_G.heard > 0 and _G.heard[#_G.heard][1] == 'end'")


def test_without_a_handler_nothing_is_started(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=ECHO + reach.NOTES)
    desk = Desk(nvim, host)
    nvim.lua("vim.fn.setqflist({ { bufnr = vim.fn.bufnr(), lnum = 1, text = 'x' } })")
    nvim.command("copen | LCEdit rename it")
    asked = desk.heard("edit.many")
    desk.progress(asked["id"], "writing")
    assert "lcursor: writing … (:LCursor edit stop)" in nvim.lua("return _G.echoed")
    assert nvim.lua("return #vim.lsp.get_clients()") == 0
