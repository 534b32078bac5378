"""After many keys, edits and buffers, Neovim and the host hold no more than before.

A real Neovim and a real host; a server that answers at once makes an hour of typing half a minute.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.model_server import ModelServer
from tests.nvim.test_completion_real import settings

WARM_UP, ROUNDS = 20, 100
QUIET = "local c = require('lcursor.complete') return not c.current_id() or c.is_settled()"
MEMORY_BYTES = 24 << 20
"""That a process may hold more at the end: pages that allocators keep."""
LUA_KILOBYTES = 1024
FEW = 8
"""Timers, autocommands, threads and connections made when first needed, which stay: fewer
than one for ten rounds, so what is left behind by each round, or each tenth, is found."""

COUNT = """
    vim.cmd("silent! %bwipeout!")
    for _ = 1, 2 do collectgarbage() end
    local counts = { lua_kb = collectgarbage("count"), marks = 0, handles = {} }
    for name, space in pairs(vim.api.nvim_get_namespaces()) do
      if name:find("lcursor", 1, true) then
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          counts.marks = counts.marks + #vim.api.nvim_buf_get_extmarks(buf, space, 0, -1, {})
        end
      end
    end
    counts.autocmds = #vim.api.nvim_get_autocmds({})
    counts.buffers = #vim.api.nvim_list_bufs()
    vim.uv.walk(function(handle)
      local kind = handle:get_type()
      counts.handles[kind] = (counts.handles[kind] or 0) + 1
    end)
    return counts
"""

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def editor(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("a.py", "b.py"):
        (project / name).write_text(
            "".join(f"def {name[0]}_{n}(x):\n    pass\n\n\n" for n in range(30))
        )
    home = tmp_path / "home"
    home.mkdir()
    with ModelServer() as server:
        server.llama("compute(", "1)")
        table = json.dumps(settings(server))
        init = f"vim.g.lcursor = vim.json.decode([==[{table}]==])\nvim.o.undolevels = 20\n"
        files = (project / "a.py",)
        with Editor(neovim, home, init=init, files=files, cwd=project) as one:
            one.keys("o")
            one.wait_state("ready")
            one.keys("<Esc>")
            yield one


def play(editor: Editor, number: int) -> None:
    """Open a file, type until there is a ghost, accept or dismiss it, edit, and leave."""
    editor.command(f"edit! {'ab'[number % 2]}.py")
    editor.keys(f"{number % 20 + 1}Go")
    editor.type("value = ")
    editor.wait_ghost(lambda ghost: "compute" in ghost)
    editor.keys("<Tab>" if number % 3 else "x")
    editor.keys("<Esc>ddp>>yyPu")
    editor.command("new | setlocal filetype=lua")
    editor.keys("ilocal x = <Esc>")
    editor.command("bwipeout!")
    if number % 10 == 9:
        editor.command("bwipeout!")


def process(pid: int) -> dict[str, int]:
    """Return what a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return {
        "bytes": int(status.partition("VmRSS:")[2].split()[0]) * 1024,
        "threads": int(status.partition("Threads:")[2].split()[0]),
        "fds": len(list(Path(f"/proc/{pid}/fd").iterdir())),
    }


def held(editor: Editor) -> dict[str, Any]:
    """Return what Neovim and the host hold, with every buffer closed."""
    counts: dict[str, Any] = editor.lua(COUNT)
    pids = {
        "neovim": editor.lua("return vim.uv.os_getpid()"),
        "host": editor.lua("return require('lcursor.host').info().pid"),
    }
    return counts | {name: process(pid) for name, pid in pids.items()}


def grown(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what is more than before, and more than may be."""
    found = []
    for name, room in (("marks", 0), ("buffers", 0), ("autocmds", FEW)):
        if after[name] > before[name] + room:
            found.append(name)
    for kind, count in after["handles"].items():
        if count > before["handles"].get(kind, 0) + FEW:
            found.append(f"handles: {kind}")
    if after["lua_kb"] > before["lua_kb"] + LUA_KILOBYTES:
        found.append("lua_kb")
    for name in ("neovim", "host"):
        for what, room in (("bytes", MEMORY_BYTES), ("threads", FEW), ("fds", FEW)):
            if after[name][what] > before[name][what] + room:
                found.append(f"{name}: {what}, {before[name][what]} to {after[name][what]}")
    return found


@pytest.mark.linux
def test_nothing_grows(editor: Editor) -> None:
    for number in range(WARM_UP):
        play(editor, number)
    editor.wait_lua(QUIET)
    before = held(editor)
    while (again := held(editor))["handles"] != before["handles"]:  # timers that run out
        before = again
        time.sleep(0.5)
    for number in range(ROUNDS):
        play(editor, number)
    editor.wait_lua(QUIET)
    deadline_s = time.monotonic() + 20
    while more := grown(before, after := held(editor)):  # a timer may still run for a moment
        assert time.monotonic() < deadline_s, (more, before, after)
        time.sleep(0.2)
