"""The same typing in a real Neovim, in real time: it validates the simulation."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from evals.keys.insertions import Insertion
from evals.keys.recorded import Clock
from evals.keys.typist import REST_S, Choice, Unit, View
from lcursor.cli.editor import find_neovim
from lcursor.config import CompletionConfig
from lcursor.drive.editor import Editor

READY_S = 120.0
HANDLED_S = 0.5
"""Neovim handles a key within this time."""
KEYS: dict[Unit, str] = {"all": "<Tab>", "line": "<S-Tab>", "word": "<C-Right>"}
"""The default keys that accept."""

WATCH = """
local ghost = require("lcursor.complete.ghost")
local draw, hide = ghost.draw, ghost.hide
local number = 0
_G.view = { rest = "" }
function ghost.draw(buf, row, col, rest, count, behind)
  local is_drawn = draw(buf, row, col, rest, count, behind)
  if _G.view.rest == "" and is_drawn then
    number = number + 1
    _G.view = { number = number, since = vim.uv.hrtime() }
  end
  -- what replaces text is not typed by the simulation either
  _G.view.rest = is_drawn and (behind or "") == "" and rest or ""
  return is_drawn
end
function ghost.hide()
  _G.view = { rest = "" }
  hide()
end
"""
"""Notes what is drawn, and since when."""

OPEN = """
vim.cmd.edit(vim.fn.fnameescape((...)))
vim.bo.autoindent, vim.bo.smartindent, vim.bo.cindent = false, false, false
vim.bo.indentexpr, vim.bo.indentkeys, vim.bo.formatoptions = "", "", ""
vim.bo.textwidth, vim.bo.softtabstop, vim.bo.expandtab, vim.o.smarttab = 0, 0, false, false
local row, col = select(2, ...)
vim.api.nvim_win_set_cursor(0, { row, col })
vim.cmd.normal({ "zz", bang = true })
"""


@contextmanager
def opened(config: CompletionConfig) -> Iterator[Editor]:
    """Open a Neovim and wait until its model is ready."""
    own = {"model": config.model, "min_confidence": config.min_confidence}
    settings = json.dumps({"completion": {**own, "threads": config.threads}})
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-", ignore_cleanup_errors=True) as name:
        init = f"vim.g.lcursor = vim.json.decode([==[{settings}]==])\n"
        with Editor(find_neovim(), Path(name), init=init, lines=50) as editor:
            editor.lua(WATCH)
            editor.keys("i")
            editor.wait_state("ready", timeout_s=READY_S)
            editor.keys("<Esc>")
            yield editor


class InNeovim:
    """A Neovim with lcursor that a person types into; see `typist.Completer`.

    Args:
        editor: see `opened`.
        clock: is set to real time.
        repo: name of the repository.

    Attributes:
        mismatches: how often the text was not the one that the simulation would have; it is
            corrected then.
    """

    def __init__(self, editor: Editor, clock: Clock, repo: str) -> None:
        self._editor, self._clock, self._folder = editor, clock, editor.home / repo
        self._insertion: Insertion
        self._at = 0
        self._is_inserting = False
        self._seen = ""
        self.mismatches = 0

    def begin(self, insertion: Insertion) -> None:
        """Open a file with the text around the cursor, in Normal mode."""
        self._insertion, self._at, self._is_inserting = insertion, 0, False
        (self._folder / ".git").mkdir(parents=True, exist_ok=True)
        path = self._folder / insertion.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(insertion.before + insertion.after, newline="\n")
        lines = insertion.before.split("\n")
        self._editor.lua(OPEN, str(path), len(lines), len(lines[-1].encode()))
        self._clock.now_s = time.monotonic()
        self._clock.next_s = self._clock.now_s + REST_S

    def changed(self, at: int) -> None:
        """Type the next character."""
        if not self._is_inserting:
            is_end = not self._insertion.after.partition("\n")[0]
            self._editor.keys("A" if is_end else "i")
            self._is_inserting = True
            return
        added, self._at = self._insertion.text[self._at : at], at
        named = {"\n": "<CR>", "\t": "<C-v><Tab>", "<": "<lt>"}
        self._editor.keys("".join(named.get(each, each) for each in added))

    def accepted(self, at: int, choice: Choice) -> None:
        """Accept what is visible, and delete its wrong end."""
        truth, self._at = self._insertion.text[self._at :], at
        for unit in choice.units:
            self._editor.keys(KEYS[unit])
        if choice.wrong:
            pairs = zip(self._seen, truth, strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            self._editor.keys("<BS>" * (len(self._seen) - same))
        self._correct()

    def _correct(self) -> None:
        """Make the text what it should be by now."""
        insertion = self._insertion
        before = insertion.before + insertion.text[: self._at]
        wanted = (before + insertion.after).split("\n")
        if wanted[-1] == "":
            wanted.pop()
        end_s = time.monotonic() + HANDLED_S
        while time.monotonic() < end_s:
            if self._editor.lines() == wanted:
                return
            time.sleep(0.005)
        self.mismatches += 1
        rows = before.split("\n")
        self._editor.lua(
            "vim.api.nvim_buf_set_lines(0, 0, -1, false, (...))"
            "vim.api.nvim_win_set_cursor(0, { select(2, ...) })",
            wanted,
            len(rows),
            len(rows[-1].encode()),
        )

    def end(self) -> None:
        """Leave Insert mode, and close the file."""
        self._editor.keys("<Esc>")
        self._correct()
        self._editor.command("silent! bwipeout!")

    def work(self) -> None:
        """Wait for the next key, and press it."""
        clock = self._clock
        time.sleep(max(clock.next_s - time.monotonic(), 0.0))
        clock.now_s = time.monotonic()
        clock.on_event()

    def view(self) -> View | None:
        """Return what is on the screen."""
        found = self._editor.lua("return _G.view")
        self._seen = found["rest"]
        if not self._seen.strip():
            return None
        return View(found["number"], self._seen, found["since"] / 1e9, "")
