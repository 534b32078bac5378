"""Type the ends of real lines into a real Neovim, key by key, for `bench typing`.

Records each screen that was drawn with the time of its flush.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from asyncio import base_events
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.plugin import WAIT_S, Plugin
from bench.report import progress, sleep_until
from bench.trials import (
    COLD_KEYS,
    Drawn,
    Flush,
    Jump,
    Spot,
    Trial,
    apart,
    ghost_times_ms,
    is_exact,
    read_lines,
)
from bench.typing_report import Results
from lcursor.drive.editor import GHOST, Editor
from lcursor.drive.screen import Screen

IDLE_S = 0.4

# Of a cold or rested run.
REST_S = 3.0
"""In Normal mode at the new position, in a rested run."""
JUMP_TO_KEY_S = 0.3
"""From the jump, or the end of the rest, to the first key."""
COLD_PACE_MS = 150.0
FIRST_S = 12.0
"""Maximum wait for a first suggestion, from the last key."""
QUIET_S = 1.0
"""The observation lasts at least this long after the last key."""
LATER_S = 6.0
"""Watched after the observation for a better answer that replaces the suggestion."""

PUT = """
local row, line = ...
vim.api.nvim_buf_set_lines(0, row, row + 1, true, { line })
vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
vim.cmd.normal({ "zz", bang = true })
"""


def default_files(neovim: Path) -> list[Path]:
    """Return files of two languages that every installation has: CPython's, and Neovim's own."""
    print_runtime = "lua io.stdout:write(vim.env.VIMRUNTIME)"
    found = subprocess.run(
        [neovim, "--clean", "--headless", "--cmd", print_runtime, "--cmd", "qall!"],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    lua = Path(found.stdout.strip()) / "lua/vim/lsp/util.lua"
    return [Path(base_events.__file__), Path(argparse.__file__), lua]


@dataclass(frozen=True)
class Plan:
    """What is done at each position.

    Attributes:
        warm: type the last six characters with everything evaluated, visiting rows in order.
        cold: jump, enter Insert mode at once and type three characters.
        rested: the same after `REST_S` in Normal mode.
        gate_off: ask once more with the confidence gate off, after each position of a warm run.
        pace_ms: from one key to the next in a warm run.
    """

    warm: bool = True
    cold: bool = False
    rested: bool = False
    gate_off: bool = True
    pace_ms: float = 120


def measure(
    plugin: Plugin,
    neovim: Path,
    file: Path,
    spots: Sequence[Spot],
    plan: Plan,
    results: Results,
) -> None:
    """Run the plan in one file, each part in a new Neovim.

    A warm run visits the file from top to bottom, which suits the prefix cache and halves the time.
    A cold or rested run jumps about, see `trials.apart`.

    Args:
        plugin: to type with.
        neovim: the executable.
        file: where the spots are from.
        spots: where to type.
        plan: what to do.
        results: extended.

    Raises:
        TimeoutError: something did not happen in time.
    """
    if plan.warm:
        progress(f"{spots[0].file}, warm")
        results.model, trials = run(
            plugin,
            neovim,
            file,
            sorted(spots, key=lambda spot: spot.row),
            pace_ms=plan.pace_ms,
            gate_off=plan.gate_off,
        )
        results.warm += trials
    if plan.cold:
        progress(f"{spots[0].file}, cold")
        results.model, jumps = run_cold(plugin, neovim, file, apart(spots))
        results.cold += jumps
    if plan.rested:
        progress(f"{spots[0].file}, rested")
        results.model, jumps = run_cold(plugin, neovim, file, apart(spots), rest_s=REST_S)
        results.rested += jumps


def run(
    plugin: Plugin,
    neovim: Path,
    file: Path,
    spots: Sequence[Spot],
    *,
    pace_ms: float,
    gate_off: bool = True,
) -> tuple[str, list[Trial]]:
    """Type at every spot of a copy of the file, with everything evaluated first; seconds a spot.

    Args:
        plugin: to type with.
        neovim: the executable.
        file: where the spots are from.
        spots: where to type.
        pace_ms: from one key to the next.
        gate_off: type at each spot once more with the confidence gate off.

    Returns:
        The model's name and the result of each spot.

    Raises:
        TimeoutError: something did not happen in time.
    """
    trials = list[Trial]()
    with _opened(plugin, neovim, file, spots) as (editor, model, flushes):
        for number, spot in enumerate(spots, 1):
            trials.append(_play(editor, plugin, spot, flushes, pace_ms, gate_off))
            progress(f"{number}/{len(spots)} {_line(trials[-1])}")
    return model, trials


def run_cold(
    plugin: Plugin,
    neovim: Path,
    file: Path,
    spots: Sequence[Spot],
    *,
    rest_s: float = 0.0,
) -> tuple[str, list[Jump]]:
    """Jump to every spot of a copy of the file and type its last three characters.

    Args:
        plugin: to type with.
        neovim: the executable.
        file: where the spots are from.
        spots: where to type, in this order.
        rest_s: how long to stay in Normal mode after each jump.

    Returns:
        The model's name and the result of each spot.

    Raises:
        TimeoutError: something did not happen in time.
    """
    jumps = list[Jump]()
    with _opened(plugin, neovim, file, spots) as (editor, model, flushes):
        for number, spot in enumerate(spots, 1):
            jumps.append(_jump(editor, plugin, spot.with_keys(COLD_KEYS), flushes, rest_s))
            progress(f"{number}/{len(spots)} {_jump_line(jumps[-1])}")
    return model, jumps


@contextmanager
def _opened(
    plugin: Plugin, neovim: Path, file: Path, spots: Sequence[Spot]
) -> Iterator[tuple[Editor, str, list[Flush]]]:
    """Open a copy of the file; yield the editor, the model's name and the list of screens drawn."""
    lines = read_lines(file)
    columns = max(120, 80 + max(len(lines[spot.row].expandtabs()) for spot in spots))
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "project"
        project.mkdir()
        path = project / file.name
        path.write_bytes(file.read_bytes())
        home = Path(folder) / "home"
        home.mkdir()
        with plugin.open(neovim, home, path, columns) as editor:
            flushes: list[Flush] = []

            def keep(screen: Screen) -> None:
                flushes.append(Flush(screen.flushed_s, *screen.at_cursor(GHOST)))

            editor.screen.on_flush = keep
            editor.keys("i")
            model = plugin.begin(editor)
            editor.keys("<Esc>")
            yield editor, model, flushes


def _line(trial: Trial) -> str:
    times = " ".join("-" if ms is None else f"{ms:.0f}" for ms in trial.ghost_ms)
    return f"{_verdict(trial.spot, trial.final)}; {times} ms"


def _jump_line(jump: Jump) -> str:
    stay = jump.stay()
    return (
        f"{_verdict(jump.spot, stay.ghost if stay else '')}; {f'{stay.ms:.0f} ms' if stay else '-'}"
    )


def _verdict(spot: Spot, suggestion: str) -> str:
    shown = re.sub(r"\n.*", " …", suggestion, flags=re.S) or "(nothing)"
    verdict = "exact" if is_exact(suggestion, spot.rest) else f"wanted {spot.rest!r}"
    return f"{spot.head.strip()!r} + {shown!r}, {verdict}"


def _play(
    editor: Editor,
    plugin: Plugin,
    spot: Spot,
    flushes: list[Flush],
    pace_ms: float,
    gate_off: bool,
) -> Trial:
    """Type the keys of a spot, and with `gate_off` once more with the confidence gate off."""
    base, sent_s = _type_warm(editor, plugin, spot, flushes, pace_ms)
    seen = list(flushes)
    main_ms = editor.lua("return probe.all")
    costs = plugin.costs(editor, spot)
    _leave(editor, plugin, spot)
    final = _visible(seen[-1].ghost)
    ungated = final if gate_off else None
    if gate_off:
        plugin.open_gate(editor)
        _type_warm(editor, plugin, spot, flushes, pace_ms)
        ungated = _visible(flushes[-1].ghost)
        plugin.costs(editor, spot)
        _leave(editor, plugin, spot)
        plugin.close_gate(editor)
    return Trial(
        spot,
        final,
        *ghost_times_ms(seen, sent_s, base),
        [cost.tokens for cost in costs],
        main_ms,
        [cost.passes for cost in costs],
        ungated,
    )


def _type_warm(
    editor: Editor, plugin: Plugin, spot: Spot, flushes: list[Flush], pace_ms: float
) -> tuple[int, list[float]]:
    """Evaluate everything, type, and wait until the suggestion has settled.

    Returns:
        The length of what is left of the cursor before the first key, and when each key was sent.
    """
    editor.lua(PUT, spot.row, spot.before)
    editor.keys("A")
    plugin.warm(editor, spot)
    time.sleep(IDLE_S)
    editor.lua("vim.cmd.redraw() probe.key() probe.all = {}")
    base = len(editor.screen.at_cursor(GHOST)[0])
    flushes.clear()
    sent_s = _type(editor, spot.typed, pace_ms / 1000)
    deadline = sent_s[-1] + WAIT_S
    while (now := time.perf_counter()) < deadline:
        stands = editor.lua("return vim.api.nvim_get_current_line() == ...", spot.head)
        if stands and plugin.is_settled(editor, now - sent_s[-1]):
            break
        time.sleep(0.05)
    editor.lua("vim.cmd.redraw() probe.key()")
    _check_typed(flushes[-1], spot, base)
    return base, sent_s


def _jump(editor: Editor, plugin: Plugin, spot: Spot, flushes: list[Flush], rest_s: float) -> Jump:
    flushes.clear()
    jumped_s = time.perf_counter()
    editor.lua(PUT + "vim.cmd.redraw()", spot.row, spot.before)
    sleep_until(jumped_s + rest_s)
    editor.keys("A")
    editor.lua("vim.cmd.redraw()")
    base = len(editor.screen.at_cursor(GHOST)[0])
    sleep_until(jumped_s + rest_s + JUMP_TO_KEY_S)
    last_s = _type(editor, spot.typed, COLD_PACE_MS / 1000)[-1]
    end_s, has_answer = _watch(editor, plugin, last_s)
    editor.lua("vim.cmd.redraw()")
    seen = list(flushes)
    _check_typed(seen[-1], spot, base)
    costs = plugin.costs(editor, spot)
    _leave(editor, plugin, spot)
    drawn = [
        Drawn(1000 * (flush.at_s - last_s), len(flush.left) - base, flush.ghost)
        for flush, before in zip(seen, [None, *seen], strict=False)
        if before is None or flush[1:] != before[1:]
    ]
    return Jump(spot, drawn, 1000 * (end_s - last_s), has_answer, [cost.tokens for cost in costs])


def _watch(editor: Editor, plugin: Plugin, last_s: float) -> tuple[float, bool]:
    """Wait until the suggestion has settled and no key came for `QUIET_S`.

    Without a suggestion, wait for a better answer as long as for a first one; with one, for
    `LATER_S` after the observation.

    Args:
        last_s: when the last key was sent.

    Returns:
        When the observation ended, and whether the request was answered by then.
    """

    def is_shown() -> bool:
        return bool(editor.screen.at_cursor(GHOST)[1].strip())

    while True:
        since_s = time.perf_counter() - last_s
        is_settled = since_s >= QUIET_S and plugin.is_settled(editor, since_s)
        shows = is_shown()
        end_s = time.perf_counter()
        if is_settled and shows:
            break
        if since_s > FIRST_S + (WAIT_S if shows else 0):
            return end_s, is_settled
        if is_settled and plugin.is_final(editor):
            editor.lua("vim.cmd.redraw()")
            if not is_shown():
                return end_s, True
        time.sleep(0.02)
    while time.perf_counter() < end_s + LATER_S and not plugin.is_final(editor):
        time.sleep(0.02)
    return end_s, True


def _check_typed(flush: Flush, spot: Spot, base: int) -> None:
    if len(flush.left) != base + len(spot.typed):
        raise TimeoutError(f"typed {spot.head!r}, on the screen is {flush.left!r}")


def _leave(editor: Editor, plugin: Plugin, spot: Spot) -> None:
    """Return to Normal mode, restore the line, and wait until no request runs for it."""
    editor.keys("<Esc>")
    editor.lua(PUT, spot.row, spot.head + spot.rest)
    plugin.drain(editor)


def _visible(ghost: str) -> str:
    return ghost if ghost.strip() else ""


def _type(editor: Editor, text: str, pace_s: float) -> list[float]:
    """Send keys at a fixed pace, without waiting for Neovim; return when each was sent."""
    sent_s = []
    began = time.perf_counter()
    for number, char in enumerate(text):
        if number:
            sleep_until(began + number * pace_s - 0.01)
            editor.client.notify("nvim_exec_lua", "probe.key()", [])
            sleep_until(began + number * pace_s)
        sent_s.append(time.perf_counter())
        editor.client.notify("nvim_input", "<lt>" if char == "<" else char)
    return sent_s
