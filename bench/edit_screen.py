"""`bench edit-screen`: how soon changes of 500 lines are drawn, and how long Neovim blocks.

A change is proposed, drawn, navigated, typed next to, listed and accepted, in files of up to 20,000
lines. No host and no model: measures Neovim's main thread.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, Report, check_names, measuring, reporting_timeouts
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
DRAWN = "return require('lcursor.edit.render').is_done()"
PROPOSE = "require('lcursor.edit.proposals').propose(...)"
DROP = "require('lcursor.edit.proposals').drop('t1')"
# Replaces the host, so that messages go through a real pipe.
CHANNEL = """
local channel = vim.fn.jobstart({ "sh", "-c", "cat > /dev/null" }, { rpc = true })
require("lcursor.host.rpc").connect(channel)
require("lcursor.host.requests").send = require("lcursor.host.rpc").notify
require("lcursor.edit")
"""
ASK = """
local ask = require("lcursor.edit.ask")
local last = vim.api.nvim_buf_line_count(0)
_G.run = ask.region(0, math.floor(last / 2), math.floor(last / 2) + 1, "Make it faster.", {})
"""
STOP = "require('lcursor.host.requests').fail_all('the next round')"


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
    """A Neovim with one file and a proposal for it.

    Args:
        neovim: the executable.
        home: an empty folder.
        suffix: of the file.
        shape: a name of `shapes`.
    """

    def __init__(self, neovim: Path, home: Path, suffix: str, shape: str) -> None:
        self.old, self.changes = shapes()[shape]
        self._path = home / f"a.{suffix}"
        self._path.write_text("".join(line + "\n" for line in self.old))
        self.editor = Editor(
            neovim, home, init=INIT, files=(self._path,), columns=COLUMNS, lines=LINES
        )
        self.editor.wait_lua("return vim.v.vim_did_enter == 1")
        self.editor.lua(WATCH)

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
            "is_guarded": False,
            "unneeded": [],
        }
        about = {"id": 1, "turn": "t1", "title": "do it", "alternative": 1, "note": ""}
        return {**about, "files": [file], "attempts": 1, "chat": ""}

    def settle(self) -> None:
        """Wait until scheduled callbacks have run and everything is drawn."""
        self.editor.lua(SETTLE)
        self.editor.wait_lua("return _G.is_later", timeout_s=WAIT_S)
        self.editor.wait_lua(DRAWN, timeout_s=WAIT_S)

    def move(self, normal: str) -> None:
        """Run a Normal mode command, and wait until everything is drawn."""
        self.editor.command(f"normal! {normal}")
        self.settle()

    def fresh(self) -> None:
        """Restore the text without a proposal, and scroll to the first change."""
        self.editor.lua(DROP)
        self.editor.command("silent! undo 0")
        self.to_first()
        self.settle()
        self.editor.command("redraw")

    def to_first(self) -> None:
        """Scroll to the first change."""
        self.editor.command(f"normal! {max(self.changes[0]['first_row'] - 3, 0) + 1}Gzt")

    def propose(self, tick: int = -1) -> None:
        """Receive the proposal and wait until it is drawn."""
        self.editor.lua(PROPOSE, self.message(tick))
        self.settle()

    def busy(self, do: Callable[[], object]) -> tuple[float, float]:
        """Do something; return the longest busy time: wall time and CPU time, in ms."""
        self.editor.lua("watch.wall_ms, watch.cpu_ms = 0, 0")
        do()
        self.settle()
        wall_ms, cpu_ms = self.editor.lua("return { watch.wall_ms, watch.cpu_ms }")
        return wall_ms, cpu_ms

    def lua(self, code: str) -> float:
        """Run Lua; return the longest busy time, in ms."""
        return self.busy(lambda: self.editor.lua(code))[0]

    def keys(self, keys: str) -> float:
        """Press keys; return the longest busy time, in ms."""
        return self.busy(lambda: self.editor.keys(keys))[0]


@contextmanager
def _session(neovim: Path, suffix: str, shape: str) -> Iterator[Session]:
    with tempfile.TemporaryDirectory(prefix="lcb") as home:
        session = Session(neovim, Path(home), suffix, shape)
        try:
            yield session
        finally:
            session.editor.close()


def _draw(report: Report, neovim: Path, suffix: str, rounds: int) -> None:
    """Measure the machine without lcursor, and drawing of each shape."""
    with _session(neovim, suffix, "one block") as session:
        waits = [session.editor.lua(SPIN, SPIN_S) for _ in range(rounds)]
    report.add(f"the machine, {suffix}: a second of spinning, late", waits)
    for shape in shapes():
        measuring(f"drawing {shape}, {suffix}")
        with _session(neovim, suffix, shape) as session:
            _draw_shape(report, session, f"{shape}, {suffix}", rounds)


def _draw_shape(report: Report, session: Session, name: str, rounds: int) -> None:
    screen = session.editor.screen
    firsts, busy, asked = list[float](), list[tuple[float, float]](), list[float]()
    session.editor.lua(CHANNEL)

    def draw() -> None:
        began_s = time.perf_counter()
        session.editor.client.notify("nvim_exec_lua", PROPOSE, [session.message()])

        def is_seen(screen: Screen) -> bool:
            return screen.flushed_s > began_s and screen.has(ADDED)

        if not screen.wait(is_seen, WAIT_S):
            raise TimeoutError("the change is not on the screen")
        firsts.append((screen.flushed_s - began_s) * 1000)

    for number in range(rounds + 1):
        session.fresh() if number else session.to_first()
        asked.append(session.lua(ASK))
        time.sleep(MODEL_S)
        busy.append(session.busy(draw))
        session.editor.lua(STOP)
    walls, cpu = [wall for wall, _ in busy], [cpu for _, cpu in busy]
    report.add(f"{name}: first paint", firsts[1:], limit=FIRST_MS, judged="p50")
    report.add(f"{name}: first paint, just opened", firsts[:1], limit=FIRST_MS, judged="worst")
    report.add(f"{name}: busy", walls[1:], limit=BUSY_MS, judged="p50")
    report.add(f"{name}: busy, just opened", walls[:1], limit=BUSY_MS, judged="worst")
    report.add(f"{name}: busy, of the processor", cpu, limit=BUSY_MS, judged="worst")
    report.add(f"{name}: asking, just opened", asked[:1])


def _use(report: Report, neovim: Path, suffix: str, rounds: int) -> None:
    """Navigate, type next to, list and accept hunks, in 20,000 lines."""
    samples: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        samples.setdefault(name, []).append(value)

    hunks = "require('lcursor.edit.hunks')"
    with _session(neovim, suffix, "20,000 lines, 500 hunks") as session:
        session.settle()
        for _ in range(rounds):
            session.fresh()
            session.move("10000G$")
            add(ALONE, session.keys("a0"))
            session.editor.keys("<Esc>")
            session.fresh()
            session.propose()
            add("to the next hunk", session.lua(f"{hunks}.next(1)"))
            add("to the hunk before", session.lua(f"{hunks}.next(-2)"))
            session.move("10000G$")
            add("a key", session.keys("a0"))
            add("a new line", session.keys("<CR>"))
            session.editor.keys("<Esc>")
            session.move("ggj$")
            add("a key in the lines of a hunk", session.keys("a0"))
            session.editor.keys("<Esc>")
            add("undo", session.keys("u"))
            add("the list opened", session.lua("require('lcursor.edit.quickfix').open()"))
            session.editor.command("wincmd p")
            add("accepting one, with the list open", session.lua(f"{hunks}.accept()"))
            session.editor.command("cclose")
            add("accepting all of 500", session.lua(f"{hunks}.accept_file()"))
            add("undo of that", session.keys("u"))
            add("redo of that", session.keys("<C-r>"))
            session.editor.keys("u")
            session.settle()
            add("rejecting all", session.lua(f"{hunks}.reject_file()"))
    for name, values in samples.items():
        limit = None if name == ALONE else BUSY_MS
        title = f"20,000 lines, 500 hunks, {suffix}: {name}"
        report.add(title, values, limit=limit, judged="p50")


def _accept_all(report: Report, neovim: Path, suffix: str, rounds: int) -> None:
    for shape in ("one block", "each line", "500 hunks"):
        with _session(neovim, suffix, shape) as session:
            samples = []
            for _ in range(rounds):
                session.fresh()
                session.propose()
                samples.append(session.lua("require('lcursor.edit.hunks').accept_file()"))
        title = f"{shape}, {suffix}: accepting all"
        report.add(title, samples, limit=BUSY_MS, judged="p50")


def _ask(report: Report, neovim: Path, suffix: str, rounds: int) -> None:
    with _session(neovim, suffix, "20,000 lines, 500 hunks") as session:
        session.settle()
        session.editor.lua(CHANNEL)
        asked, answered = [], []
        for number in range(rounds + 1):
            session.editor.lua(DROP)
            session.editor.command(f"normal! Go{number}")
            session.editor.command("undo")
            session.settle()
            asked.append(session.lua(ASK))
            tick = session.editor.lua("return vim.api.nvim_buf_get_changedtick(0)")
            answered.append(session.busy(partial(session.propose, tick))[0])
            session.editor.lua(STOP)
            session.settle()
    title = f"20,000 lines, {suffix}"
    report.add(f"{title}: asking", asked[1:], limit=BUSY_MS, judged="p50")
    answer = f"{title}: the answer to it, 500 hunks"
    report.add(answer, answered[1:], limit=BUSY_MS, judged="p50")


PARTS: dict[str, Callable[[Report, Path, str, int], None]] = {
    "draw": _draw,
    "take": _accept_all,
    "use": _use,
    "ask": _ask,
}


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="draw, take, use, ask; default: all.")
    ] = None,
    suffixes: Annotated[
        str, typer.Option(help="Kinds of files: lua has a parser, py a syntax file, txt neither.")
    ] = "lua,txt",
    rounds: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 8,
    as_json: Json = False,
) -> None:
    """Draw, navigate and accept changes of 500 lines in a real Neovim, with no model.

    Exits with 1 when a promise is not kept.
    """
    check_names(names or (), PARTS)
    report, neovim = Report(), find_neovim()
    with reporting_timeouts():
        for suffix in suffixes.split(","):
            for name in names or PARTS:
                measuring(f"{name}, {suffix}")
                PARTS[name](report, neovim, suffix, rounds)
    report.finish(as_json)
