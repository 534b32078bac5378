"""Requests to the host: each answer and each error reaches who asked, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, told

ASK = """
_G.heard = _G.heard or {}
return require("lcursor.host.requests").ask(
  ...,
  { path = "/x" },
  function(answer) table.insert(_G.heard, { "answer", answer.id }) end,
  function(err) table.insert(_G.heard, { err.code, err.id }) end
)
"""
ERROR = {"code": "chat_failed", "message": "it broke", "hint": "", "level": "silent"}


@pytest.fixture
def nvim(editor: Callable[..., Pilot]) -> Pilot:
    """A Neovim whose host runs."""
    found = editor(init=NOTES)
    found.lua("require('lcursor.host').start()")
    found.wait_state()
    return found


def heard(nvim: Pilot) -> list[list[object]]:
    """Return all that was heard so far."""
    nvim.settle()
    return [list(each) for each in nvim.lua("return _G.heard")]


def test_answers_and_errors_are_delivered_once(nvim: Pilot, host: FakeHost) -> None:
    chat, edit = nvim.lua(ASK, "chat.list"), nvim.lua(ASK, "edit.turns")
    assert chat != edit
    host.wait(lambda: host.messages("edit.turns"))
    for _ in range(2):
        host.send("error", {"id": chat, **ERROR})
        host.send("edit.turned", {"id": edit, "turns": [], "undo": "", "redo": ""})
        assert heard(nvim) == [["chat_failed", chat], ["answer", edit]]


def test_each_error_of_a_request_is_shown(nvim: Pilot, host: FakeHost) -> None:
    error = {**ERROR, "level": "warn"}
    for count in (1, 2):
        host.send("error", {"id": nvim.lua(ASK, "chat.list"), **error})
        assert told(nvim) == ["lcursor: it broke"] * count


@pytest.mark.parametrize("number", ["", "return require('lcursor.host.requests').next_id()"])
def test_an_error_that_nobody_waits_for_is_shown_once(
    nvim: Pilot, host: FakeHost, number: str
) -> None:
    error = {**ERROR, "level": "warn"}
    for _ in range(2):
        host.send("error", {"id": nvim.lua(number) if number else 0, **error})
    assert told(nvim) == ["lcursor: it broke"]


def test_open_requests_fail_when_the_host_ends(nvim: Pilot, host: FakeHost) -> None:
    numbers = [nvim.lua(ASK, "chat.list"), nvim.lua(ASK, "edit.turns")]
    host.wait(lambda: host.messages("edit.turns"))
    host.kill()
    nvim.wait_lua("return #_G.heard == 2")
    host.wait_count(2)
    assert sorted(heard(nvim)) == [["host_died", number] for number in numbers]


def test_a_forgotten_request_is_not_answered(nvim: Pilot, host: FakeHost) -> None:
    number = nvim.lua(ASK, "chat.list")
    host.wait(lambda: host.messages("chat.list"))
    nvim.lua("require('lcursor.host.requests').forget(...)", number)
    host.send("chat.listed", {"id": number, "chats": [], "note": ""})
    assert heard(nvim) == []


def test_requests_fail_when_the_host_ends_before_hello(
    editor: Callable[..., Pilot], host: FakeHost
) -> None:
    host.is_polite = False
    nvim = editor()
    number = nvim.lua(ASK, "chat.list")
    host.wait(lambda: host.messages("chat.list"))
    host.is_polite = True  # the next one
    host.kill()
    nvim.wait_lua("return #_G.heard == 1")
    assert nvim.lua("return _G.heard") == [["host_died", number]]
