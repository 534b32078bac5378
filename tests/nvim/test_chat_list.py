"""`:LCursor chat`, models and the local server, as a person uses them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcursor.context.mentions import KINDS, WITH_ARGUMENT
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk

Start = Callable[..., Pilot]
Params = dict[str, Any]

FILES = {"a.py": "def alpha(x):\n    return x\n"}
TALK = [
    reach.message(1, "user", "why @file:a.py ?", [reach.item("file", "a.py", 9)]),
    reach.message(2, "assistant", "so\n\n```py\nx\n```"),
]
ANSWERS = """
_G.asked = {}
vim.ui.input = function(opts, done) table.insert(_G.asked, opts.prompt .. (opts.default or ""))
  done(_G.typed) end
vim.ui.select = function(items, opts, done)
  if items[2] == "Yes" then
    table.insert(_G.asked, opts.prompt)
    return done(_G.answer or items[2], _G.answer and 1 or 2)
  end
  _G.items = vim.tbl_map(opts.format_item, items)
  done(items[_G.choice])
end
"""


def row(nvim: Pilot, chat: str, title: str, age_s: float, **other: Any) -> Params:
    """Return a stored chat."""
    stored = {
        "chat": chat,
        "title": title,
        "root": str(nvim.home / "project"),
        "model": "small",
        "messages": 4,
        "updated_s": time.time() - age_s,
        "preview": f"{title} please",
    }
    return {**stored, **other}


def answer(
    nvim: Pilot, host: FakeHost, rows: list[Params], count: int = 1, note: str = ""
) -> Params:
    """Answer the question for the list."""
    question = reach.asked(host, "chat.list", count)
    host.send("chat.listed", {"id": question["id"], "chats": rows, "note": note})
    nvim.settle()
    return question


def test_the_list_says_when_what_and_how_long(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=140)
    nvim.command("LCursor chat list")
    rows = [
        row(nvim, "k1", "Why is it slow", 125, preview="Why is it slow"),
        row(nvim, "k2", "Rename", 7300, messages=12, preview="Rename alpha\nto beta"),
        row(nvim, "k3", "x" * 80, 86400 * 3 + 60),
    ]
    question = answer(nvim, host, rows, note="1 cannot be read")
    assert question["path"] == str(nvim.home / "project/a.py")
    assert reach.sheet(nvim, "chats") == [
        f"  2 min   {'Why is it slow':48}    4",
        f"  2 h     {'Rename':48}   12  Rename alpha to beta",
        f"  3 days  {'x' * 47}…    4",
    ]
    assert reach.winbar(nvim).startswith(" 3 chats of this project (1 cannot be read) · <CR> open")


def test_none_yet(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor chat list")
    answer(nvim, host, [])
    assert reach.sheet(nvim, "chats") == ["  no chats yet; :LCChat starts one"]
    nvim.press("<CR>ddre")  # there is nothing in that line
    assert host.messages("chat.open") == host.messages("chat.delete") == []


def test_a_chat_is_resumed(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor chat list")
    answer(nvim, host, [row(nvim, "k1", "One", 9), row(nvim, "key1", "Two", 99)])
    nvim.press("j<CR>")
    question = reach.asked(host, "chat.open")
    assert question["chat"] == "key1"
    host.send("chat.opened", reach.opened(nvim, question["id"], TALK))
    nvim.settle()
    assert reach.sheet(nvim, "chats") == []
    assert "why @file:a.py ?" in nvim.lines()
    nvim.command("LCursor chat list")
    answer(nvim, host, [row(nvim, "key1", "Two", 99)], 2)
    assert reach.sheet(nvim, "chats")[0].startswith("* 1 min  Two")
    nvim.press("<CR>")
    assert len(host.messages("chat.open")) == 1  # it is here already
    assert "why @file:a.py ?" in nvim.lines()


def test_another_chat_takes_the_window(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, TALK)
    nvim.command("LCursor chat new")
    question = reach.asked(host, "chat.open", 2)
    host.send("chat.opened", reach.opened(nvim, question["id"], chat="key2"))
    nvim.settle()
    assert nvim.lua("return vim.api.nvim_buf_get_name(0)") == "lcursor://chat/2"
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2
    nvim.lua("require('lcursor').chat({ chat = 'key1', window = { position = 'below' } })")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 3


def test_other_projects(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor chat list")
    answer(nvim, host, [])
    nvim.press("a")
    assert answer(nvim, host, [row(nvim, "k9", "There", 9, root="/w/other")], 2)["path"] == ""
    assert "  other  " in reach.sheet(nvim, "chats")[0]
    nvim.press("<CR>")
    question = reach.asked(host, "chat.open")
    assert (question["chat"], question["path"]) == ("k9", "/w/other")


def test_rename_and_delete(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=ANSWERS)
    reach.chat(nvim, host, TALK)
    nvim.command("LCursor chat list")
    answer(nvim, host, [row(nvim, "key1", "One", 9), row(nvim, "k2", "Two", 99)])
    nvim.lua("_G.typed = 'New name'")
    nvim.press("r")
    asked = reach.asked(host, "chat.rename")
    assert (asked["chat"], asked["title"]) == ("key1", "New name")
    host.send("chat.opened", reach.opened(nvim, asked["id"], TALK, title="New name"))
    nvim.settle()
    assert "New name" in reach.sheet(nvim, "chats")[0]
    nvim.lua("_G.answer = 'No'")
    nvim.press("dd")
    assert host.messages("chat.delete") == []
    nvim.lua("_G.answer = nil")
    nvim.press("dd")
    gone = reach.asked(host, "chat.delete")
    assert gone["chat"] == "key1"
    host.send("chat.listed", {"id": gone["id"], "chats": [], "note": ""})
    nvim.settle()
    assert [line.split()[2] for line in reach.sheet(nvim, "chats")] == ["Two"]
    assert nvim.lua("return #require('lcursor.chat').all()") == 0
    assert nvim.lua("return _G.asked[#_G.asked]") == 'Delete the chat "New name" permanently?'


def test_export(editor: Start, host: FakeHost, tmp_path: Path) -> None:
    nvim = editor(FILES, init=ANSWERS + reach.NOTES)
    reach.chat(nvim, host, TALK)
    target = tmp_path / "out.md"
    nvim.command(f"LCursor chat export {target}")
    assert target.read_text() == (
        "# How it works\n\n## You\n\n> file: a.py\n\nwhy @file:a.py ?\n\n"
        "## Model (small)\n\nso\n\n```py\nx\n```\n"
    )
    target.write_text("mine")
    nvim.lua("_G.answer = 'No'")
    nvim.command(f"LCursor chat export {target}")
    assert target.read_text() == "mine"
    nvim.lua("_G.typed = ...", str(tmp_path / "no/such/folder/x.md"))
    nvim.command("LCursor chat export")
    assert nvim.lua("return _G.asked[#_G.asked]") == "Export to: how-it-works.md"
    assert "no/such/folder/x.md" in reach.told(nvim)[-1]
    nvim.lua("require('lcursor.chat').current().title = 'Was 中文 is, then…'")
    nvim.command("LCursor chat export")
    assert nvim.lua("return _G.asked[#_G.asked]") == "Export to: was-中文-is-then.md"


def test_another_model(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=ANSWERS + reach.NOTES)
    reach.chat(nvim, host, TALK)
    nvim.lua("_G.choice = 2")
    nvim.press("gm")
    assert nvim.lua("return _G.items") == ["small (current)", "large"]
    asked = reach.asked(host, "chat.use")
    assert (asked["chat"], asked["model"]) == ("key1", "large")
    host.send("chat.opened", reach.opened(nvim, asked["id"], TALK, model="large"))
    nvim.settle()
    assert "large" in reach.winbar(nvim)
    nvim.command("LCursor chat model large")
    assert reach.told(nvim)[-1] == "lcursor: this chat already uses large"


def test_what_is_said_is_summarized_and_brought_back(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    reach.chat(nvim, host, TALK)
    nvim.command("LCursor chat expand")
    assert reach.told(nvim)[-1] == "lcursor: no summary in this chat"
    nvim.command("LCursor chat compact")
    asked = reach.asked(host, "chat.compact")
    summed = {"number": 3, "last": 2, "messages": 2, "text": "short"}
    summed |= {"tokens_before": 900, "tokens_after": 90}
    host.send("chat.summed", {"id": asked["id"], "chat": "key1", **summed})
    done = {
        **dict.fromkeys(("prompt_tokens", "cached_tokens", "answer_tokens", "context_tokens"), 0),
        **dict.fromkeys(("prompt_ms", "answer_ms", "first_ms"), 0.0),
        **{"id": asked["id"], "chat": "key1", "reason": "stop", "title": "", "is_exact": True},
    }
    host.send("chat.done", {**done, "call": ""})
    again = reach.asked(host, "chat.open", 2)
    assert again["chat"] == "key1"
    talk = [*TALK, reach.message(3, "summary", "short")]
    host.send("chat.opened", reach.opened(nvim, again["id"], talk))
    nvim.settle()
    assert "## Summary" in nvim.lines()
    assert "summarized 2 messages" in " ".join(reach.told(nvim))
    nvim.command("LCursor chat expand")
    assert reach.asked(host, "chat.expand")["number"] == 3


@pytest.mark.parametrize("end", ["chat.done", "error"])
def test_a_summary_that_is_written_can_be_stopped(editor: Start, host: FakeHost, end: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    talk = Talk(nvim, host).open(messages=TALK)
    nvim.command("LCursor chat compact")
    number = reach.asked(host, "chat.compact")["id"]
    nvim.press("GAand?<Esc><CR>")
    said = "lcursor: the chat is being summarized; <C-c> stops it"
    assert reach.told(nvim)[-1] == said
    nvim.command("LCursor chat compact")
    assert reach.told(nvim)[-2:] == [said, said]
    assert not host.messages("chat.send")
    nvim.press("<C-c>")
    assert reach.asked(host, "chat.stop")["id"] == number
    nvim.command("LCursor chat stop")
    assert reach.asked(host, "chat.stop", 2)["id"] == number
    if end == "error":
        talk.fail(number, "there is nothing to summarize yet")
        nvim.settle()
    else:
        talk.done(number, reason="stopped")
    nvim.command("LCursor chat stop")
    assert reach.told(nvim)[-1] == "lcursor: no answer is being written"
    nvim.press("G<CR>")
    assert talk.heard()["text"] == "and?"


def server(nvim: Pilot, host: FakeHost, count: int, **other: Any) -> Params:
    """Answer a question about the server."""
    question = reach.asked(host, "server.ask", count)
    told = {"state": "running", "lines": [], "url": "u", "pid": 7, "model": "m", "log": ""}
    host.send("server.status", {"id": question["id"], **told, **other})
    nvim.settle()
    return question


def test_the_server(editor: Start, host: FakeHost, tmp_path: Path) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command("LCursor server")
    assert server(nvim, host, 1, lines=["m on the CPU", "running"])["do"] == "status"
    assert nvim.lines() == ["m on the CPU", "running"]
    nvim.press("q")
    nvim.command("LCursor server stop")
    assert server(nvim, host, 2, state="none", model="")["do"] == "stop"
    assert reach.told(nvim)[-1] == "lcursor: the local server is not running"
    nvim.command("LCursor server start")
    assert server(nvim, host, 3)["do"] == "start"
    assert reach.told(nvim)[-1] == "lcursor: the local server is running, m"
    log = tmp_path / "server.log"
    log.write_text("one\ntwo\n")
    nvim.command("LCursor server log")
    server(nvim, host, 4, log=str(log))
    assert nvim.lines() == ["one", "two"]
    nvim.command("LCursor server dance")
    assert reach.told(nvim)[-1] == (
        "lcursor: there is no :LCursor server dance. Use one of status, start, stop, restart, log"
    )


@pytest.mark.parametrize(
    "words", ["context", "sources", "rename x", "model", "export x", "compact", "stop"]
)
def test_words_that_need_a_chat_say_so(editor: Start, host: FakeHost, words: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command(f"LCursor chat {words}")
    assert reach.told(nvim) == ["lcursor: no chat is open; :LCChat opens one"]


def test_words_that_nobody_knows_and_a_chat_that_is_off(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command("LCursor chat dance")
    assert "there is no :LCursor chat dance. Use one of ask, new" in reach.told(nvim)[-1]
    nvim.lua("require('lcursor').setup({ enabled = false })")
    nvim.command("LCursor chat list")
    assert "switched off by the setting enabled" in reach.told(nvim)[-1]
    assert host.messages("chat.list") == []


def test_the_command_line_of_a_question_is_completed(editor: Start) -> None:
    nvim = editor({"a.py": "", "READ me.md": ""})

    def offered(line: str) -> object:
        return nvim.lua("return vim.fn.getcompletion(..., 'cmdline')", line)

    assert offered("LCChat /e") == ["/explain"]
    assert offered("'<,'>LCChat! why @di") == ["@diagnostics", "@diff", "@dir:"]
    assert offered("LCChat why /e") == []
    assert offered("LCChat @file:a") == ["@file:a.py"]
    assert sorted(
        nvim.lua("return require('lcursor.editor.mentions').complete('@', 'LCChat @')")
    ) == [f"@{kind}{':' if kind in WITH_ARGUMENT else ''}" for kind in sorted(KINDS)]
