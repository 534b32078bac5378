"""Completion with a real Neovim, its real host, and a server that follows a script."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.loopback import sse
from tests.fakes.model_server import ModelServer
from tests.waiting import wait_for

BEFORE = "def add(a, b):\n"
AFTER = "\n\nprint(add(1, 2))\n"
SETTLED = "local c = require('lcursor.complete') return c.current_id() and c.is_settled()"
PID = "return require('lcursor.host').info().pid"

Start = Callable[..., Editor]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as fake:
        fake.llama("return", " a", " + b")
        yield fake


def settings(server: ModelServer, **completion: Any) -> dict[str, Any]:
    """Return settings by which a server completes."""
    return {
        "python": sys.executable,
        "index": {"enabled": False},
        "models": {"desk": {"url": server.url}},
        "completion": {"model": "desk", **completion},
    }


@pytest.fixture
def start(neovim: Path, tmp_path: Path, server: ModelServer) -> Iterator[Start]:
    """Start a Neovim in the body of a function."""
    with ExitStack() as stack:

        def begin(**completion: Any) -> Editor:
            path = tmp_path / "project/add.py"
            path.parent.mkdir()
            path.write_text(BEFORE + AFTER)
            table = json.dumps(settings(server, **completion))
            init = f"vim.g.lcursor = vim.json.decode([==[{table}]==])\n"
            home = tmp_path / "home"
            home.mkdir()
            editor = Editor(neovim, home, init=init, files=(path,), cwd=path.parent)
            stack.enter_context(editor)
            editor.keys("o")
            editor.wait_state("ready")
            return editor

        yield begin


def wait_text(editor: Editor, line: str) -> None:
    """Wait until the cursor's line is that."""
    editor.wait_lua("return vim.api.nvim_get_current_line() == ...", line)


def test_a_suggestion_of_a_server_is_shown_and_accepted(start: Start, server: ModelServer) -> None:
    server.llama("a", " + b")
    editor = start()
    editor.type("return ")
    # Before the blank is there, the row is "    returna + b".
    assert editor.screen.wait(lambda screen: "    return a + b" in "\n".join(screen.rows()), 20)
    assert editor.ghost().strip() == "a + b"
    prompts = [body["prompt"] for *_, body in server.asked if body and "prompt" in body]
    typed = f"<|fim_prefix|>{BEFORE}    return"  # with the space, or typed through from here
    assert typed in prompts[-1]
    assert prompts[-1].endswith(f"<|fim_suffix|>\n{AFTER}<|fim_middle|>")
    editor.keys("<Tab>")
    wait_text(editor, "    return a + b")
    editor.keys("<Esc>")
    assert editor.lines() == [*BEFORE.splitlines(), "    return a + b", *AFTER.splitlines()]


def test_a_key_stops_what_the_server_still_writes(start: Start, server: ModelServer) -> None:
    row = sse({"content": "wrong_name, ", "stop": False})
    server.routes["/completion"] = (200, "text/event-stream", server.drip(row))
    editor = start()
    editor.type("    x = ")
    editor.wait_ghost(lambda ghost: "wrong" in ghost)
    server.llama("right")
    editor.type("y")
    assert editor.wait_ghost(lambda ghost: "right" in ghost)
    editor.wait_lua(SETTLED)
    deadline_s = time.monotonic() + 20
    while not server.gone_s:
        assert time.monotonic() < deadline_s, "the first connection is still open"
        time.sleep(0.02)


def test_another_server_answers_after_a_change_of_settings(
    start: Start, server: ModelServer
) -> None:
    editor = start()
    editor.type("    x")
    editor.wait_ghost()
    pid = editor.lua(PID)
    with ModelServer() as other:
        other.llama(" = other()")
        editor.lua("require('lcursor').setup(...)", settings(other))
        editor.type("y")
        assert editor.wait_ghost(lambda ghost: "other()" in ghost)
        editor.lua("require('lcursor').setup(...)", settings(other, max_tokens=3))
        editor.type("z")
        wait_for(lambda: other.asked[-1][3].get("n_predict") == 3)
        assert other.paths().count("/props") == 1
    assert editor.lua(PID) == pid


def test_a_killed_host_comes_back_and_completes(start: Start) -> None:
    editor = start()
    pid = editor.lua(PID)
    os.kill(pid, signal.SIGKILL)
    editor.wait_lua("local i = require('lcursor.host').info(); return i.pid and i.pid ~= ...", pid)
    editor.wait_state("ready")
    editor.type("    ")
    assert editor.wait_ghost(lambda ghost: "return a + b" in ghost)


def test_a_server_that_fails_and_is_repaired(start: Start, server: ModelServer) -> None:
    server.json("/completion", {"error": {"message": "out of order"}}, status=500)
    editor = start()
    editor.type("    x")
    log = """
    local lines = vim.fn.readfile(require("lcursor.ui.log").path())
    return table.concat(lines, "\\n"):find("out of order", 1, true)
    """
    editor.wait_lua(log)
    assert not editor.ghost()
    server.llama(" = 1")
    editor.type("y")
    assert editor.wait_ghost(lambda ghost: "= 1" in ghost)
