"""Next edits with a real Neovim and its real host; no model is loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.nvim.next_edits import CONFIG, RENAME


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "project/a.py"
    found.parent.mkdir()
    found.write_text(RENAME)
    return found


def test_a_rename_with_the_real_host(neovim: Path, tmp_path: Path, path: Path) -> None:
    table = json.dumps({**CONFIG, "python": sys.executable})
    init = f"vim.g.lcursor = vim.json.decode([==[{table}]==])\n"
    home = tmp_path / "home"
    home.mkdir()
    with Editor(neovim, home, init=init, files=(path,), cwd=path.parent) as editor:
        editor.keys("/timeout<CR>cwdeadline<Esc>")
        key = "return vim.fn.maparg('<Tab>', 'n', false, true).desc == ..."
        for line in (3, 5):
            editor.wait_lua(key, "lcursor: go there; apply")
            editor.keys("<Tab>")
            editor.wait_lua(f"return vim.fn.getline({line}):find('deadline') ~= nil")
        editor.wait_lua(key.replace("==", "~="), "lcursor: go there; apply")
