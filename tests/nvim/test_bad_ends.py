"""Neovim ends badly: nothing that was said is lost, and no process of ours lives on."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from signal import SIGHUP, SIGKILL, SIGTERM

import pytest

from lcursor.drive.editor import Editor, prepare_home
from tests.fakes.chat_server import Answer, Hang, delta
from tests.fakes.loopback import sse
from tests.nvim.home import IDLE, LINES, Home, processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
WORKER = """
local state = require("lcursor.index").states()[1]
return state and state.phase == "ready" and state.pid
"""


def half_an_answer(_: object) -> Answer:
    """Return an answer that stops after its first word, while the model is still writing."""
    return Answer([sse(delta(content="So")), Hang()])


def ask(editor: Editor) -> None:
    """Ask in the chat, and wait for the half of the answer that comes."""
    editor.command("LCChat")
    editor.wait_lua(IDLE)
    editor.keys("iwhy?<Esc><CR>")
    editor.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), 'So')")


def is_all_there(home: Home) -> Editor:
    """Open the chat again, and see what was said; return the Neovim."""
    editor = home.open()
    editor.command("LCursor chat last")
    editor.wait_lua(IDLE)
    lines = editor.lua(LINES)
    assert lines[:5] == ["## You", "", "why?", "", "## Model"]
    assert "So" in lines
    return editor


def signal(number: int) -> Callable[[Editor], None]:
    """Return what sends a signal to Neovim."""
    return lambda editor: os.kill(editor.client.pid, number)


ENDS = {
    "SIGTERM": signal(SIGTERM),
    "SIGHUP": signal(SIGHUP),
    "SIGKILL": signal(SIGKILL),
    ":cquit": lambda editor: editor.client.notify("nvim_command", "cquit"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.linux
def test_an_end_while_an_answer_is_written(
    home: Home, end: Callable[[Editor], None], request: pytest.FixtureRequest
) -> None:
    home.answer = half_an_answer
    editor = home.open()
    editor.command("LCursor index start")
    worker = editor.wait_lua(WORKER)
    request.addfinalizer(lambda: os.kill(worker, SIGKILL))
    ask(editor)
    assert len(processes(home.path)) >= 3  # Neovim, its host and the worker of the index
    end(editor)
    wait_for(
        lambda: set(processes(home.path)) == {worker},
        what=f"only the worker of the index is left: {processes(home.path)}",
    )
    editor = is_all_there(home)
    editor.command("LCursor index start")
    assert editor.wait_lua(WORKER) == worker


class Terminal:
    """A Neovim in a terminal of its own, as people start it."""

    def __init__(self, neovim: Path, home: Home) -> None:
        self._neovim, self._socket = neovim, home.path / "nvim.sock"
        self._env = {**prepare_home(home.path, home.init(), True), "PATH": os.environ["PATH"]}
        self._env |= {"TERM": "xterm", "LANG": "C.UTF-8"}
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [neovim, "-n", "-i", "NONE", "--listen", self._socket, "a.py"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home.project,
            env=self._env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        wait_for(lambda: self.lua("1") == "1", what="Neovim listens")

    def lua(self, expression: str) -> str:
        """Return the value of a Lua expression, as text."""
        code = "luaeval('" + expression.replace("'", "''") + "')"
        return self._remote("--remote-expr", code)

    def send(self, keys: str) -> None:
        """Press keys."""
        self._remote("--remote-send", keys)

    def _remote(self, *arguments: str) -> str:
        command = [str(self._neovim), "--server", str(self._socket), *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def shut(self) -> None:
        """Close the terminal's window: the kernel hangs up on all that run in it."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1


@pytest.fixture
def terminal(neovim: Path, home: Home) -> Iterator[Terminal]:
    """A Neovim in a terminal, which shall be gone at the end."""
    with ExitStack() as stack:
        home.answer = half_an_answer
        one = Terminal(neovim, home)
        stack.callback(one.process.wait, 30)
        stack.callback(one.process.kill)
        stack.callback(one.shut)
        yield one


@pytest.mark.linux
def test_the_window_of_the_terminal_is_closed(home: Home, terminal: Terminal) -> None:
    terminal.send(":LCChat<CR>")
    wait_for(lambda: terminal.lua(f"(function() {IDLE} end)()") == "true", what="a chat")
    terminal.send("iwhy?<Esc><CR>")
    has_half = f"vim.tbl_contains((function() {LINES} end)(), 'So')".replace("\n", " ")
    wait_for(lambda: terminal.lua(has_half) == "true", what="half an answer")
    terminal.shut()
    terminal.process.wait(30)
    wait_for(lambda: not processes(home.path), what="all have ended")
    is_all_there(home)
