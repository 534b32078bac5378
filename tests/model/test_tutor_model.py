"""The lessons of `:LCursor tutor` about suggestions, with the real host and the real model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lcursor.drive.editor import Editor
from tests.waiting import WAIT_S

DONE = """
local namespace = vim.api.nvim_create_namespace("lcursor.tutor")
local marks = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })
return marks[1][4].virt_text ~= nil
"""
SETTLED = "return require('lcursor.complete').is_settled()"


def test_lesson_1_can_be_done(neovim: Path, model_path: Path, tmp_path: Path) -> None:
    python = os.environ.get("LCURSOR_TEST_PYTHON", sys.executable)
    init = f"vim.g.lcursor = {{ python = {python!r} }}\n"
    with Editor(neovim, tmp_path, init=init, columns=90, lines=60) as editor:
        editor.command("LCursor tutor")
        editor.lua("vim.fn.search('^ *c$')")
        editor.keys("A")
        editor.wait_ghost(lambda text: text.startswith("ount"), timeout_s=WAIT_S)
        editor.wait_lua(SETTLED, timeout_s=WAIT_S)
        editor.type("ou")
        editor.wait_ghost(lambda text: text.startswith("nt"), timeout_s=WAIT_S)
        editor.keys("<C-Right>")
        editor.wait_lua("return vim.trim(vim.api.nvim_get_current_line()) == 'count'")
        editor.wait_ghost(timeout_s=WAIT_S)
        editor.keys("<Tab>")
        editor.wait_lua("return vim.trim(vim.api.nvim_get_current_line()) == 'count += 1'")
        editor.keys("<Esc>")
        editor.lua('vim.fn.search([[first + " " + l$]])')
        editor.keys("A")
        editor.wait_ghost(lambda text: text.startswith("ast"), timeout_s=WAIT_S)
        assert not editor.lua(DONE)
        editor.keys("<C-]>")
        editor.wait_lua(DONE, timeout_s=WAIT_S)
