"""The index as people have it: real Neovims, their real hosts, and the one worker they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from lcursor.index import launch
from tests.unit.index import workers
from tests.waiting import wait_for

SETTINGS = """
vim.g.lcursor = {
  python = %r,
  completion = { model = "/nowhere.gguf" },
  index = { embedder = "" },
}
"""
FOUND = """
return vim.tbl_map(function(item)
  return vim.fn.fnamemodify(vim.fn.bufname(item.bufnr), ":t")
end, vim.fn.getqflist())
"""
ODD = b"odd \xe9\n.py"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One person's, as this process sees it too."""
    home = tmp_path / "home"
    for name, folder in (("DATA", "data"), ("CACHE", "cache"), ("STATE", "state")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    monkeypatch.delenv("LCURSOR_DATA", raising=False)
    (home / "run").mkdir(parents=True)
    return home


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Iterator[Path]:
    root = tmp_path / "project"
    root.mkdir()
    (root / "Makefile").touch()
    for name in ("a", "b", "c"):
        (root / f"{name}.py").write_text(f"def needle_{name}():\n    return '{name}'\n")
    Path(os.fsdecode(os.fsencode(root) + b"/" + ODD)).write_bytes(b"oddity = 'caf\xe9'\n")
    yield root
    workers.end(root)


@pytest.fixture
def opened(neovim: Path, home: Path, root: Path) -> Iterator[Callable[[str], Editor]]:
    """Start a Neovim of that person on a file of the project."""
    with ExitStack() as stack:

        def start(name: str) -> Editor:
            init = SETTINGS % sys.executable
            return stack.enter_context(
                Editor(neovim, home, init=init, files=(root / name,), cwd=root)
            )

        yield start


def ready(editor: Editor) -> int:
    """Wait until all is read; return the process of the worker."""

    def pid() -> int:
        states = editor.lua("return require('lcursor.index').states()")
        seen.append(states)
        state = states[0] if states else {}
        return state["pid"] if (state.get("phase"), state.get("files")) == ("ready", 4) else 0

    seen: list[Any] = []
    try:
        return int(wait_for(pid))
    except AssertionError:
        said = editor.lua("return vim.fn.execute('messages')")
        raise AssertionError(f"{seen[-1]}\n{said}\n{editor.screen.marked('', '', '')}") from None


def search(editor: Editor, words: str, wanted: list[str]) -> None:
    """Search until the quickfix list begins as wanted."""

    def found() -> Any:
        code = "vim.cmd.cclose(); vim.fn.setqflist({}); vim.cmd('silent LCursor search ' .. ...)"
        editor.lua(code, words)
        editor.lua("vim.wait(500, function() return #vim.fn.getqflist() > 0 end, 10)")
        is_found = editor.lua(FOUND)[: len(wanted)] == wanted
        editor.command("cclose")
        return is_found

    wait_for(found)


def test_two_neovims_share_a_worker(root: Path, opened: Callable[[str], Editor]) -> None:
    one = opened("a.py")
    one.command("LCursor index start")
    pid = ready(one)
    search(one, "needle_b", ["b.py"])
    other = opened("b.py")
    search(other, "needle_a", ["a.py"])
    assert ready(other) == pid
    one.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'def unsaved_one():', '    pass' })")
    search(one, "unsaved_one", ["a.py"])
    search(other, "needle_a", ["a.py"])
    other.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'def saved_two():', '    pass' })")
    other.command("write")
    search(one, "saved_two", ["b.py"])
    search(other, "oddity", [os.fsdecode(ODD)])
    one.close()
    (root / "c.py").write_text("def changed_three():\n    pass\n")
    search(other, "changed_three", ["c.py"])
    os.kill(pid, 9)
    wait_for(lambda: ready(other) != pid)
    search(other, "saved_two", ["b.py"])
    assert launch.worker_process(root).lock_path.is_file()
