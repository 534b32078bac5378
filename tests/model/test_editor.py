"""Truth: a real Neovim, the real host, the real model, a file that runs afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.waiting import WAIT_S, is_running, wait_for

PROGRAM = '''\
def add(a, b):
    """Return the sum of a and b."""


print(add(2, 3))
'''
HOST = "return require('lcursor.host').info()"


@pytest.fixture
def real(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    """A Neovim that runs the real host on a program with a hole in it."""
    path = tmp_path / "project" / "add.py"
    path.parent.mkdir()
    path.write_text(PROGRAM)
    home = tmp_path / "home"
    home.mkdir()
    python = os.environ.get("LCURSOR_TEST_PYTHON", sys.executable)
    with Editor(
        neovim,
        home,
        init=f"vim.g.lcursor = {{ python = {python!r} }}\n",
        files=(path,),
        cwd=path.parent,
    ) as editor:
        yield editor


def begin(editor: Editor) -> dict[str, Any]:
    """Start the host by entering insert mode; return what is known of it when it is ready."""
    editor.keys("2Gi")
    editor.wait_state("ready", timeout_s=WAIT_S)
    editor.keys("<Esc>")
    info: dict[str, Any] = editor.lua(HOST)
    return info


def test_a_killed_host_comes_back_and_completes_a_file_that_runs(
    real: Editor, tmp_path: Path
) -> None:
    first = begin(real)
    os.kill(first["pid"], signal.SIGKILL)
    real.wait_lua(f"local i = {HOST[7:]}; return i.pid ~= nil and i.pid ~= ...", first["pid"])
    real.wait_state("ready", timeout_s=WAIT_S)
    real.keys("o")
    real.type("return")
    real.wait_ghost(timeout_s=WAIT_S)
    real.wait_lua("return require('lcursor.complete').is_settled()", timeout_s=WAIT_S)
    ghost = real.ghost()
    real.keys("<Tab>")
    real.wait_lua("return vim.api.nvim_get_current_line() ~= '    return'")
    real.keys("<Esc>")
    real.command("write")
    assert real.lines()[2] == "    return" + " " + ghost.strip().split("\n")[0]
    path = tmp_path / "project" / "add.py"
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "5\n"
    real.keys("u")
    assert real.lines()[2] == "    return"

    pid = real.lua(HOST)["pid"]
    assert is_running(pid)
    real.close()
    wait_for(lambda: not is_running(pid), what="the host leaves with Neovim")


def test_the_model_file_may_be_deleted_while_it_runs(
    real: Editor, model_path: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gguf"
    os.link(model_path, copy) if _same_disk(model_path, tmp_path) else copy.symlink_to(model_path)
    real.lua("require('lcursor').setup({ completion = { model = ... } })", str(copy))
    begin(real)
    copy.unlink()
    real.keys("o")
    real.type("return")
    assert real.wait_ghost(timeout_s=WAIT_S)
    real.keys("<Esc>")
    real.command("LCursor restart")
    real.wait_state("failed", timeout_s=WAIT_S)
    assert "lcursor: " in real.lua("return vim.fn.execute('messages')")
    assert "copy.gguf" in "\n".join(
        real.lua("return vim.fn.readfile(require('lcursor.ui.log').path())")
    )


def _same_disk(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev
