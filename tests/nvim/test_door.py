"""What each feature asks of the host, and who hears the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

ASK = """
_G.heard = _G.heard or {}
local method, feature = ...
return require(("lcursor.%s.requests"):format(feature)).ask(
  method,
  { path = "/x" },
  function(answer) table.insert(_G.heard, { "answer", answer.id }) end,
  function(err) table.insert(_G.heard, { err.code, err.id }) end
)
"""
ERROR = {"code": "chat_failed", "message": "it broke", "hint": "", "level": "silent"}


@pytest.fixture
def nvim(editor: Callable[..., Pilot]) -> Pilot:
    """A Neovim whose host runs."""
    found = editor()
    found.lua("require('lcursor.host').start()")
    found.wait_state()
    return found


def heard(nvim: Pilot) -> list[list[object]]:
    """Return all that was heard so far."""
    nvim.settle()
    return [list(each) for each in nvim.lua("return _G.heard")]


def test_an_answer_and_an_error_go_to_who_asked_and_to_nobody_twice(
    nvim: Pilot, host: FakeHost
) -> None:
    chat, edit = nvim.lua(ASK, "chat.list", "chat"), nvim.lua(ASK, "edit.turns", "edit")
    assert chat != edit
    host.wait(lambda: host.messages("edit.turns"))
    for _ in range(2):
        host.send("error", {"id": chat, **ERROR})
        host.send("edit.turned", {"id": edit, "turns": [], "undo": "", "redo": ""})
        assert heard(nvim) == [["chat_failed", chat], ["answer", edit]]


def test_what_was_asked_of_a_host_that_ends_fails_at_every_door(
    nvim: Pilot, host: FakeHost
) -> None:
    numbers = [nvim.lua(ASK, "chat.list", "chat"), nvim.lua(ASK, "edit.turns", "edit")]
    host.wait(lambda: host.messages("edit.turns"))
    host.kill()
    nvim.wait_lua("return #_G.heard == 2")
    host.wait_count(2)
    assert sorted(heard(nvim)) == [["host_died", number] for number in numbers]


def test_what_nobody_waits_for_any_more_is_not_heard(nvim: Pilot, host: FakeHost) -> None:
    number = nvim.lua(ASK, "chat.list", "chat")
    host.wait(lambda: host.messages("chat.list"))
    nvim.lua("require('lcursor.chat.requests').forget(...)", number)
    host.send("chat.listed", {"id": number, "chats": [], "note": ""})
    assert heard(nvim) == []


def test_what_was_asked_before_a_host_that_dies_had_answered_hello_fails(
    editor: Callable[..., Pilot], host: FakeHost
) -> None:
    host.is_polite = False
    nvim = editor()
    number = nvim.lua(ASK, "chat.list", "chat")
    host.wait(lambda: host.messages("chat.list"))
    host.is_polite = True  # the next one
    host.kill()
    nvim.wait_lua("return #_G.heard == 1")
    assert nvim.lua("return _G.heard") == [["host_died", number]]
