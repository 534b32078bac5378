"""A person with a project: real Neovims and hosts, and one server that follows a script."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, ChatServer, say

A = "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return y\n"
COUNT = "return require('lcursor.edit.proposals').count()"
IDLE = "local s = require('lcursor.chat').current() return s and s.key ~= '' and not s.turn"
"""A chat is open, and nobody writes in it."""
LINES = """
local buf = require("lcursor.chat").current().buf
return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
"""
"""Of the chat."""
NOTES = """
_G.notes = {}
vim.notify = function(text) table.insert(_G.notes, text) end
"""
PYTHON = f"""\
#!{sys.executable} -I
import runpy, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
%s
del sys.argv[: sys.argv.index("utf8") + 1]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A Python that runs some code before a host."""


class Home:
    """A person with a project, whose Neovims ask one scripted server."""

    def __init__(self, neovim: Path, path: Path, stack: ExitStack) -> None:
        self._neovim, self.path, self._stack = neovim, path, stack
        self._editor = ExitStack()
        stack.callback(self._editor.close)
        self.asked: list[dict[str, Any]] = []
        self.replies: list[str | Answer] = []
        self.answer: Callable[[dict[str, Any]], Answer] | None = None
        """Answers in their place."""
        self.settings: dict[str, Any] = {}
        """Other settings."""
        self.python = sys.executable
        """Starts the next hosts."""
        self.project = path / "project"
        self.project.mkdir(parents=True)
        (self.project / "pyproject.toml").touch()
        (self.project / "a.py").write_text(A)
        (self.project / "b.py").write_text("b = 1\n")
        self.server = stack.enter_context(ChatServer(self._answer))

    def _answer(self, body: dict[str, Any]) -> Answer:
        self.asked.append(body)
        if self.answer is not None:
            return self.answer(body)
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Answer) else say(*reply.splitlines(keepends=True))

    def open(self, *files: Path, cwd: Path | None = None, **edit: Any) -> Editor:
        """Start a Neovim, in the place of those before.

        Args:
            files: that it opens; by default `a.py`.
            cwd: by default the project.
            edit: settings of edits.
        """
        self._editor.close()
        return self.open_beside(*files, cwd=cwd, **edit)

    def open_beside(self, *files: Path, cwd: Path | None = None, **edit: Any) -> Editor:
        """Start a Neovim beside those that run; arguments as for `open`."""
        editor = Editor(
            self._neovim,
            self.path,
            init=self.init(**edit),
            files=files or (self.project / "a.py",),
            cwd=cwd or self.project,
        )
        return self._editor.enter_context(editor)

    def init(self, **edit: Any) -> str:
        """Return Lua for an init.lua with these settings of edits."""
        models = {name: {"url": self.server.url, "model": name} for name in ("fake", "big")}
        table: Mapping[str, Any] = {
            "python": self.python,
            "completion": {"model": "/nowhere.gguf", "auto_trigger": False},
            "models": models,
            "chat": {"model": "fake"},
            "edit": edit,
            **self.settings,
        }
        init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        return init + "vim.o.swapfile = false\n" + NOTES

    def disable_sandbox(self) -> None:
        """Start the next hosts as on a machine where no sandbox works."""
        self.change_hosts("from lcursor.process import sandbox\nsandbox.LEVELS = ()")

    def change_hosts(self, code: str) -> None:
        """Start the next hosts after some code."""
        python = self.path / "python"
        python.write_text(PYTHON % code)
        python.chmod(0o755)
        self.python = str(python)

    def kill(self, editor: Editor) -> None:
        """Kill a Neovim: it can say nothing any more, nor write anything down."""
        os.kill(editor.lua("return vim.uv.os_getpid()"), signal.SIGKILL)


def noted(editor: Editor, text: str) -> None:
    """Wait for a message."""
    try:
        editor.wait_lua("return table.concat(notes, '\\n'):find(..., 1, true) ~= nil", text)
    except TimeoutError:
        raise AssertionError(editor.lua("return notes")) from None


def processes(home: Path) -> dict[int, str]:
    """Return the command lines of all processes that were started in a home."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"HOME={home}\0".encode() in (entry / "environ").read_bytes():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command:  # else it has ended, and its parent has not asked how
                    found[int(entry.name)] = command
    return found


def proposed(editor: Editor, count: int = 1) -> None:
    """Wait until so many changes are open and nothing runs."""
    editor.wait_lua(f"{COUNT} >= ... and #require('lcursor.edit').running() == 0", count)


def accept_all(editor: Editor) -> None:
    """Accept all of an edit: first the files that change on the disk are named."""
    for _ in range(2):
        editor.command("LCursor hunk accept all")


def told(editor: Editor, words: str) -> str:
    """Wait until the user is told something with these words, and return it."""
    found: str = editor.wait_lua(
        "for _, n in ipairs(notes) do if n:find(..., 1, true) then return n end end", words
    )
    return found
