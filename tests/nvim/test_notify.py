"""What is said stops nobody: no hit-enter prompt, however much comes at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor

ONE = "require('lcursor.ui.notify').info('one thing')"
OTHER = "require('lcursor.ui.notify').warn('another thing')"
PROGRESS = "require('lcursor.ui.notify').progress('half of it')"
REDRAWN = "vim.cmd('normal! ox') vim.api.nvim__redraw({ flush = true })"


@pytest.fixture
def editor(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    with Editor(neovim, tmp_path, columns=80, lines=12) as one:
        one.wait_lua("return vim.v.vim_did_enter == 1")
        yield one


@pytest.mark.parametrize(
    ("said", "last"),
    [
        ((ONE, OTHER), "lcursor: another thing"),
        ((OTHER, PROGRESS), "lcursor: half of it"),
        ((PROGRESS, OTHER, ONE), "lcursor: one thing"),
        ((ONE, ONE, ONE, ONE), "lcursor: one thing"),
        ((ONE, REDRAWN, OTHER), "lcursor: another thing"),
        ((PROGRESS, REDRAWN, PROGRESS, REDRAWN, ONE), "lcursor: one thing"),
    ],
)
def test_messages_at_once_are_no_prompt(editor: Editor, said: tuple[str, ...], last: str) -> None:
    code = " ".join(said)
    editor.lua(f"vim.api.nvim_create_user_command('Say', function() {code} end, {{}})")
    editor.client.notify("nvim_input", ":Say<CR>")

    assert editor.screen.wait(lambda screen: last in "\n".join(screen.rows()), 10)
    mode = editor.client.request("nvim_get_mode")
    assert mode == {"mode": "n", "blocking": False}
    assert "Press ENTER" not in "\n".join(editor.screen.rows())


def test_a_notifier_that_shows_titles_names_the_plugin_once(editor: Editor) -> None:
    editor.lua(
        "vim.notify = function(text, level, opts)"
        " _G.shown = ((opts or {}).title or '') .. text .. level end "
    )
    editor.lua(OTHER)
    assert editor.lua("return _G.shown") == "lcursor: another thing3"


LONG = f"require('lcursor.ui.notify').info('{'long ' * 60}')"
LAYOUT = """
local builtin = vim.notify
vim.notify = loadstring("local builtin = ... return function(...) builtin(...) end", %r)(builtin)
"""


@pytest.mark.parametrize("source", ["@vim/_editor.lua", "@vim/_core/editor.lua"])
def test_a_long_message_is_no_prompt(editor: Editor, source: str) -> None:
    """Neovim's own notifier is recognized wherever Neovim keeps it; 0.12 has moved it."""
    editor.lua(LAYOUT % source)
    editor.lua(f"vim.schedule(function() {LONG} end)")

    assert editor.screen.wait(lambda screen: "long" in "\n".join(screen.rows()), 10)
    assert not editor.client.request("nvim_get_mode")["blocking"]
    assert editor.lua("return vim.fn.execute('messages')").strip().endswith("…")


def test_progress_leaves_a_message_that_came_meanwhile(editor: Editor) -> None:
    def row() -> str:
        editor.command("redraw")
        return editor.screen.rows()[-1].strip()

    editor.lua("vim.cmd.echomsg('\"of an hour ago\"')")
    editor.lua(PROGRESS)
    assert row() == "lcursor: half of it"
    editor.lua("vim.cmd.echomsg('\"of somebody else\"')")
    for _ in range(3):
        editor.lua(PROGRESS)
        assert row() == "of somebody else"
    editor.lua("local now = vim.uv.now() + 11000 vim.uv.now = function() return now end")
    editor.lua(PROGRESS)
    assert row() == "lcursor: half of it"
    editor.lua("vim.cmd.echomsg('\"of somebody else again\"')")
    editor.lua("require('lcursor.ui.notify').progress('all of it', true)")
    assert row() == "lcursor: all of it"


def test_the_hint_of_long_progress_is_kept(editor: Editor) -> None:
    editor.lua(
        f"require('lcursor.ui.notify').progress('{'long ' * 60}', true, ' (:LCursor edit stop)')"
    )
    shown = editor.lua("return vim.fn.execute('messages')").strip()
    assert shown.endswith("… (:LCursor edit stop)")
    assert len(shown) < 80


def test_the_first_way_of_a_long_hint_is_kept(editor: Editor) -> None:
    hint = "Run :LCursor install, or in a shell python -m lcursor models pull qwen2.5-coder-1.5b"
    editor.lua(
        "require('lcursor.ui.notify').error({ code = 'model_missing', level = 'error',"
        f" message = 'The model {'long ' * 20}', hint = '{hint}' }})"
    )
    shown = editor.lua("return vim.fn.execute('messages')").strip()
    assert shown.endswith("…. Run :LCursor install")
    assert len(shown) < 80


def test_a_plugin_that_shows_messages_has_them_whole(editor: Editor) -> None:
    editor.lua("vim.notify = function(text) vim.g.said = text end")
    editor.lua(LONG)
    assert editor.lua("return vim.g.said") == f"lcursor: {'long ' * 60}"


def test_what_was_overwritten_is_kept(editor: Editor) -> None:
    editor.lua(f"{ONE} {OTHER}")
    said = editor.lua("return vim.fn.execute('messages')")
    assert "one thing" in said
    assert "another thing" in said


def test_who_types_a_command_is_not_disturbed(editor: Editor) -> None:
    editor.keys(":echo 12")
    editor.lua(f"{ONE} {OTHER}")
    editor.keys("3<CR>")
    assert editor.screen.wait(lambda screen: "123" in "\n".join(screen.rows()), 10)
