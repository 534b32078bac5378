"""Several attempts at one task: a real Neovim and host, a model that answers by script."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.agent.attempts import TEMPERATURE
from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, say
from tests.nvim.home import Home, noted
from tests.nvim.test_agent_real import EDIT, FINISH, READ

BETA = EDIT.replace("return x\n", "return y\n").replace("x + 1", "y * 3")
BEST = EDIT.replace("x + 1", "x + 2")
LINES = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"


def answers(home: Home, *others: str) -> None:
    """Let the first attempt add one, and the others what is given."""
    edits = list(others)

    def answer(body: dict[str, Any]) -> Answer:
        count = sum(each["role"] == "assistant" for each in body["messages"])
        text = (READ, "", FINISH)[min(count, 2)]
        if count == 1:
            text = edits.pop(0) if body["temperature"] == TEMPERATURE else EDIT
        return say(*text.splitlines(keepends=True))

    home.answer = answer


def compared(editor: Editor) -> list[str]:
    """Return the lines of the comparison."""
    editor.command("LCursor agent compare")
    editor.wait_lua(f"return ({LINES.removeprefix('return ')}):find('#1', 1, true) ~= nil")
    return str(editor.lua(LINES)).splitlines()


def test_the_attempt_that_passes_the_tests_is_shown_and_others_can_be(home: Home) -> None:
    answers(home, BEST, EDIT)
    editor = home.open(test="grep -q 'x + 2' a.py")
    editor.command("LCursor agent n=3 make alpha add two")
    noted(editor, "3 attempts, 1 pass the tests, #")
    editor.keys("q")
    assert editor.lua("return vim.fn.bufname()").endswith("a.py")
    editor.keys("]hghh")  # five keys
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 2'")
    editor.keys("u")
    rows = compared(editor)
    assert len(rows) == 3
    assert rows[0].startswith("* #")
    assert "tests passed" in rows[0]
    assert all("tests failed" in row for row in rows[1:]), rows
    (same,) = (row for row in rows if "same as" in row)
    assert "+1 −1" in same
    editor.keys("j<CR>")
    editor.wait_lua("return require('lcursor.edit.proposals').hunks(0)[1] ~= nil")
    editor.keys("ghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")


def test_the_users_choice_of_an_attempt_stays(home: Home) -> None:
    answers(home, BEST)
    editor = home.open()
    editor.command("LCursor agent n=2 make alpha add two")
    noted(editor, "2 attempts, #1 is shown")
    editor.keys("q]v")
    shown = "return require('lcursor.edit.proposals').hunks(0)[1].new[1] == '    return x + %d'"
    editor.wait_lua(shown % 2)
    group = "require('lcursor.agent').current().group"
    editor.lua(f"require('lcursor.agent.attempts').update({group}, vim.fn.getcwd())")
    noted(editor, "2 attempts, #2 is shown")
    assert editor.lua(shown % 2)
    editor.keys("]v")
    editor.wait_lua(shown % 1)


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("grep -q 'x + 1' a.py && grep -q 'y \\* 3' a.py", "pass"),
        ("echo 'FAIL: test_beta'; exit 1", "fail: test_beta"),
    ],
)
def test_the_tests_run_on_hunks_of_several_attempts(test: str, text: str, home: Home) -> None:
    answers(home, BETA)
    editor = home.open(test=test)
    editor.command("LCursor agent n=2 make alpha add one and beta multiply")
    noted(editor, "2 attempts, #")
    editor.keys("qgg]hghh")
    accepted = "return #vim.iter(vim.api.nvim_buf_get_lines(0, 0, -1, false)):filter(%s):totable()"
    changed = accepted % "function(line) return line:find('[+*]') end"
    editor.wait_lua(f"return (function() {changed} end)() == 1")
    other = 2 if "x + 1" in editor.lua("return vim.fn.getline(2)") else 1
    compared(editor)
    editor.keys(f"/#{other}<CR><CR>")
    editor.wait_lua("return require('lcursor.edit.proposals').hunks(0)[1] ~= nil")
    editor.keys("ghh")
    editor.wait_lua(f"return (function() {changed} end)() == 2")
    noted(editor, f"with hunks of #1 and #2 the tests {text}")


def test_a_wrong_number_of_attempts_is_reported(home: Home) -> None:
    editor = home.open()
    editor.command("LCursor agent n=9 make alpha add two")
    noted(editor, "n is a number from 1 to 8")
    editor.command("LCursor agent compare")
    noted(editor, "no attempts to compare")
