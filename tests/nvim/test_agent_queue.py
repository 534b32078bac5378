"""The queue of tasks: a real Neovim and host, a model that answers by script."""

from __future__ import annotations

import pytest

from tests.nvim.home import Home, noted
from tests.nvim.test_agent_real import EDIT, FINISH, READ

TESTS = """\
import unittest
from a import alpha

class T(unittest.TestCase):
    def test_alpha(self):
        self.assertEqual(alpha(1), 2)
"""
IDLE = "from lcursor.agent import queue\nqueue.wait_until_idle = lambda stopped: stopped.check()"
LINES = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"


@pytest.fixture
def idle(home: Home) -> Home:
    home.change_hosts(IDLE)
    (home.project / "test_all.py").write_text(TESTS)
    return home


def test_only_changes_with_which_the_tests_pass_are_listed(idle: Home) -> None:
    home = idle
    (home.project / "b.py").write_text("b = 1  # TODO(agent): make b two\n")
    home.replies += [READ, EDIT, FINISH]
    home.replies += [EDIT.replace("x + 1", "x + 2"), *[FINISH] * 5]
    editor = home.open(test="python3 -m unittest")
    editor.command("LCursor agent queue")
    editor.wait_lua("return vim.fn.line('$') == 2")
    assert "Fix the failing test test_alpha" in str(editor.lua(LINES)).splitlines()[0]
    assert "make b two (b.py:1)" in str(editor.lua(LINES)).splitlines()[1]
    assert not home.asked  # nothing runs before the user has seen it
    editor.keys("<CR>")
    noted(editor, "the queue is done: 1 change with which the tests pass, 2 tried")
    (line,) = str(editor.lua(LINES)).splitlines()
    assert line.split()[:4] == ["2", "lines", "Fix", "the"]
    assert line.endswith("a.py")
    editor.keys("<CR>")
    editor.wait_lua("return #require('lcursor.edit.proposals').all() == 1")


def test_the_queue_needs_tests(home: Home) -> None:
    editor = home.open()
    editor.command("LCursor agent queue")
    noted(editor, "the queue lists only changes with which the tests pass")


def test_a_queue_can_be_stopped(idle: Home) -> None:
    home = idle
    home.replies += [READ] * 50
    editor = home.open(test="python3 -m unittest")
    editor.command("LCursor agent queue")
    editor.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]:find('Fix') ~= nil")
    editor.keys("<CR>")
    running = "return #require('lcursor.agent.winbar').running() == {}"
    editor.wait_lua(running.format(1))
    editor.keys("s")
    editor.wait_lua(running.format(0))
