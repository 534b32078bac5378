"""Edits with nothing faked: Neovim, the host, the local server, the 0.5B model."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import store
from lcursor.config import ChatConfig
from lcursor.drive.editor import Editor
from lcursor.llm import llama_server
from lcursor.llm.server import LocalServer
from tests.waiting import WAIT_S

MODEL = "qwen2.5-coder-0.5b"
TOKENS = 4096
CODE = """\
def total(values):
    result = 0
    for value in values:
        result = result + value
    return result


def largest(values):
    result = values[0]
    for value in values:
        if value > result:
            result = value
    return result
"""
INSTRUCTION = "Rename the variable `result` to `best`"
RANGE = "8,13"
PROPOSED = "return require('lcursor.edit.proposals').count() > 0"
IDLE = "return #require('lcursor.edit').running() == 0"
HUNKS = """
return vim.tbl_map(function(hunk)
  return hunk.state
end, require('lcursor.edit.proposals').hunks(0))
"""
ARE = "return vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), ...)"
ACCEPT = "require('lcursor.edit.hunks').accept_file()"
HEAR = """
local method, params = ...
_G.said = {}
local requests = require("lcursor.host.requests")
requests.ask(method, params, function(answer)
  said.answer = answer
end)
"""


class Home:
    """A user's home: Neovims, one after the other, and the server that they share."""

    def __init__(self, neovim: Path, home: Path, stack: ExitStack) -> None:
        self._neovim, self.home = neovim, home
        self.path = home / "project" / "values.py"
        self.path.parent.mkdir(parents=True)
        (self.path.parent / "pyproject.toml").touch()
        self.path.write_text(CODE)
        self._editor = ExitStack()
        stack.callback(self.close)

    def open(self) -> Editor:
        """Start a Neovim, in the place of the one before."""
        self._editor.close()
        chat = {"model": MODEL, "context_tokens": TOKENS, "idle_minutes": 1}
        table = {"completion": {"auto_trigger": False}, "chat": chat}
        init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        editor = Editor(
            self._neovim, self.home, init=init, files=(self.path,), cwd=self.path.parent
        )
        return self._editor.enter_context(editor)

    def close(self) -> None:
        """End all of it."""
        self._editor.close()
        config = ChatConfig(model=MODEL, context_tokens=TOKENS)
        for folder in self.home.glob("data/lcursor/server/*"):
            server = LocalServer(config, folder, lambda _: None)
            server.stop()
            server.close()


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    store.resolve(MODEL, "chat")
    if not llama_server.has_package():
        pytest.fail("the package xllamacpp is not installed. Run: make test")
    with ExitStack() as stack:
        yield Home(neovim, tmp_path, stack)


def ask(editor: Editor) -> None:
    """Ask for an edit, and wait until it is proposed."""
    editor.command(f"{RANGE}LCEdit {INSTRUCTION}")
    try:
        editor.wait_lua(PROPOSED, timeout_s=WAIT_S)
    except TimeoutError as error:
        messages = editor.lua("return vim.fn.execute('messages')")
        raise AssertionError(f"nothing was proposed: {messages}") from error
    editor.wait_lua(IDLE, timeout_s=WAIT_S)


def turns(editor: Editor) -> dict[str, Any]:
    """Return what the host says of the project's turns."""
    editor.lua(HEAR, "edit.turns", {"path": editor.lua("return vim.api.nvim_buf_get_name(0)")})
    found: dict[str, Any] = editor.wait_lua("return said.answer")
    return found


def test_asked_shown_accepted_and_taken_back(home: Home) -> None:
    editor = home.open()
    ask(editor)
    assert editor.lines() == CODE.splitlines()  # nothing is applied that was not accepted
    assert set(editor.lua(HUNKS)) == {"open"}
    tick = editor.lua("return vim.b.changedtick")
    editor.lua(ACCEPT)
    changed = editor.lines()
    assert "    best = values[0]" in changed
    assert changed[:6] == CODE.splitlines()[:6]  # what was not selected is as it was
    assert editor.lua("return require('lcursor.edit.proposals').count()") == 0
    assert editor.lua("return vim.b.changedtick") > tick
    assert home.path.read_text() == CODE  # the user saves

    editor.keys("u")
    editor.wait_lua(ARE, CODE.splitlines())  # in one step
    editor.keys("<C-r>")
    editor.wait_lua(ARE, changed)

    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# typed since' })")
    editor.command("write")
    listed = turns(editor)
    assert listed["turns"][0]["state"] == "done"
    editor.command("LCursor edit undo")
    wanted = ["# typed since", *CODE.splitlines()]
    editor.wait_lua(ARE, wanted)
    editor.command("LCursor edit redo")
    editor.wait_lua(ARE, ["# typed since", *changed])


def test_open_hunks_outlive_a_neovim_that_is_killed(home: Home) -> None:
    editor = home.open()
    ask(editor)
    count = editor.lua("return require('lcursor.edit.proposals').count()")
    shown = editor.lua("return require('lcursor.edit.proposals').all()[1].key")
    os.kill(editor.lua("return vim.uv.os_getpid()"), signal.SIGKILL)
    assert home.path.read_text() == CODE

    editor = home.open()
    row = turns(editor)["turns"][0]
    assert (row["turn"], row["state"], row["open"]) == (shown, "open", count)
    editor.lua("require('lcursor.edit.edits').resume(...)", row, str(home.path))
    editor.wait_lua(PROPOSED)
    editor.lua("vim.fn.win_gotoid(vim.fn.bufwinid(...))", home.path.name)  # not the list of hunks
    assert set(editor.lua(HUNKS)) == {"open"}
    editor.lua(ACCEPT)
    assert "    best = values[0]" in editor.lines()
    editor.command("LCursor edit undo")
    editor.wait_lua(ARE, CODE.splitlines())
