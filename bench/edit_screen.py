"""Changes of 500 lines in a real Neovim: how soon they are seen, how long it is busy at once.

`python -m lcursor bench edit-screen`. A text is proposed, drawn, gone through, typed beside, listed
and taken, in files of up to 20,000 lines. No host and no model: what is measured is Neovim's main
thread.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.report import Figure, figure
from lcursor.drive.editor import Editor
from lcursor.drive.screen import Screen

FIRST_MS, BUSY_MS = 50, 16
ROUNDS = 12
COLUMNS, LINES = 120, 40
WAIT_S = 20.0
MODEL_S = 0.5
"""Least that a model takes to write a change."""
ADDED = "LCursorEditAdded"
ALONE = "a key, with no hunks"  # what Neovim does by itself
Say = Callable[[str], None]
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
"""How long the loop was away from waiting, at most: by the clock, and of the processor (a machine
that lets it wait makes it late, but not busy)."""

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
"""How long the machine kept a Neovim waiting that did nothing but look at the clock, at most."""
SPIN_S = 1

SETTLE = "_G.is_later = false; vim.defer_fn(function() _G.is_later = true end, 60)"
DRAWN = "return require('lcursor.edit.draw').is_done()"
PROPOSE = "require('lcursor.edit.store').propose(...)"
DROP = "require('lcursor.edit.store').drop('t1')"
# Stands in for the host, so that what is sent goes through a real pipe.
CHANNEL = """
local channel = vim.fn.jobstart({ "sh", "-c", "cat > /dev/null" }, { rpc = true })
require("lcursor.rpc").connect(channel)
require("lcursor.report").request = require("lcursor.rpc").notify
require("lcursor.edit")
"""
ASK = """
local region = require("lcursor.edit.region")
local last = vim.api.nvim_buf_line_count(0)
_G.run = region.ask(0, math.floor(last / 2), math.floor(last / 2) + 1, "Make it faster.", {})
"""
STOP = "require('lcursor.edit.requests').fail_all('the next round')"


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
    """Return the changes of texts that have as many lines, one for each run of others."""
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
    """Return texts and changes of them, by the name of what they are."""
    short = big(500, 0)
    return {
        "one block": (big(1000, 0), [_change(500, [], NOTES)]),
        "each line": (short, _pairs(short, [line.replace("a", "b") for line in short])),
        "500 hunks": (big(2500, 0), _pairs(big(2500, 0), big(2500, 7))),
        "all new": ([""], [_change(0, [""], short)]),
        "20,000 lines, one block": (big(LONG, 0), [_change(19500, [], NOTES)]),
        "20,000 lines, 500 hunks": (big(LONG, 0), _pairs(big(LONG, 0), big(LONG, 7))[::8]),
    }


class Room:
    """A Neovim with one file and changes of it."""

    def __init__(self, neovim: Path, home: Path, suffix: str, shape: str) -> None:
        self.old, self.changes = shapes()[shape]
        self._path = home / f"a.{suffix}"
        self._path.write_text("".join(line + "\n" for line in self.old))
        self.editor = Editor(
            neovim, home, init=INIT, files=(self._path,), columns=COLUMNS, lines=LINES
        )
        self.editor.wait_lua("return vim.v.vim_did_enter == 1")
        self.editor.lua(WATCH)

    def __enter__(self) -> Room:
        return self

    def __exit__(self, *error: object) -> None:
        self.editor.close()

    def message(self, tick: int = -1) -> dict[str, Any]:
        """Return the proposal."""
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
        """Let what is scheduled run."""
        self.editor.lua(SETTLE)
        self.editor.wait_lua("return _G.is_later", timeout_s=WAIT_S)
        self.editor.wait_lua(DRAWN, timeout_s=WAIT_S)

    def fresh(self) -> None:
        """Bring the text back, with nothing proposed, and look at the first change."""
        self.editor.lua(DROP)
        self.editor.command("silent! undo 0 | normal! gg")
        row = max(self.changes[0]["first_row"] - 3, 0)
        self.editor.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row + 1)
        self.editor.command("normal! zt")
        self.settle()
        self.editor.command("redraw")

    def propose(self, tick: int = -1) -> None:
        """Take the proposal and wait until all is drawn."""
        self.editor.lua(PROPOSE, self.message(tick))
        self.settle()

    def busy(self, do: Callable[[], object]) -> float:
        """Do something; return how long Neovim was busy at once, at most, in ms."""
        return self.busy_both(do)[0]

    def busy_both(self, do: Callable[[], object]) -> tuple[float, float]:
        """Do something; return the same by the clock, and of the processor."""
        self.editor.lua("watch.wall_ms, watch.cpu_ms = 0, 0")
        do()
        self.settle()
        wall_ms, cpu_ms = self.editor.lua("return { watch.wall_ms, watch.cpu_ms }")
        return wall_ms, cpu_ms

    def lua_busy(self, code: str) -> float:
        """Run Lua; return the same."""
        return self.busy(lambda: self.editor.lua(code))


def _drawn(neovim: Path, suffix: str, shape: str, rounds: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _room(neovim, home, suffix, shape) as room,
    ):
        screen = room.editor.screen
        firsts, busies, asked = [], [], []
        room.editor.lua(CHANNEL)
        for number in range(rounds + 1):
            room.fresh() if number else None

            def draw() -> None:
                began_s = time.perf_counter()
                room.editor.client.notify("nvim_exec_lua", PROPOSE, [room.message()])

                def is_seen(screen: Screen) -> bool:
                    return screen.flushed_s > began_s and screen.has(ADDED)

                if not screen.wait(is_seen, WAIT_S):
                    raise TimeoutError("the change is not on the screen")
                firsts.append((screen.flushed_s - began_s) * 1000)

            if not number:
                row = max(room.changes[0]["first_row"] - 3, 0)
                room.editor.command(f"normal! {row + 1}Gzt")
            asked.append(room.lua_busy(ASK))
            time.sleep(MODEL_S)
            busies.append(room.busy_both(draw))
            room.editor.lua(STOP)
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
    """Measure what no change has to do with."""
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _room(neovim, home, suffix, "one block") as room,
    ):
        waits = [room.editor.lua(SPIN, SPIN_S) for _ in range(rounds)]
    return [figure(f"the machine, {suffix}: a second of spinning, late", waits)]


def _room(neovim: Path, home: str, suffix: str, shape: str) -> Room:
    return Room(neovim, Path(home), suffix, shape)


def _used(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    """Hunks gone through, typed beside, listed and taken, in 20,000 lines."""
    samples: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    hunks = "require('lcursor.edit.hunks')"
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _room(neovim, home, suffix, "20,000 lines, 500 hunks") as room,
    ):
        room.settle()
        for _ in range(rounds):
            room.fresh()
            room.editor.command("normal! 10000G$")
            room.settle()
            add(ALONE, room.busy(lambda: room.editor.keys("a0")))
            room.editor.keys("<Esc>")
            room.fresh()
            room.propose()
            add("to the next hunk", room.lua_busy(f"{hunks}.next(1)"))
            add("to the hunk before", room.lua_busy(f"{hunks}.next(-2)"))
            room.editor.command("normal! 10000G$")
            room.settle()
            add("a key", room.busy(lambda: room.editor.keys("a0")))
            add("a new line", room.busy(lambda: room.editor.keys("<CR>")))
            room.editor.keys("<Esc>")
            room.editor.command("normal! ggj$")
            room.settle()
            add("a key in the lines of a hunk", room.busy(lambda: room.editor.keys("a0")))
            room.editor.keys("<Esc>")
            add("undo", room.busy(lambda: room.editor.keys("u")))
            add("the list opened", room.lua_busy("require('lcursor.edit.quickfix').open()"))
            room.editor.command("wincmd p")
            add("one taken, with the list open", room.lua_busy(f"{hunks}.accept()"))
            room.editor.command("cclose")
            add("taking all of 500", room.lua_busy(f"{hunks}.accept_file()"))
            add("undo of that", room.busy(lambda: room.editor.keys("u")))
            add("redo of that", room.busy(lambda: room.editor.keys("<C-r>")))
            room.editor.keys("u")
            room.settle()
            add("refusing all", room.lua_busy(f"{hunks}.reject_file()"))
    return [
        figure(
            f"20,000 lines, 500 hunks, {suffix}: {name}",
            values,
            limit=None if name == ALONE else BUSY_MS,
            judged="p50",
        )
        for name, values in samples.items()
    ]


def _taken(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    figures = []
    for shape in ("one block", "each line", "500 hunks"):
        with (
            tempfile.TemporaryDirectory(prefix="lcb") as home,
            _room(neovim, home, suffix, shape) as room,
        ):
            busies = []
            for _ in range(rounds):
                room.fresh()
                room.propose()
                busies.append(room.lua_busy("require('lcursor.edit.hunks').accept_file()"))
            figures.append(
                figure(f"{shape}, {suffix}: taking all", busies, limit=BUSY_MS, judged="p50")
            )
    return figures


def _asked(neovim: Path, suffix: str, rounds: int) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as home,
        _room(neovim, home, suffix, "20,000 lines, 500 hunks") as room,
    ):
        room.settle()
        room.editor.lua(CHANNEL)
        asked, answered = [], []
        for number in range(rounds + 1):
            room.editor.lua(DROP)
            room.editor.command(f"normal! Go{number}")
            room.editor.command("undo")
            room.settle()
            asked.append(room.lua_busy(ASK))
            tick = room.editor.lua("return vim.api.nvim_buf_get_changedtick(0)")
            answered.append(
                room.busy(lambda: room.editor.lua(PROPOSE, room.message(tick)))  # noqa: B023
            )
            room.editor.lua(STOP)
            room.settle()
    return [
        figure(f"20,000 lines, {suffix}: asking", asked[1:], limit=BUSY_MS, judged="p50"),
        figure(
            f"20,000 lines, {suffix}: the answer to it, 500 hunks",
            answered[1:],
            limit=BUSY_MS,
            judged="p50",
        ),
    ]


PARTS = ("draw", "take", "use", "ask")


def measure(
    neovim: Path, names: Sequence[str], suffixes: Sequence[str], rounds: int, say: Say
) -> list[Figure]:
    """Measure what is named.

    Args:
        neovim: the executable.
        names: of PARTS.
        suffixes: of files: with a tree-sitter parser, with the rules of 'syntax', with neither.
        rounds: how often each.
        say: told what is being measured.

    Raises:
        TimeoutError: something that must come did not.
    """
    figures: list[Figure] = []
    for suffix in suffixes:
        for shape in shapes() if "draw" in names else ():
            say(f"drawing {shape}, {suffix}")
            figures += _drawn(neovim, suffix, shape, rounds)
        parts = (("draw", _machine), ("take", _taken), ("use", _used), ("ask", _asked))
        for name, part in parts:
            if name in names:
                say(f"{name}, {suffix}")
                figures += part(neovim, suffix, rounds)
    return figures
