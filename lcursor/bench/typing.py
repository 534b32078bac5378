"""From a key to the ghost: `python -m lcursor bench typing`.

Types the ends of real lines, key by key as a person does, into a real Neovim, and keeps each screen
that was drawn with the time of its flush; `trials.py` makes numbers of them.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lcursor.bench.trials import Flush, Spot, Trial, ghost_times_ms
from lcursor.drive.editor import Editor
from lcursor.drive.screen import Screen
from lcursor.errors import LcursorError

IDLE_S = 0.4
WAIT_S = 10.0
LINES = 40

# Both editors alike: no search for a Python provider, nothing that changes what is typed.
INIT = """
vim.g.loaded_python3_provider = 0
vim.o.showmode, vim.o.wrap = false, false
vim.api.nvim_create_autocmd("FileType", { callback = function()
  vim.schedule(function()
    vim.bo.indentexpr, vim.bo.cindent, vim.bo.smartindent, vim.bo.textwidth = "", false, false, 0
  end)
end })
"""

PUT = """
local row, line = ...
vim.api.nvim_buf_set_lines(0, row, row + 1, true, { line })
vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
vim.cmd.normal({ "zz", bang = true })
"""


class Typist(Protocol):
    """Something that shows ghost text in a Neovim."""

    @property
    def group(self) -> str:
        """Highlight group of its ghost."""

    def open(self, neovim: Path, home: Path, path: Path, columns: int) -> Editor:
        """Start a Neovim on the file. `probe.key()` in it begins the next key's main_ms."""

    def begin(self, editor: Editor) -> str:
        """Wait until it could answer; return the name of its model."""

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Wait until what entering insert mode set off is done."""

    def is_settled(self, editor: Editor, since_key_s: float) -> bool:
        """Whether what is shown now will not change by itself."""

    def drain(self, editor: Editor) -> None:
        """Wait until nothing works for the spot that was left."""

    def tokens(self, editor: Editor, spot: Spot) -> list[int]:
        """Return the tokens of the prompt that were decoded for each key, and forget them."""


def read_lines(path: Path) -> list[str]:
    """Return the lines as Neovim counts them.

    Raises:
        LcursorError: the file cannot be read as UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LcursorError(f"{path} cannot be read: {error}", "Name a source file") from error


def run(
    typist: Typist,
    neovim: Path,
    file: Path,
    spots: Sequence[Spot],
    *,
    pace_ms: float,
    told: Callable[[str], None] = lambda line: None,
) -> tuple[str, list[Trial]]:
    """Type at every spot of a copy of the file; takes seconds a spot.

    Args:
        typist: who shows the ghosts.
        neovim: the executable.
        file: where the spots are from.
        spots: where to type.
        pace_ms: from one key to the next.
        told: takes a line about each spot.

    Returns:
        The model's name and what came of each spot.

    Raises:
        TimeoutError: something that must come did not.
    """
    lines = read_lines(file)
    columns = max(120, 80 + max(len(lines[spot.row].expandtabs()) for spot in spots))
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        path = project / file.name
        path.write_bytes(file.read_bytes())
        home = Path(folder) / "home"
        home.mkdir()
        with typist.open(neovim, home, path, columns) as editor:
            flushes: list[Flush] = []

            def keep(screen: Screen) -> None:
                flushes.append(Flush(screen.flushed_s, *screen.at_cursor(typist.group)))

            editor.screen.on_flush = keep
            editor.keys("i")
            model = typist.begin(editor)
            editor.keys("<Esc>")
            trials = []
            for number, spot in enumerate(spots, 1):
                trials.append(_play(editor, typist, spot, flushes, pace_ms))
                told(f"{number}/{len(spots)} {_line(trials[-1])}")
    return model, trials


def _line(trial: Trial) -> str:
    times = " ".join("-" if ms is None else f"{ms:.0f}" for ms in trial.ghost_ms)
    shown = re.sub(r"\n.*", " …", trial.final, flags=re.S) or "(nothing)"
    verdict = "exact" if trial.is_exact else f"wanted {trial.spot.rest!r}"
    return f"{trial.spot.head.strip()!r} + {shown!r}, {verdict}; {times} ms"


def _play(
    editor: Editor, typist: Typist, spot: Spot, flushes: list[Flush], pace_ms: float
) -> Trial:
    editor.lua(PUT, spot.row, spot.before)
    editor.keys("A")
    typist.warm(editor, spot)
    time.sleep(IDLE_S)
    editor.lua("vim.cmd.redraw() probe.key() probe.all = {}")
    base = len(editor.screen.at_cursor(typist.group)[0])
    flushes.clear()
    sent_s = _type(editor, spot.typed, pace_ms / 1000)
    deadline = sent_s[-1] + WAIT_S
    while (now := time.perf_counter()) < deadline:
        stands = editor.lua("return vim.api.nvim_get_current_line() == ...", spot.head)
        if stands and typist.is_settled(editor, now - sent_s[-1]):
            break
        time.sleep(0.05)
    editor.lua("vim.cmd.redraw() probe.key()")
    seen = list(flushes)
    if len(seen[-1].left) != base + len(spot.typed):
        raise TimeoutError(f"typed {spot.head!r}, on the screen is {seen[-1].left!r}")
    main_ms = editor.lua("return probe.all")
    editor.keys("<Esc>")
    editor.lua(PUT, spot.row, spot.head + spot.rest)
    typist.drain(editor)
    return Trial(
        spot,
        seen[-1].ghost if seen[-1].ghost.strip() else "",
        *ghost_times_ms(seen, sent_s, base),
        typist.tokens(editor, spot),
        main_ms,
    )


def _type(editor: Editor, text: str, pace_s: float) -> list[float]:
    """Send keys by the clock, without waiting for Neovim; return when each was sent."""
    sent_s = []
    began = time.perf_counter()
    for number, char in enumerate(text):
        if number:
            _sleep_until(began + number * pace_s - 0.01)
            editor.client.notify("nvim_exec_lua", "probe.key()", [])
            _sleep_until(began + number * pace_s)
        sent_s.append(time.perf_counter())
        editor.client.notify("nvim_input", "<lt>" if char == "<" else char)
    return sent_s


def _sleep_until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.perf_counter()))
