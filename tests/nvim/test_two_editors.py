"""Two Neovims of one person on one project, both alive: edits, chats, and the server they share."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, Part, Wait, delta
from tests.fakes.loopback import sse
from tests.nvim.home import IDLE, LINES, A, Home, processes, proposed
from tests.unit.llm.serving import FAKE, write_gguf
from tests.waiting import wait_for

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
NEW = "def alpha(x):\n    return x + 1\n"
BETA = "def beta(y):\n    return 2 * y\n"
OPEN = "require('lcursor.chat').current()"
FAILURE = "local f = require('lcursor.chat').current().failure return f and f.message"


def ask(editor: Editor, question: str, wanted: str) -> None:
    """Ask in the chat, and wait for a line of the answer."""
    editor.keys(f"GA{question}<Esc><CR>")
    editor.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), ...)", wanted)


def reread(editor: Editor) -> None:
    """Have Neovim read what others wrote."""
    editor.command("set autoread | checktime")


def accept(editor: Editor, row: int) -> None:
    """Accept the hunk at a row, once it is there."""
    editor.command(str(row))
    editor.wait_lua("return require('lcursor.edit.hunks').at_cursor() ~= nil")
    editor.keys("ghh")


def test_hunks_of_one_file_are_open_in_both(home: Home) -> None:
    one, two = home.open(), home.open_beside()
    home.replies += [f"```python\n{BETA}```", f"```python\n{NEW}```"]
    one.command("5,6LCEdit double it")
    proposed(one)
    two.command("1,2LCEdit add one")
    proposed(two)
    accept(two, 2)
    two.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    two.command("write")

    reread(one)
    one.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    accept(one, 6)
    one.wait_lua("return vim.fn.getline(6) == '    return 2 * y'")
    one.command("write")
    assert (home.project / "a.py").read_text() == NEW + "\n\n" + BETA


def test_one_undoes_what_the_other_wrote(home: Home) -> None:
    one, two = home.open(), home.open_beside()
    home.replies += [f"```python\n{NEW}```"]
    two.command("1,2LCEdit add one")
    proposed(two)
    accept(two, 2)
    two.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    two.command("write")
    reread(one)
    one.wait_lua("return vim.fn.getline(2) == '    return x + 1'")

    one.command("LCursor edit undo")
    one.wait_lua("return vim.fn.getline(2) == '    return x'")
    one.command("write")
    assert (home.project / "a.py").read_text() == A
    reread(two)
    two.wait_lua("return vim.fn.getline(2) == '    return x'")
    two.command("LCursor edit redo")
    two.wait_lua("return vim.fn.getline(2) == '    return x + 1'")


def test_the_same_chat_is_answered_in_one_at_a_time(home: Home) -> None:
    rest = Wait()
    parts: list[Part] = [
        sse(delta(content="So\n")),
        rest,
        sse(delta(content="be it.")),
        sse(delta("stop")),
    ]
    home.replies += [Answer([*parts, b"data: [DONE]\n\n"]), "Two."]
    one = home.open()
    one.command("LCChat")
    one.wait_lua(IDLE)
    ask(one, "why?", "So")
    two = home.open_beside()
    two.command("LCursor chat last")
    two.wait_lua(f"return {OPEN} and vim.tbl_contains((function() {LINES} end)(), 'So')")

    two.keys("GAand me?<Esc><CR>")
    said = two.wait_lua(FAILURE)
    assert said == "another Neovim is writing an answer in this chat"
    shown = "✗ another Neovim is writing an"
    assert two.screen.wait(lambda screen: shown in "\n".join(screen.rows()), 20)
    assert len(home.asked) == 1

    rest.event.set()
    one.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), 'be it.')")
    one.wait_lua(IDLE)
    two.keys("<CR>")
    two.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), 'Two.')")
    said_before = [message["content"] for message in home.asked[1]["messages"]]
    assert "So\nbe it." in said_before
    assert said_before[-1].endswith("and me?")


SETTINGS = """
vim.g.lcursor = {
  python = %r,
  completion = { model = "/nowhere.gguf", auto_trigger = false },
  chat = { model = %r, server = "auto" },
}
vim.o.swapfile = false
"""


class Sharing:
    """Two Neovims with chats, and the one llama-server that the first of them starts."""

    def __init__(self, neovim: Path, home: Path) -> None:
        self.home, self.project = home, home / "project"
        self.hold, self.said = home / "hold", home / "said"
        self.project.mkdir(parents=True)
        (self.project / "Makefile").touch()
        self._neovim = neovim
        self._model = write_gguf(home / "toy.gguf")
        programs = home / "bin"
        programs.mkdir()
        program = programs / "llama-server"
        program.write_text(FAKE.read_text().replace("/usr/bin/env python3", sys.executable))
        program.chmod(0o755)
        self._env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "FAKE_SAID": str(self.said),
            "FAKE_HOLD": str(self.hold),
        }

    def open(self) -> Editor:
        """Start a Neovim with an empty chat."""
        init = SETTINGS % (sys.executable, str(self._model))
        editor = Editor(self._neovim, self.home, init=init, cwd=self.project, env=self._env)
        editor.command("LCChat!")
        editor.wait_lua(IDLE, timeout_s=60)
        return editor


@pytest.fixture
def sharing(neovim: Path, tmp_path: Path) -> Sharing:
    return Sharing(neovim, tmp_path / "home")


@pytest.mark.linux
def test_the_first_quits_while_the_server_answers_the_second(sharing: Sharing) -> None:
    with ExitStack() as stack:
        one = stack.enter_context(sharing.open())
        ask(one, "first?", "So be it.")
        one.wait_lua(IDLE)
        two = stack.enter_context(sharing.open())
        sharing.hold.touch()
        ask(two, "second?", "So")
        one.close()
        sharing.hold.unlink()
        two.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), 'So be it.')")
        two.wait_lua(IDLE)
        assert two.lua(FAILURE) is None
        two.keys("Gothird?<Esc><CR>")
        two.wait_lua("return #require('lcursor.chat').current().messages == 4")
        two.wait_lua(IDLE)
        assert len(sharing.said.read_text().splitlines()) == 1  # servers that were started
        two.command("LCursor server stop")
    wait_for(lambda: not processes(sharing.home), what="the server and all else have ended")
