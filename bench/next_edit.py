"""`bench next`: what next edits cost at a key, how soon one is drawn, and whether typing is calm.

A real host, no model. A parameter is renamed in files of several lengths, with `cw`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import next_edit_typing
from bench.report import Json, Report, measuring, reporting_timeouts
from lcursor.cli.editor import find_neovim
from lcursor.drive.editor import ROOT, Editor
from lcursor.drive.screen import Screen

SOURCE = ROOT / "lcursor/next_edit/names.py"
HEAD = "    def _member(self, node: Node, access: Node) -> _Found:"
LENGTHS = {1000: (15, 40), 5000: (30, 80)}
"""Limits of p50 and p95 in ms, by lines of the file."""
KEYS, EDITS = 400, 24
KEY_MS = 0.1
WAIT_S = 20.0
INIT = """
vim.g.lcursor = {
  python = "%s", index = { enabled = false }, completion = { auto_trigger = false },
}
vim.o.swapfile = false
"""
PROBE = """
_G.probe = { spent = 0, all = {} }
local ids, now = {}, vim.uv.hrtime
local function timed(fn)
  return function(...)
    local began = now()
    local result = fn(...)
    probe.spent = probe.spent + now() - began
    return result
  end
end
local group, create = vim.api.nvim_create_augroup, vim.api.nvim_create_autocmd
vim.api.nvim_create_augroup = function(name, opts)
  local id = group(name, opts)
  ids[id] = vim.startswith(name, "lcursor.next_edit")
  return id
end
vim.api.nvim_create_autocmd = function(events, opts)
  if ids[opts.group] then
    opts.callback = timed(opts.callback)
  end
  return create(events, opts)
end
local attach = vim.api.nvim_buf_attach
vim.api.nvim_buf_attach = function(buf, is_sent, opts)
  if debug.getinfo(opts.on_lines).source:find("next_edit") then
    opts.on_lines = timed(opts.on_lines)
  end
  return attach(buf, is_sent, opts)
end
"""


def lines_of(count: int) -> list[str]:
    """Return a file of that length: a real one, repeated with other names."""
    source, found = SOURCE.read_text().splitlines(), list[str]()
    while len(found) < count:
        copy = len(found) // len(source)
        for line in source:
            renamed = line.replace("names_of", f"names_of{copy}").replace("_parsed", f"_p{copy}")
            found.append(renamed.replace("class Names", f"class Names{copy}"))
    return found[:count]


@contextmanager
def _editor(neovim: Path, lines: list[str], init: str = "") -> Iterator[Editor]:
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "a.py").write_text("\n".join(lines) + "\n")
        begin = INIT % sys.executable + init
        with Editor(neovim, home, init=begin, files=("a.py",), lines=40) as editor:
            yield editor


def _keystrokes(report: Report, neovim: Path) -> None:
    """Measure the Lua time of the recorder at each key."""
    text = "def measure(values, weights):\n    total = sum(values)\n    return total / len(w"
    with _editor(neovim, lines_of(5000), PROBE) as editor:
        editor.keys("Go<CR>")
        for number in range(KEYS):
            editor.type(text[number % len(text)], pace_ms=30)
            editor.lua("table.insert(probe.all, probe.spent / 1e6) probe.spent = 0")
        samples: list[float] = editor.lua("return probe.all")
    report.add("Lua work of next edits per keystroke", samples[1:], limit=KEY_MS)


def _is_drawn(screen: Screen) -> bool:
    return any("⇥" in row for row in screen.rows())


def _drawn(report: Report, neovim: Path, count: int) -> None:
    """Measure the time from the end of an edit to the screen with the proposal."""
    samples: list[float] = []
    lines = lines_of(count)
    heads = [row + 1 for row, line in enumerate(lines[:-40]) if line == HEAD]
    with _editor(neovim, lines) as editor:
        editor.keys("ix<BS><Esc>")
        editor.wait_lua("return require('lcursor.host').info().ready_ms ~= nil")
        for number in range(EDITS):
            editor.lua("vim.api.nvim_win_set_cursor(0, { ..., 34 })", heads[number % len(heads)])
            editor.keys(f"cwmember{number}")
            time.sleep(0.35)
            began = time.perf_counter()
            editor.keys("<Esc>")
            if not editor.screen.wait(_is_drawn, WAIT_S):
                raise TimeoutError("nothing was drawn: " + "\n".join(editor.screen.rows()))
            samples.append((editor.screen.flushed_s - began) * 1000)
            editor.keys("u")
            editor.screen.wait(lambda screen: not _is_drawn(screen), WAIT_S)
            time.sleep(0.35)
    middle, high = LENGTHS[count]
    report.add(f"first edit to drawn, {count} lines", samples[:1])
    report.add(f"edit to drawn, {count} lines, p50", samples[1:], limit=middle, judged="p50")
    report.add(f"edit to drawn, {count} lines, p95", samples[1:], limit=high)


def command(as_json: Json = False) -> None:
    """Measure next edits; exits with 1 when a promise is not kept."""
    neovim, report = find_neovim(), Report()
    with reporting_timeouts():
        measuring("keystrokes")
        _keystrokes(report, neovim)
        for count in LENGTHS:
            measuring(f"{count} lines")
            _drawn(report, neovim, count)
        measuring("typed commits")
        next_edit_typing.measure(report, neovim)
    report.finish(as_json)
