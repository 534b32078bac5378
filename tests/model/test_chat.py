"""The chat with nothing faked: Neovim, the host, the local server, the 0.5B model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import store
from lcursor.config import ChatConfig
from lcursor.drive.editor import Editor
from lcursor.llm import llama_server
from lcursor.llm.records import ServedModel
from lcursor.llm.server import LocalServer
from tests.waiting import WAIT_S, wait_for

MODEL = "qwen2.5-coder-0.5b"
TOKENS = 4096
CODE = "".join(
    f"def step_{n:03d}(value: int) -> int:\n    return value + {n}\n\n\n" for n in range(20)
)
RUNNING = "local s = require('lcursor.chat').current() return s ~= nil and s.turn ~= nil"
WRITES = """
local session = require("lcursor.chat").current()
return session and session.turn and session.turn.bytes > 0
"""
LAST_ID = """
local session = require("lcursor.chat").current()
if session and session.failure then
  error(session.failure.message)
end
return session and session.last and session.last.id or 0
"""
LAST = "return require('lcursor.chat').current().last"
TEXT = """
local buf = require("lcursor.chat").current().buf
return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\\n")
"""

HEAR = """
_G.said = _G.said or {}
local requests, key = require("lcursor.host.requests"), require("lcursor.chat").current().key
local function hear(method, params)
  said[method] = params
end
"""
COMPACT = HEAR + 'requests.follow("chat.compact", { chat = key }, hear)'
EXPAND = HEAR + 'requests.follow("chat.expand", { chat = key, number = ... }, hear)'


class Home:
    """A user's home: Neovims, one after the other, and the server that they share."""

    def __init__(self, neovim: Path, home: Path, stack: ExitStack) -> None:
        self._neovim, self.home, self._stack = neovim, home, stack
        self.path = home / "project" / "steps.py"
        self.path.parent.mkdir(parents=True)
        (self.path.parent / "pyproject.toml").touch()
        self.path.write_text(CODE)
        self._editor = ExitStack()

    def open(self, **settings: Any) -> Editor:
        """Start a Neovim, in the place of the one before."""
        self.leave()
        chat = {"model": MODEL, "context_tokens": TOKENS, "max_tokens": 24}
        table = {
            "completion": {"auto_trigger": False},
            "chat": {**chat, "idle_minutes": 1, "auto_context": False, **settings},
        }
        init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        editor = Editor(
            self._neovim, self.home, init=init, files=(self.path,), cwd=self.path.parent
        )
        return self._editor.enter_context(editor)

    def leave(self) -> None:
        """Leave the Neovim that runs."""
        self._editor.close()

    def servers(self) -> list[LocalServer]:
        """Return what manages the servers of this home."""
        config = ChatConfig(model=MODEL, context_tokens=TOKENS)
        folders = self.home.glob("data/lcursor/server/*")
        return [LocalServer(config, folder, lambda _: None) for folder in folders]

    def saved(self) -> list[Path]:
        """Return the states of chats that are on disk."""
        return list(self.home.glob("data/lcursor/server/*/slots/*.kv"))

    def close(self) -> None:
        """End all of it."""
        self.leave()
        for server in self.servers():
            server.stop()
            server.close()


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    store.resolve(MODEL, "chat")
    if not llama_server.has_package():
        pytest.fail("the package xllamacpp is not installed. Run: make test")
    with ExitStack() as stack:
        made = Home(neovim, tmp_path, stack)
        stack.callback(made.close)
        yield made


def ask(editor: Editor, command: str) -> dict[str, Any]:
    """Ask with an Ex command; return what the host says when the answer is whole."""
    before = editor.lua(f"return (function() {LAST_ID} end)()")
    editor.command(command)
    editor.wait_lua(f"return (function() {LAST_ID} end)() > ...", before, timeout_s=WAIT_S)
    found: dict[str, Any] = editor.lua(LAST)
    return found


def ready(editor: Editor) -> Editor:
    """Begin a chat, and wait until the host is there."""
    editor.lua("require('lcursor.chat').open({ enter = false })")
    editor.wait_lua("return require('lcursor.chat').current().key ~= ''", timeout_s=WAIT_S)
    return editor


def test_a_conversation_is_read_once_and_taken_up_after_a_restart(home: Home) -> None:
    editor = ready(home.open())
    first = ask(editor, "%LCChat What is in this file?")
    assert first["reason"] in ("stop", "length")
    assert first["prompt_tokens"] > 400
    assert first["is_exact"]
    shown = editor.lua(TEXT)
    assert "What is in this file?" in shown
    assert len(shown.partition("## Model")[2].strip()) > 10

    second = ask(editor, "LCChat And what does step 3 return?")
    assert second["prompt_tokens"] > first["prompt_tokens"] + first["answer_tokens"]
    assert second["cached_tokens"] >= 0.95 * second["prompt_tokens"]

    home.leave()
    wait_for(home.saved, what="the state is saved when Neovim exits")
    (server,) = home.servers()
    assert server.stop()

    editor = ready(home.open())
    editor.lua("require('lcursor.chat').open({ chat = 'last' })")
    editor.wait_lua("return #require('lcursor.chat').current().messages == 4")
    assert editor.lua(TEXT).startswith(shown.rstrip().rpartition("\n## You")[0].rstrip())
    third = ask(editor, "LCChat Which step is the last?")
    assert third["cached_tokens"] >= 0.95 * third["prompt_tokens"]

    (state,) = home.saved()
    os.truncate(state, state.stat().st_size // 2)  # as a power cut might: a server ends of it
    assert server.stop()
    fourth = ask(editor, "LCChat And the first?")
    assert fourth["cached_tokens"] < 0.5 * fourth["prompt_tokens"]
    assert not home.saved()


def test_a_stop_frees_the_server_and_keeps_what_was_said(home: Home) -> None:
    editor = ready(home.open(max_tokens=0))
    editor.command("LCChat Count from 1 to 1000 in words.")
    editor.wait_lua(WRITES, timeout_s=WAIT_S)
    (server,) = home.servers()
    target = server.ensure()
    assert is_busy(target)
    editor.lua("require('lcursor.chat.turn').stop(require('lcursor.chat').current())")
    wait_for(lambda: not is_busy(target), what="the server is free")
    editor.wait_lua(f"return not (function() {RUNNING} end)()", timeout_s=5)
    answer = editor.lua("return require('lcursor.chat').current().messages[2]")
    assert answer["is_partial"]
    assert answer["text"].strip()
    assert answer["text"].strip() in editor.lua(TEXT)
    server.close()


def test_what_was_said_is_summarized_and_can_be_had_back(home: Home) -> None:
    editor = ready(home.open(max_tokens=16))
    ask(editor, "LCChat We call the project Heron. What is a heron?")
    ask(editor, "LCChat And where does it live?")
    editor.lua(COMPACT)
    summed = editor.wait_lua("return said['chat.summed']", timeout_s=WAIT_S)
    assert summed["messages"] == 2  # the last question and its answer stay as they are
    assert summed["text"].strip()
    editor.wait_lua("return said['chat.done'] ~= nil", timeout_s=WAIT_S)
    editor.lua(EXPAND, summed["number"])
    opened = editor.wait_lua("return said['chat.opened']", timeout_s=WAIT_S)
    assert [each["role"] for each in opened["messages"]] == ["user", "assistant"] * 2


def is_busy(target: ServedModel) -> bool:
    """Whether the server works for anybody."""
    from lcursor.http.client import Client

    client = Client(target.url, target.key, "chat")
    try:
        slots = json.loads(b"\n".join(client.request("/slots")))
        return any(slot["is_processing"] for slot in slots)
    finally:
        client.close()
