"""Next edits with a real Neovim and its real host; no model is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.nvim.next_edits import CONFIG, RENAME

KEY = "return vim.fn.maparg('<Tab>', 'n', false, true).desc == ..."
ATTACHED = """
return require("lcursor.next_edit.recorder").is_attached(vim.api.nvim_get_current_buf())
"""
FILES = {
    "rename.py": RENAME,
    "a.py": "def fetch(url):\n    return url\n",
    "b.py": "from a import fetch\n\nprint(fetch('b'))\n",
    "deep/c.py": "import a\n\nprint(a.fetch('c'))\n",
    "other.py": "def fetch():\n    pass\n",
    ".env.py": "from a import fetch\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    return found


@pytest.fixture
def editor(neovim: Path, tmp_path: Path, project: Path) -> Iterator[Editor]:
    """A Neovim with a.py, the only file that is open."""
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    table = json.dumps({**CONFIG, "python": sys.executable})
    init = f"vim.g.lcursor = vim.json.decode([==[{table}]==])\n"
    home = tmp_path / "home"
    home.mkdir()
    with Editor(neovim, home, init=init, files=(project / "a.py",), cwd=project) as started:
        started.keys("i<Esc>")
        started.wait_lua(ATTACHED)
        yield started


def wait_screen(editor: Editor, text: str) -> None:
    """Wait for a text on the screen."""
    if not editor.screen.wait(lambda screen: text in "\n".join(screen.rows()), 20):
        raise AssertionError(text + " is not in\n" + "\n".join(editor.screen.rows()))


def test_a_rename(editor: Editor) -> None:
    editor.keys(":edit rename.py<CR>i<Esc>")
    editor.wait_lua(ATTACHED)
    editor.keys("gg/timeout<CR>cwdeadline<Esc>")
    for line in (3, 5):
        editor.wait_lua(KEY, "lcursor: go there; apply")
        editor.keys("<Tab>")
        editor.wait_lua(f"return vim.fn.getline({line}):find('deadline') ~= nil")
    editor.wait_lua(KEY.replace("==", "~="), "lcursor: go there; apply")


def test_the_last_use_is_shown_as_a_hunk_and_not_applied(editor: Editor) -> None:
    editor.keys(":edit rename.py<CR>i<Esc>")
    editor.wait_lua(ATTACHED)
    editor.keys("gg/timeout<CR>cwdeadline<Esc>")
    editor.wait_lua(KEY, "lcursor: go there; apply")
    editor.keys("<Tab>")
    editor.wait_lua("return vim.fn.getline(3):find('deadline') ~= nil")
    editor.wait_lua(KEY, "lcursor: go there; apply")
    editor.keys("<S-Tab>")
    wait_screen(editor, "1 hunk proposed")
    assert "deadline" not in editor.lua("return vim.fn.getline(5)")
    editor.keys("ghA")
    editor.wait_lua("return vim.fn.getline(5):find('deadline') ~= nil")


def test_tab_opens_a_file_that_imports_the_name(editor: Editor) -> None:
    editor.keys("ggwcwload<Esc>")
    wait_screen(editor, "⇥ b.py line 1 fetch→load")
    assert editor.lua("return vim.fn.bufexists('b.py')") == 0
    editor.keys("<Tab>")
    editor.wait_lua("return vim.fn.expand('%:t') == 'b.py'")
    for line in ("from a import load", "print(load('b'))"):
        editor.wait_lua(KEY, "lcursor: go there; apply")
        editor.keys("<Tab>")
        editor.wait_lua("return vim.fn.search(..., 'nw') > 0", line)
    assert editor.lua("return vim.bo.buflisted")


def test_all_files_are_reviewed_as_one_edit(editor: Editor, project: Path) -> None:
    editor.keys("ggwcwload<Esc>:w<CR>")
    wait_screen(editor, "⇥ b.py line 1 fetch→load")
    editor.keys("<S-Tab>")
    wait_screen(editor, "3 hunks proposed in 2 files. ghA accepts all")
    editor.wait_lua("return vim.fn.expand('%:t') == 'b.py'")
    editor.keys("<S-Tab>")  # accepts nothing
    editor.keys("ghA")
    wait_screen(editor, "deep/c.py. ghA again accepts all")
    editor.keys("ghA")
    wait_screen(editor, "1 file written")
    editor.command("silent wall")
    assert (project / "b.py").read_text() == FILES["b.py"].replace("fetch", "load")
    assert (project / "deep/c.py").read_text() == FILES["deep/c.py"].replace("fetch", "load")
    for name in ("other.py", ".env.py"):
        assert (project / name).read_text() == FILES[name]
    editor.keys(":LCursor edit undo<CR>")
    wait_screen(editor, 'undid "`fetch` became `load`')
    editor.command("silent wall")
    assert (project / "b.py").read_text() == FILES["b.py"]
    assert (project / "deep/c.py").read_text() == FILES["deep/c.py"]
