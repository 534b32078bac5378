"""Type commits into three editors at once: with next edits as hints, drawn, and off.

Nothing is accepted, so all editors must hold the same text and cursor after every key. Steps that
take many keys are left out.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.report import Promise, Report, progress, sleep_until
from evals.next_edit import commits
from evals.next_edit.commits import Commit, Step
from evals.next_edit.labels import label
from lcursor.drive.editor import ROOT, Editor
from lcursor.drive.screen import Screen

REVISION = "98ea8f84b1"
COMMITS, MAX_KEYS, MAX_STEP_KEYS = 30, 60, 32
PACE_S, PAUSE_S = 0.12, 0.7
MODES = ("hint", "draw", "off")
INIT = """
vim.g.lcursor = {
  python = "%s", index = { enabled = false }, completion = { auto_trigger = false },
  next_edit = { mode = "%s" },
}
vim.o.swapfile, vim.o.number = false, true
vim.cmd("autocmd FileType * setlocal noautoindent indentexpr= indentkeys= formatoptions= et")
local now, probe, is_new = vim.uv.hrtime, { key = 0, draws = 0, insert = 0, normal = 0 }, true
_G.probe = probe
vim.on_key(function()
  probe.key, probe.mode = now(), vim.api.nvim_get_mode().mode
  probe.tick = vim.api.nvim_buf_get_changedtick(0)
end)
local set, clear = vim.api.nvim_buf_set_extmark, vim.api.nvim_buf_clear_namespace
vim.api.nvim_buf_clear_namespace = function(buf, space, ...)
  is_new = is_new or space == vim.api.nvim_create_namespace("lcursor.next_edit")
  return clear(buf, space, ...)
end
vim.api.nvim_buf_set_extmark = function(buf, space, ...)
  if space == vim.api.nvim_create_namespace("lcursor.next_edit") and is_new then
    local is_early = now() - probe.key < 300e6
    local is_edit = probe.mode ~= "n" or probe.tick ~= vim.api.nvim_buf_get_changedtick(0)
    local kind = vim.api.nvim_get_mode().mode == "i" and "insert" or not is_edit and "normal"
    probe.draws, is_new = probe.draws + 1, false
    if is_early and kind then
      probe[kind] = probe[kind] + 1
    end
  end
  return set(buf, space, ...)
end
"""
OPEN = """
local path, width = ...
local buf = vim.fn.bufadd(path)
vim.bo[buf].buflisted = true
vim.cmd.buffer({ buf, bang = true })
vim.bo.shiftwidth, vim.bo.softtabstop = width, width
"""
STATE = """
local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n")
return { vim.fn.sha256(text), vim.api.nvim_win_get_cursor(0), vim.api.nvim_get_mode().mode }
"""
PROMISES = {
    "draws": Promise("proposals drawn", at_least=20),
    "insert": Promise("drawn in Insert mode within 300 ms of a key", at_most=0),
    "normal": Promise("drawn in Normal mode within 300 ms of a key that ended no edit", at_most=0),
    "moved": Promise("keys in Insert mode with lines that moved without a key", at_most=0),
    "other": Promise("keys with another text, cursor or mode than without next edits", at_most=0),
    "final": Promise("texts that are not those of the commit at the end", at_most=0),
}


def _width(path: str) -> int:
    return 2 if path.endswith(".lua") else 4


def _typed(lines: tuple[str, ...], width: int) -> Iterator[str]:
    """Yield the keys of lines, indented with <Tab>."""
    for number, line in enumerate(lines):
        rest = line.lstrip(" ")
        tabs, spaces = divmod(len(line) - len(rest), width)
        yield from ["<CR>"] * (number > 0) + ["<Tab>"] * tabs + [" "] * spaces
        yield from (("<lt>" if char == "<" else char) for char in rest)


def keys_of(step: Step, row: int, number: int) -> list[str]:
    """Return the keys that make a step; its number says which ways of a user are tried."""
    old, new, found = step.old, step.new, [f"{row + 1}G"]
    end = [["<Esc>"], ["pause", "<Esc>"], ["<Esc>", "pause"], ["<C-o>$", "<Esc>", "<Esc>"]]
    if len(old) == len(new) == 1 and old[0] and new[0]:
        one, other = re.findall(r"\w+|\W", old[0]), re.findall(r"\w+|\W", new[0])
        head = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), -1)
        head = min(len(one), len(other)) if head < 0 else head
        tail = 0
        while tail < min(len(one), len(other)) - head and one[-1 - tail] == other[-1 - tail]:
            tail += 1
        gone, came = one[head : len(one) - tail], "".join(other[head : len(other) - tail])
        change = f"{len(''.join(gone))}s" if gone else "i" if tail else "a"
        column = len("".join(one[:head])) + (change != "a")
        is_word = len(gone) == 1 and bool(re.match(r"\w", gone[0]))
        found += [f"{column}|", "cw" if is_word else change, *came.replace("<", "\0")]
        found = [key.replace("\0", "<lt>") for key in found]
        return [*found, *end[number % 4], *(["u", "."] if number % 4 == 0 else [])]
    found += ["dd"] * len(old)
    if new:
        at = f"{row}G" if row else "1G"
        found += [at, "o" if row else "O", *_typed(new, _width(step.path)), *end[number % 4]]
    return [*found, *(["u", "<C-r>"] if number % 4 == 0 else [])]


def sessions() -> Iterator[tuple[Commit, list[tuple[str, list[str]]], dict[str, list[str]]]]:
    """Yield commits with the keys of their short steps, and the texts at the end."""
    for commit in commits.load(ROOT, 400, REVISION):
        final = {path: list(lines) for path, lines in commit.base.items()}
        shift, typed, derived = Counter[str](), list[tuple[str, list[str]]](), 0
        for step, found in zip(commit.steps, label(commit), strict=True):
            row = step.row + shift[step.path]
            keys = keys_of(step, row, len(typed))
            total = sum(len(one) for _, one in typed)
            if len(keys) <= MAX_STEP_KEYS and total + len(keys) <= MAX_KEYS:
                typed.append((step.path, keys))
                final[step.path][row : row + len(step.old)] = step.new
                shift[step.path] += len(step.new) - len(step.old)
                derived += found.label in {"rename", "signature", "repetition"}
        if derived >= 2:
            yield commit, typed, final


class _Typist:
    """Presses the same keys in all editors, and compares them after each."""

    def __init__(self, editors: list[Editor]) -> None:
        self._editors = editors
        self._rows: list[list[tuple[int, ...]]] = [[()] for _ in editors]
        for editor, rows in zip(editors, self._rows, strict=True):
            editor.screen.on_flush = partial(_note, rows)
        self.found = Counter[str]()

    def play(self, folder: str, typed: list[tuple[str, list[str]]], final: dict[str, Any]) -> None:
        """Make the steps of a commit in its files."""
        for path, keys in typed:
            for editor in self._editors:
                editor.lua(OPEN, f"{folder}/{path}", _width(path))
            for key in keys:
                self._press(key, f"{folder}/{path}")
        for editor in self._editors:
            for path, lines in final.items():
                editor.lua(OPEN, f"{folder}/{path}", 4)
                self.found["final"] += editor.lines() != lines
            editor.command("silent! %bwipeout!")

    def _press(self, key: str, path: str) -> None:
        """Press a key, wait as long as a user does, and compare."""
        began_s = time.perf_counter()
        for editor, rows in zip(self._editors, self._rows, strict=True):
            del rows[:-1]
            if key != "pause":
                editor.keys(key)
        sleep_until(began_s + (PAUSE_S if key == "pause" else PACE_S))
        self.found["keys"] += key != "pause"
        *states, plain = [editor.lua(STATE) for editor in self._editors]
        for mode, rows, state in zip(MODES, self._rows, states, strict=False):
            is_moved = plain[2] == "i" and not {rows[0], self._rows[-1][-1]}.issuperset(rows)
            self.found["moved"] += is_moved
            self.found["other"] += state != plain
            if is_moved or state != plain:
                progress(f"{mode}, {path}, {key}: {state}, {plain}, moved: {is_moved}")


def _note(rows: list[tuple[int, ...]], screen: Screen) -> None:
    """Note the line number of each row of the screen; 0 for a row without one."""
    found = (re.match(r" *(\d+) ", row) for row in screen.rows()[:-2])
    rows.append(tuple(int(match[1]) if match else 0 for match in found))


def measure(report: Report, neovim: Path) -> None:
    """Type the commits, and add what was counted."""
    report.promises = PROMISES
    with ExitStack() as stack:
        editors = []
        for mode in MODES:
            home = Path(stack.enter_context(TemporaryDirectory(prefix="lcursor-bench-")))
            init = INIT % (sys.executable, mode)
            editor = Editor(neovim, home, init=init, columns=100, lines=40)
            editors.append(stack.enter_context(editor))
        for editor in editors:
            editor.keys("ix<BS><Esc>")
            editor.wait_lua("return require('lcursor.host').info().ready_ms ~= nil")
        typist = _Typist(editors)
        for commit, typed, final in islice(sessions(), COMMITS):
            for editor in editors:
                for path, lines in commit.base.items():
                    target = editor.home / commit.name / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text("\n".join(lines) + "\n")
            typist.play(commit.name, typed, final)
            typist.found["commits"] += 1
        counted = [editor.lua("return probe") for editor in editors[:-1]]
    names = ("draws", "insert", "normal")
    numbers = {name: sum(one[name] for one in counted) for name in names} | typist.found
    report.numbers = {name: numbers.get(name, 0) for name in ("commits", "keys", *PROMISES)}
