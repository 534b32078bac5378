"""A chat whose answer or opening fails, as a person sees it; the host is a fake one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES
from tests.nvim.talk import Talk, message

Start = Callable[..., Pilot]
FILES = {"a.py": "def alpha(x):\n    return x\n", "sub/b.py": "z = 1\n"}
HISTORY = [
    message(1, "first question"),
    message(2, "first answer\n\nwith two paragraphs"),
    message(3, "second question"),
    message(4, "second answer"),
]


def test_a_failure_stands_where_the_answer_would(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=110, lines=16)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.delta(number, "Because")
    talk.fail(number, "the server went away", "Try again")
    talk.done(number, reason="failed", prompt_tokens=0)
    nvim.press("gr")
    assert talk.heard()["after"] == 1
    assert "went away" not in "\n".join(nvim.screen.rows()[:12])


def test_a_failure_stops_the_spinner_at_once(editor: Start, host: FakeHost) -> None:
    init = "_G.defer_fn = vim.defer_fn\n"
    nvim = editor(FILES, init=init)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    nvim.lua("vim.defer_fn = function() end")  # nobody gives up waiting for the end
    talk.fail(number, "the server went away")
    nvim.settle()
    assert nvim.lua("return require('lcursor.chat').current().turn ~= nil")
    assert "failed" in nvim.lua("return vim.wo.winbar")
    nvim.lua("vim.defer_fn = _G.defer_fn")


def test_a_failure_can_be_read_to_its_end_in_a_narrow_window(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=80, lines=24, init=NOTES)
    talk = Talk(nvim, host).open()
    nvim.command("vertical resize 24")
    number = talk.ask("why?")
    talk.fail(number, "the server at /a/folder/with/a/long/name.sock broke off", "Start it anew")
    talk.done(number, reason="failed", prompt_tokens=0)
    rows = [row.rpartition("│")[2].strip() for row in nvim.screen.rows()]
    first = next(at for at, row in enumerate(rows) if row.startswith("✗ the server"))
    shown = "".join(rows[first : rows.index("", first)])
    assert shown.replace(" ", "").endswith("/a/folder/with/a/long/name.sockbrokeoff.Startitanew")


def test_a_failure_is_laid_out_again_for_another_width(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=100, lines=24, init=NOTES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.fail(number, "the server at that place broke off", "Start it anew")
    talk.done(number, reason="failed", prompt_tokens=0)

    def shown() -> str:
        nvim.settle()
        rows = [row.rpartition("│")[2].strip() for row in nvim.screen.rows()]
        first = next(at for at, row in enumerate(rows) if row.startswith("✗"))
        return " | ".join(rows[first : rows.index("", first)])

    assert shown() == "✗ the server at that place broke off. | Start it anew"
    nvim.command("vertical resize 24")
    assert shown() == "✗ the server at that | place broke off. Start | it anew"
    nvim.command("vertical resize 80")
    assert shown() == "✗ the server at that place broke off. Start it anew"
    nvim.command("split | vertical split")  # where it is narrower once more
    assert shown() == "✗ the server at that place broke | off. Start it anew"


def test_a_question_that_never_began_is_a_draft_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    nvim.lua("require('lcursor.chat.turn').max_wait_ms = 100")
    nvim.press("GAwhy?<Esc><CR>")
    talk.fail(talk.heard()["id"], "the disk is full")
    nvim.wait_lua("return require('lcursor.chat').current().turn == nil")
    nvim.settle()
    assert talk.lines()[-3:] == ["## You", "", "why?"]
    assert talk.lines().count("## Model") == 2
    assert "the disk is full" in "\n".join(nvim.screen.rows())
    nvim.press("G<CR>")
    assert talk.heard()["after"] == 4


def test_the_host_dies_while_it_answers(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.delta(number, "Because")
    talk.wait_text("Because")
    host.kill()
    nvim.wait_lua("return require('lcursor.chat').current().turn == nil")
    assert talk.lines()[-5:] == ["Because", "", "## You", "", ""]
    host.wait_count(2)
    nvim.settle()
    nvim.press("gr")
    assert talk.heard()["chat"] == "k1"


def test_a_chat_that_cannot_be_opened_says_why(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCChat")
    talk = Talk(nvim, host)
    number = host.wait(lambda: host.messages("chat.open"))[0]["id"]
    talk.fail(number, "the chats cannot be read")
    nvim.settle()
    assert "the chats cannot be read" in "\n".join(nvim.screen.rows())
    nvim.press("iagain<C-s>")
    host.wait(lambda: len(host.messages("chat.open")) == 2)
    talk.opened(host.messages("chat.open")[-1]["id"])
    assert talk.heard()["text"] == "again"


def test_a_question_for_a_chat_that_cannot_be_opened_is_not_lost(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCChat why is alpha so?")
    talk = Talk(nvim, host)
    talk.fail(host.wait(lambda: host.messages("chat.open"))[0]["id"], "no disk")
    nvim.settle()
    assert nvim.lines() == ["## You", "", "why is alpha so?"]


@pytest.mark.parametrize("way", ["restart", "setting"])
@pytest.mark.parametrize("keys", ["GAwhy?<Esc><CR>", "<Cmd>LCursor chat model big<CR>", "gb"])
def test_an_empty_chat_that_the_host_has_lost_is_opened_again(
    editor: Start, host: FakeHost, way: str, keys: str
) -> None:
    nvim = editor(FILES, init=NOTES)
    Talk(nvim, host).open()
    if way == "restart":
        nvim.command("LCursor restart")
        host.wait_count(2)
    else:
        nvim.lua("require('lcursor').setup({ chat = { max_tokens = 500 } })")
    nvim.press(keys)
    host.wait(lambda: len(host.messages("chat.open")) == 2)
    again = host.messages("chat.open")[-1]
    assert again["chat"] == ""
    Talk(nvim, host, "k2").opened(again["id"])
    sent = "chat.send" if "why" in keys else "chat.preview" if keys == "gb" else "chat.use"
    assert host.wait(lambda: host.messages(sent))[-1]["chat"] == "k2"
    if way == "setting":
        assert len(host.messages(sent)) == 1


@pytest.mark.parametrize("other", [{"model": "big"}, {"title": "Mine"}, {"messages": HISTORY}])
def test_a_chat_with_a_file_is_not_opened_again(
    editor: Start, host: FakeHost, other: dict[str, Any]
) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open(**other)
    nvim.command("LCursor restart")
    host.wait_count(2)
    nvim.press("GAwhy?<Esc><CR>")
    assert talk.heard()["chat"] == "k1"
    assert len(host.messages("chat.open")) == 1
