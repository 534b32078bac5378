"""Edits as people have them: a real Neovim, its real host, a server that follows a script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, ChatServer, say

A = "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return y\n"
NEW = "def alpha(x):\n    return x + 1\n"
BETA = "def beta(y):\n    return 2 * y\n"
COUNT = "return require('lcursor.edit.store').count()"
PASTED = """\
a.py
```python
<<<<<<< SEARCH
    return x
=======
    return x + 1
>>>>>>> REPLACE
```

b.py
```python
<<<<<<< SEARCH
b = 1
=======
b = 2
>>>>>>> REPLACE
```
"""


class Home:
    """A person with a project, whose Neovims ask one scripted server."""

    def __init__(self, neovim: Path, path: Path, stack: ExitStack) -> None:
        self._neovim, self._path, self._stack = neovim, path, stack
        self._editor = ExitStack()
        stack.callback(self._editor.close)
        self.asked: list[dict[str, Any]] = []
        self.replies: list[str] = []
        self.project = path / "project"
        self.project.mkdir(parents=True)
        (self.project / "pyproject.toml").touch()
        (self.project / "a.py").write_text(A)
        (self.project / "b.py").write_text("b = 1\n")
        self.server = stack.enter_context(ChatServer(self._answer))

    def _answer(self, body: dict[str, Any]) -> Answer:
        self.asked.append(body)
        return say(*self.replies.pop(0).splitlines(keepends=True))

    def open(self) -> Editor:
        """Start a Neovim, in the place of the one before."""
        self._editor.close()
        table = {
            "python": sys.executable,
            "completion": {"model": "/nowhere.gguf"},
            "chat": {"model": "fake", "models": {"fake": {"url": self.server.url}}},
        }
        init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(table)}]==])\n"
        init += "vim.o.swapfile = false\n"
        files = (self.project / "a.py",)
        editor = Editor(self._neovim, self._path, init=init, files=files, cwd=self.project)
        return self._editor.enter_context(editor)


@pytest.fixture
def home(neovim: Path, tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(neovim, tmp_path / "home", stack)


def proposed(editor: Editor, count: int = 1) -> None:
    """Wait until so many changes are open and nothing runs."""
    editor.wait_lua(f"{COUNT} >= ... and #require('lcursor.edit').running() == 0", count)


def test_asked_taken_in_part_and_taken_back_as_a_whole(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{NEW}```"]
    editor.command("1,2LCEdit add one")
    proposed(editor)
    assert "add one" in json.dumps(home.asked[0]["messages"])
    assert editor.lines() == A.splitlines()
    editor.keys("2Ggh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    editor.keys("Gotyped<Esc>")
    editor.wait_lua("return vim.fn.getline('$') == 'typed'")
    editor.command("LCursor undo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x'")
    assert editor.lines() == [*A.splitlines(), "typed"]
    editor.command("LCursor redo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    assert editor.lines() == [
        NEW.splitlines()[0],
        NEW.splitlines()[1],
        *A.splitlines()[2:],
        "typed",
    ]


def test_another_way_is_another_alternative(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{NEW}```", "```python\ndef alpha(x):\n    return 1 + x\n```"]
    editor.command("1,2LCEdit add one")
    proposed(editor)
    editor.keys("2G]H")
    editor.wait_lua("return #require('lcursor.edit.store').turns() == 2")
    proposed(editor)
    editor.keys("gh")
    editor.wait_lua("return vim.fn.getline(2) == '    return 1 + x'")


def test_all_of_what_was_pasted_is_taken_and_taken_back(home: Home) -> None:
    editor = home.open()
    editor.lua("vim.fn.setreg('\"', ...)", PASTED)
    editor.command("LCursor apply")
    proposed(editor, 2)
    assert (home.project / "b.py").read_text() == "b = 1\n"
    editor.command("LCursor accept all")
    editor.wait_lua(f"{COUNT} == 0")
    assert editor.lines()[1] == "    return x + 1"
    assert (home.project / "a.py").read_text() == A  # the user saves it
    assert (home.project / "b.py").read_text() == "b = 2\n"
    editor.command("LCursor undo")
    editor.wait_lua("return vim.fn.getline(2) == '    return x'")
    assert (home.project / "b.py").read_text() == "b = 1\n"


def test_what_was_open_when_neovim_ended_is_there_again(home: Home) -> None:
    editor = home.open()
    home.replies += [f"```python\n{BETA}```"]
    editor.command("5,6LCEdit double it")
    proposed(editor)
    editor = home.open()
    editor.command("LCursor edits")
    editor.wait_lua("return vim.fn.getline(1):find('1 open') ~= nil")
    editor.keys("<CR>")
    editor.wait_lua(f"{COUNT} == 1")
    editor.wait_lua("return vim.bo.buftype == 'quickfix'")
    editor.keys("<CR>gh")
    editor.wait_lua("return vim.fn.getline(6) == '    return 2 * y'")
