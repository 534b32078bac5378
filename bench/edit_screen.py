"""`bench edit-screen`: how soon changes of 500 lines are drawn, and how long Neovim blocks.

A change is proposed, drawn, navigated, typed next to, listed and accepted, in files of up to 20,000
lines. No host and no model: measures Neovim's main thread.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import (
    Figure,
    Json,
    check_names,
    emit,
    exit_unless,
    figure,
    figure_rows,
    figure_table,
    head,
    measuring,
    reporting_timeouts,
    run_facts,
)
from lcursor.cli.editor import find_neovim
from lcursor.drive.editor import Editor
from lcursor.drive.screen import Screen

FIRST_MS, BUSY_MS = 50, 16
COLUMNS, LINES = 120, 40
WAIT_S = 20.0
MODEL_S = 0.5
"""Minimum time a model takes to write a change."""
ADDED = "LCursorEditAdded"
ALONE = "a key, with no hunks"  # Neovim without lcursor
Change = dict[str, Any]

INIT = """
vim.g.loaded_python3_provider = 0
vim.g.lcursor = { completion = { enabled = false }, index = { enabled = false } } -- no host
vim.o.swapfile, vim.o.showmode = false, false
vim.api.nvim_set_hl(0, "LCursorEditAdded", { bg = 0x101011 })
"""

WATCH = """
local uv = vim.uv
local check, prepare, woke, began = uv.new_check(), uv.new_prepare(), nil, 0
_G.watch = { wall_ms = 0, cpu_ms = 0 }
check:start(function() woke, began = uv.hrtime(), os.clock() end)
prepare:start(function()
  if woke then
    watch.wall_ms = math.max(watch.wall_ms, (uv.hrtime() - woke) / 1e6)
    watch.cpu_ms = math.max(watch.cpu_ms, (os.clock() - began) * 1e3)
    woke = nil
  end
end)
"""
"""The longest time between two waits of the event loop: wall time and CPU time."""

SPIN = """
local uv = vim.uv
local last, worst = uv.hrtime(), 0
local ends = last + ... * 1e9
while last < ends do
  local now = uv.hrtime()
  worst, last = math.max(worst, now - last), now
end
return worst / 1e6
"""
"""The longest pause of a busy loop in Neovim: what the machine adds by itself."""
SPIN_S = 1

SETTLE = "_G.is_later = false; vim.defer_fn(function() _G.is_later = true end, 60)"
DRAWN = "return require('lcursor.edit.draw').is_done()"
PROPOSE = "require('lcursor.edit.store').propose(...)"
DROP = "require('lcursor.edit.store').drop('t1')"
# Replaces the host, so that messages go through a real pipe.
CHANNEL = """
local channel = vim.fn.jobstart({ "sh", "-c", "cat > /dev/null" }, { rpc = true })
require("lcursor.rpc").connect(channel)
require("lcursor.requests").send = require("lcursor.rpc").notify
require("lcursor.edit")
"""
ASK = """
local region = require("lcursor.edit.region")
local last = vim.api.nvim_buf_line_count(0)
_G.run = region.ask(0, math.floor(last / 2), math.floor(last / 2) + 1, "Make it faster.", {})
"""
STOP = "require('lcursor.requests').fail_all('the next round')"


def big(count: int, seed: int) -> list[str]:
    """Return a file of functions."""
    lines = []
    for i in range(count // 5):
        lines += [
            f"local function name_{i}(first, second)",
            f"  local value = first * {i + seed} + second",
            f'  print("value {i}", value)',
            "  return value",
            "end",
        ]
    return lines


NOTES = [f"-- new {i}" for i in range(500)]
LONG = 20000


def _change(row: int, old: Sequence[str], new: Sequence[str]) -> Change:
    return {"first_row": row, "last_row": row + len(old), "old": list(old), "new": list(new)}


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changes between texts with the same number of lines, one per changed block."""
    found: list[Change] = []
    for row, (before, after) in enumerate(zip(old, new, strict=True)):
        if before == after:
            continue
        if found and found[-1]["last_row"] == row:
            found[-1]["last_row"] += 1
            found[-1]["old"].append(before)
            found[-1]["new"].append(after)
        else:
            found.append(_change(row, [before], [after]))
    return found


def shapes() -> dict[str, tuple[list[str], list[Change]]]:
    """Return texts with changes, by a description."""
    short = big(500, 0)
    return {
        "one block": (big(1000, 0), [_change(500, [], NOTES)]),
        "each line": (short, _pairs(short, [line.replace("a", "b") for line in short])),
        "500 hunks": (big(2500, 0), _pairs(big(2500, 0), big(2500, 7))),
        "all new": ([""], [_change(0, [""], short)]),
        "20,000 lines, one block": (big(LONG, 0), [_change(19500, [], NOTES)]),
        "20,000 lines, 500 hunks": (big(LONG, 0), _pairs(big(LONG, 0), big(LONG, 7))[::8]),
    }


class Session:
    """A Neovim with one file and a proposal for it."""

    def __init__(self, neovim: Path, home: Path, suffix: str, shape: str) -> None:
        self.old, self.changes = shapes()[shape]
        self._path = home / f"a.{suffix}"
        self._path.write_text("".join(line + "\n" for line in self.old))
        self.editor = Editor(
            neovim, home, init=INIT, files=(self._path,), columns=COLUMNS, lines=LINES
        )
        self.editor.wait_lua("return vim.v.vim_did_enter == 1")
        self.editor.lua(WATCH)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.editor.close()

    def message(self, tick: int = -1) -> dict[str, Any]:
        """Return the message with the proposal."""
        file = {
            "path": str(self._path),
            "name": self._path.name,
            "kind": "edit",
            "to": "",
            "base": hashlib.sha256("\n".join(self.old).encode()).hexdigest(),
            "tick": tick,
            "changes": self.changes,
            "checks": [],
            "is_outside": False,
        }
        return {
            "id": 1,
            "turn": "t1",
            "title": "do it",
            "alternative": 1,
            "files": [file],
            "note": "",
            "attempts": 1,
            "chat": "",
        }

    def settle(self) -> None:
        """Wait until scheduled callbacks have run and everything is drawn."""
        self.editor.lua(SETTLE)
        self.editor.wait_lua("return _G.is_later", timeout_s=WAIT_S)
        self.editor.wait_lua(DRAWN, timeout_s=WAIT_S)

    def fresh(self) -> None:
        """Restore the text without a proposal, and scroll to the first change."""
        self.editor.lua(DROP)
        self.editor.command("silent! undo 0 | normal! gg")
        row = max(self.changes[0]["first_row"] - 3, 0)
        self.editor.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row + 1)
        self.editor.command("normal! zt")
        self.settle()
        self.editor.command("redraw")

    def propose(self, tick: int = -1) -> None:
        """Receive the proposal and wait until it is drawn."""
        self.editor.lua(PROPOSE, self.message(tick))
        self.settle()

    def busy(self, do: Callable[[], object]) -> float:
        """Do something; return the longest time that Neovim was busy, in ms."""
        return self.busy_both(do)[0]

    def busy_both(self, do: Callable[[], object]) -> tuple[float, float]:
        """Do something; return the longest busy time: wall time and CPU time, in ms."""
        self.editor.lua("watch.wall_ms, watch.cpu_ms = 0, 0")
        do()
        self.settle()
        wall_ms, cpu_ms = self.editor.lua("return { watch.wall_ms, watch.cpu_ms }")
        return wall_ms, cpu_ms

    def lua_busy(self, code: str) -> float:
        """Run Lua; return the longest busy time, in ms."""
        return self.busy(lambda: self.editor.lua(code))


def _draw(neovim: Path, suffix: str, shape: str, rounds: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _session(neovim, home, suffix, shape) as session,
    ):
        screen = session.editor.screen
        firsts, busies, asked = [], [], []
        session.editor.lua(CHANNEL)
        for number in range(rounds + 1):
            session.fresh() if number else None

            def draw() -> None:
                began_s = time.perf_counter()
                session.editor.client.notify("nvim_exec_lua", PROPOSE, [session.message()])

                def is_seen(screen: Screen) -> bool:
                    return screen.flushed_s > began_s and screen.has(ADDED)

                if not screen.wait(is_seen, WAIT_S):
                    raise TimeoutError("the change is not on the screen")
                firsts.append((screen.flushed_s - began_s) * 1000)

            if not number:
                row = max(session.changes[0]["first_row"] - 3, 0)
                session.editor.command(f"normal! {row + 1}Gzt")
            asked.append(session.lua_busy(ASK))
            time.sleep(MODEL_S)
            busies.append(session.busy_both(draw))
            session.editor.lua(STOP)
    walls, processors = [wall for wall, _ in busies], [cpu for _, cpu in busies]
    name = f"{shape}, {suffix}"
    return [
        figure(f"{name}: first paint", firsts[1:], limit=FIRST_MS, judged="p50"),
        figure(f"{name}: first paint, just opened", firsts[:1], limit=FIRST_MS, judged="worst"),
        figure(f"{name}: busy", walls[1:], limit=BUSY_MS, judged="p50"),
        figure(f"{name}: busy, just opened", walls[:1], limit=BUSY_MS, judged="worst"),
        figure(f"{name}: busy, of the processor", processors, limit=BUSY_MS, judged="worst"),
        figure(f"{name}: asking, just opened", asked[:1]),
    ]


def _machine(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    """Measure the machine without lcursor."""
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _session(neovim, home, suffix, "one block") as session,
    ):
        waits = [session.editor.lua(SPIN, SPIN_S) for _ in range(rounds)]
    return [figure(f"the machine, {suffix}: a second of spinning, late", waits)]


def _session(neovim: Path, home: str, suffix: str, shape: str) -> Session:
    return Session(neovim, Path(home), suffix, shape)


def _use(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    """Navigate, type next to, list and accept hunks, in 20,000 lines."""
    samples: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    hunks = "require('lcursor.edit.hunks')"
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _session(neovim, home, suffix, "20,000 lines, 500 hunks") as session,
    ):
        session.settle()
        for _ in range(rounds):
            session.fresh()
            session.editor.command("normal! 10000G$")
            session.settle()
            add(ALONE, session.busy(lambda: session.editor.keys("a0")))
            session.editor.keys("<Esc>")
            session.fresh()
            session.propose()
            add("to the next hunk", session.lua_busy(f"{hunks}.next(1)"))
            add("to the hunk before", session.lua_busy(f"{hunks}.next(-2)"))
            session.editor.command("normal! 10000G$")
            session.settle()
            add("a key", session.busy(lambda: session.editor.keys("a0")))
            add("a new line", session.busy(lambda: session.editor.keys("<CR>")))
            session.editor.keys("<Esc>")
            session.editor.command("normal! ggj$")
            session.settle()
            add("a key in the lines of a hunk", session.busy(lambda: session.editor.keys("a0")))
            session.editor.keys("<Esc>")
            add("undo", session.busy(lambda: session.editor.keys("u")))
            add("the list opened", session.lua_busy("require('lcursor.edit.quickfix').open()"))
            session.editor.command("wincmd p")
            add("accepting one, with the list open", session.lua_busy(f"{hunks}.accept()"))
            session.editor.command("cclose")
            add("accepting all of 500", session.lua_busy(f"{hunks}.accept_file()"))
            add("undo of that", session.busy(lambda: session.editor.keys("u")))
            add("redo of that", session.busy(lambda: session.editor.keys("<C-r>")))
            session.editor.keys("u")
            session.settle()
            add("rejecting all", session.lua_busy(f"{hunks}.reject_file()"))
    return [
        figure(
            f"20,000 lines, 500 hunks, {suffix}: {name}",
            values,
            limit=None if name == ALONE else BUSY_MS,
            judged="p50",
        )
        for name, values in samples.items()
    ]


def _accept_all(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    figures = []
    for shape in ("one block", "each line", "500 hunks"):
        with (
            tempfile.TemporaryDirectory(prefix="lcb") as home,
            _session(neovim, home, suffix, shape) as session,
        ):
            busies = []
            for _ in range(rounds):
                session.fresh()
                session.propose()
                busies.append(session.lua_busy("require('lcursor.edit.hunks').accept_file()"))
            figures.append(
                figure(f"{shape}, {suffix}: accepting all", busies, limit=BUSY_MS, judged="p50")
            )
    return figures


def _ask(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _session(neovim, home, suffix, "20,000 lines, 500 hunks") as session,
    ):
        session.settle()
        session.editor.lua(CHANNEL)
        asked, answered = [], []
        for number in range(rounds + 1):
            session.editor.lua(DROP)
            session.editor.command(f"normal! Go{number}")
            session.editor.command("undo")
            session.settle()
            asked.append(session.lua_busy(ASK))
            tick = session.editor.lua("return vim.api.nvim_buf_get_changedtick(0)")
            answered.append(
                session.busy(lambda: session.editor.lua(PROPOSE, session.message(tick)))  # noqa: B023
            )
            session.editor.lua(STOP)
            session.settle()
    return [
        figure(f"20,000 lines, {suffix}: asking", asked[1:], limit=BUSY_MS, judged="p50"),
        figure(
            f"20,000 lines, {suffix}: the answer to it, 500 hunks",
            answered[1:],
            limit=BUSY_MS,
            judged="p50",
        ),
    ]


PARTS: dict[str, Callable[[Path, str, int], list[Figure]]] = {
    "draw": _machine,
    "take": _accept_all,
    "use": _use,
    "ask": _ask,
}
"""The parts by name; "draw" also measures each of `shapes`."""


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="draw, take, use, ask; all when none is named.")
    ] = None,
    suffixes: Annotated[
        str, typer.Option(help="Of files: lua has a parser, py the rules of 'syntax', txt neither.")
    ] = "lua,txt",
    rounds: Annotated[int, typer.Option(min=1, help="How often each.")] = 8,
    as_json: Json = False,
) -> None:
    """Draw, navigate and accept changes of 500 lines in a real Neovim, with no model.

    Exits with 1 when a promise is not kept.
    """
    check_names(names or (), PARTS)
    facts = run_facts()
    with reporting_timeouts():
        figures = measure(find_neovim(), names or [*PARTS], suffixes.split(","), rounds)
    document = {**facts, "figures": figure_rows(figures)}
    emit(document, [*head(facts), *figure_table(figures)], as_json)
    exit_unless(all(each.holds for each in figures))


def measure(
    neovim: Path, names: Sequence[str], suffixes: Sequence[str], rounds: int
) -> list[Figure]:
    """Measure some parts in files with each suffix."""
    figures: list[Figure] = []
    for suffix in suffixes:
        for shape in shapes() if "draw" in names else ():
            measuring(f"drawing {shape}, {suffix}")
            figures += _draw(neovim, suffix, shape, rounds)
        for name in names:
            measuring(f"{name}, {suffix}")
            figures += PARTS[name](neovim, suffix, rounds)
    return figures
