"""The chat as people have it: a real Neovim, its real host, a server that follows a script."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from signal import SIGKILL
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.chat_server import Answer, Hang, delta, say
from tests.fakes.loopback import sse
from tests.nvim.home import IDLE, LINES, Home, told

FAILURE = "local f = require('lcursor.chat').current().failure return f and f.message"


def opened(editor: Editor) -> None:
    """Open a chat, and wait until it can be asked."""
    editor.command("LCChat")
    editor.wait_lua(IDLE)


def answered(editor: Editor, text: str) -> None:
    """Wait until an answer that ends with a line is whole."""
    editor.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), ...)", text)
    editor.wait_lua(IDLE)


def lines(editor: Editor) -> list[str]:
    """Return the lines of the chat."""
    found: list[str] = editor.lua(LINES)
    return found


def last(body: dict[str, Any]) -> str:
    """Return the question as the model reads it."""
    text: str = body["messages"][-1]["content"]
    return text


def test_a_mistyped_command_is_said_and_not_sent(home: Home) -> None:
    editor = home.open()
    home.replies += ["One.", "Two."]
    opened(editor)
    editor.keys("i/explian this please<Esc><CR>")
    said = editor.wait_lua(FAILURE)
    assert said == "there is no command /explian; did you mean /explain?"
    assert lines(editor) == ["## You", "", "/explian this please"]
    assert home.asked == []
    shown = "✗ there is no command /explian"
    assert editor.screen.wait(lambda screen: shown in "\n".join(screen.rows()), 20)
    editor.keys("0ea<BS><BS><BS>ain<Esc><CR>")
    answered(editor, "One.")
    assert "Explain" in last(home.asked[0])


def test_a_mistyped_command_in_an_earlier_place_keeps_the_draft(home: Home) -> None:
    editor = home.open()
    home.replies += ["One."]
    opened(editor)
    editor.keys("iwhat?<Esc><CR>")
    answered(editor, "One.")
    editor.keys("Goa draft<Esc>3GS/explian it<Esc><CR>")
    editor.wait_lua(FAILURE)
    assert lines(editor)[-5:] == ["## You", "", "/explian it", "", "a draft"]
    assert lines(editor)[:5] == ["## You", "", "what?", "", "## Model"]
    assert len(home.asked) == 1


def test_a_model_that_there_is_not_is_rejected(home: Home) -> None:
    editor = home.open()
    opened(editor)
    editor.command("LCursor chat model bgi")
    assert told(editor, "bgi").startswith(
        "lcursor: there is no model called 'bgi'. Did you mean big"
    )
    editor.command("LCursor chat model big")
    editor.wait_lua("return require('lcursor.chat').current().model == 'big'")


def test_an_export_says_who_gave_each_answer(home: Home) -> None:
    editor = home.open()
    home.replies += ["One.", "Two.", "Three."]
    opened(editor)
    for number, word in enumerate(("One.", "Two.", "Three.")):
        if number == 1:
            editor.command("LCursor chat model big")
            editor.wait_lua("return require('lcursor.chat').current().model == 'big'")
        editor.keys(f"GAask {number}<Esc><CR>")
        answered(editor, word)
    editor.keys("G?^Three<CR>CMine<Esc><CR>")  # what one puts in its place is no model's
    editor.wait_lua("return require('lcursor.chat').current().messages[6].branches == 2")
    live, stored = home.project / "live.md", home.project / "stored.md"
    editor.command(f"LCursor chat export {live}")
    heads = [line for line in live.read_text().splitlines() if line.startswith("## M")]
    assert heads == ["## Model (fake)", "## Model (big)", "## Model"]
    editor = home.open()
    editor.command("LCursor chat last")
    editor.wait_lua(IDLE)
    editor.command(f"LCursor chat export {stored}")
    assert stored.read_text() == live.read_text()


@pytest.mark.parametrize("way", ["quit", "kill the host", "kill both", "restart"])
def test_an_answer_that_broke_off_says_why_ever_after(home: Home, way: str) -> None:
    home.answer = lambda _: Answer([sse(delta(content="So")), Hang()])
    editor = home.open()
    opened(editor)
    editor.keys("iwhy?<Esc><CR>")
    editor.wait_lua("return vim.tbl_contains((function() " + LINES + " end)(), 'So')")
    if way.startswith("kill"):
        os.kill(editor.lua("return vim.fn.jobpid(require('lcursor.host').info().job)"), SIGKILL)
    if way == "kill both":
        home.kill(editor)
    elif way == "restart":
        editor.command("LCursor restart")
    if way in ("kill the host", "restart"):
        assert editor.wait_lua(FAILURE) == "the Python host ended"
    editor = home.open()
    editor.command("LCursor chat last")
    editor.wait_lua(IDLE)
    said = "✗ Neovim or its Python host"  # the rest is on the next line
    assert editor.screen.wait(lambda screen: said in "\n".join(screen.rows()), 20)
    home.answer = None
    home.replies += ["Whole."]
    editor.keys("GAagain?<Esc><CR>")
    answered(editor, "Whole.")
    assert said in "\n".join(editor.screen.rows())


def test_an_answer_that_was_cut_off_says_so_ever_after(home: Home) -> None:
    home.replies += [say("Because the", finish="length")]
    editor = home.open()
    opened(editor)
    editor.keys("iwhy?<Esc><CR>")
    answered(editor, "Because the")
    said = "✗ it reached the limit"  # the rest is on the next line
    assert editor.screen.wait(lambda screen: said in "\n".join(screen.rows()), 20)
    live, stored = home.project / "live.md", home.project / "stored.md"
    editor.command(f"LCursor chat export {live}")
    assert "(incomplete: it reached the limit of its length)" in live.read_text()
    editor = home.open()
    editor.command("LCursor chat last")
    editor.wait_lua(IDLE)
    assert editor.screen.wait(lambda screen: said in "\n".join(screen.rows()), 20)
    editor.command(f"LCursor chat export {stored}")
    assert stored.read_text() == live.read_text()


def test_what_is_mentioned_is_sent_as_a_reader_would_name_it(home: Home) -> None:
    git = partial(subprocess.run, cwd=home.project, check=True, capture_output=True, text=True)
    who = ("-c", "user.name=x", "-c", "user.email=x@x")
    git(("git", "init", "-q"))
    git(("git", "add", "."))
    git(("git", *who, "commit", "-qm", "First"))
    name = git(("git", "rev-parse", "--short", "HEAD")).stdout.strip()
    (home.project / "Makefile").write_text('all:\n\t@echo "a.py:2: bad return"; exit 1\n')
    editor = home.open()
    home.replies += ["One."]
    editor.command("set errorformat=%f:%l:\\ %m")
    editor.command("silent! make!")
    opened(editor)
    editor.keys("isee @quickfix and @commit and @terminal:zsh<Esc><CR>")
    answered(editor, "One.")
    sent = last(home.asked[0])
    assert "Quickfix list, :make:" in sent
    assert "\na.py:2: bad return\n" in sent
    assert f"Commit {name} First:\n" in sent
    assert f"\nCommit {name} b.py:\n" in sent
    assert "zsh (no terminal of that name has output)" in sent


def test_an_answer_that_was_put_right_is_what_the_model_reads(home: Home) -> None:
    editor = home.open()
    home.replies += ["One.", "Two."]
    opened(editor)
    editor.keys("iask<Esc><CR>")
    answered(editor, "One.")
    editor.keys("G?^One<CR>CMine.<Esc><CR>")
    editor.wait_lua("return require('lcursor.chat').current().messages[2].branches == 2")
    editor.keys("GAand?<Esc><CR>")
    answered(editor, "Two.")
    said = [each["content"] for each in home.asked[1]["messages"] if each["role"] == "assistant"]
    assert said == ["Mine."]
