"""Agents as people have them: a real Neovim, its real host, a model that follows a script."""

from __future__ import annotations

from lcursor.drive.editor import Editor
from tests.nvim.home import A, Home, told

TEXT = """
local run = require("lcursor.agent").current()
local lines = run and run.buf and vim.api.nvim_buf_get_lines(run.buf, 0, -1, false) or {}
return table.concat(lines, "\\n")
"""
HAS = f"return (function() {TEXT} end)():find(..., 1, true) ~= nil"
HUNKS = "return #require('lcursor.edit.proposals').hunks(0)"
READ = "I read it.\n```view a.py\n```"
RUN = "I run it.\n```bash\ntouch made\n```"
EDIT = """\
I change it.
```edit a.py
<<<<<<< SEARCH
    return x
=======
    return x + 1
>>>>>>> REPLACE
```"""
AGAIN = EDIT.replace("    return x\n", "    return x + 1\n", 1).replace("x + 1\n>", "x + 2\n>")
FINISH = "```finish\nalpha adds one.\n```"


def has(editor: Editor, text: str) -> None:
    """Wait until the buffer of the run holds a text."""
    try:
        editor.wait_lua(HAS, text)
    except TimeoutError:
        raise AssertionError(editor.lua(TEXT), editor.lua("return notes")) from None


def test_a_task_with_an_approval_becomes_hunks(home: Home) -> None:
    editor = home.open()
    home.replies += [READ, RUN, EDIT, FINISH]
    editor.command("LCursor agent policy=ask make alpha add one")
    has(editor, "? command · waits for approval\n```bash\ntouch made\n```\n")
    editor.keys("]wga")
    has(editor, "## Done\n\nalpha adds one.")
    text = editor.lua(TEXT)
    assert "✓ read a.py:1-6" in text
    assert "✓ command touch made" in text
    assert "✓ edit a.py:2-2 · 1 line changed" in text
    assert "tests not run · 2 files · +1 −1 lines · 3 steps" in text
    assert "```view" not in text
    assert not (home.project / "made").exists()
    assert (home.project / "a.py").read_text() == A
    editor.keys("<C-w>p")
    editor.wait_lua(f"{HUNKS} == 1")
    editor.keys("]hghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")


def test_an_agent_changes_again_what_the_user_accepted(home: Home) -> None:
    editor = home.open()
    home.replies += [READ, EDIT, FINISH]
    editor.command("LCursor agent make alpha add one")
    has(editor, "## Done")
    editor.keys("<C-w>p")
    editor.wait_lua(f"{HUNKS} == 1")
    editor.keys("]hghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    home.replies += [AGAIN, FINISH.replace("one", "two")]
    editor.keys("<C-w>pGiadd two instead<Esc><CR>")
    has(editor, "alpha adds two.")
    editor.keys("<C-w>p")
    editor.wait_lua(f"{HUNKS} == 1")
    editor.keys("]hghh")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 2'")


def test_a_rejection_is_what_the_model_reads(home: Home) -> None:
    editor = home.open()
    home.replies += [RUN, FINISH]
    editor.command("LCursor agent policy=ask make it")
    has(editor, "waits for approval")
    editor.keys("GAuse make instead<Esc>]wgx")
    has(editor, "✗ command touch made · rejected")
    has(editor, "## Done")
    assert "use make instead" in home.asked[1]["messages"][-1]["content"]


def test_a_run_is_continued_in_another_neovim(home: Home) -> None:
    editor = home.open()
    home.replies += [READ, RUN]
    editor.command("LCursor agent policy=ask make alpha add one")
    has(editor, "waits for approval")
    other = home.open_beside()
    other.command("LCursor agent resume")
    told(other, "is already running")
    other.wait_lua("return #vim.api.nvim_list_wins() == 1")
    home.kill(editor)
    home.replies += [EDIT, FINISH]
    other.command("LCursor agent list")
    other.wait_lua("vim.cmd.normal('R') return vim.fn.getline(1):find('stopped') ~= nil")
    other.keys("r")
    has(other, "waits for approval")
    assert "✓ read a.py:1-6" in other.lua(TEXT)
    other.keys("]wga")
    has(other, "## Done\n\nalpha adds one.")
    other.keys("<C-w>p")
    other.wait_lua(f"{HUNKS} == 1")


def test_a_plan_is_carried_out(home: Home) -> None:
    editor = home.open()
    home.replies += [READ, "```finish\n1. Change alpha\n```", EDIT, FINISH]
    editor.command("LCursor agent plan make alpha add one")
    has(editor, "## Plan\n\n1. Change alpha")
    editor.keys("gg/Change<CR>A carefully<Esc><CR>")
    has(editor, "## Done\n\nalpha adds one.")
    assert "1. Change alpha carefully" in home.asked[2]["messages"][-1]["content"]
