"""`bench agent-screen`: how soon a question of an agent is on the screen, and what streams cost.

Runs of a few and of 200 steps, their window shown, and the list of eight runs that stream at once.
No host and no model: measures Neovim's main thread.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, Report, measuring, reporting_timeouts
from lcursor.cli.editor import find_neovim
from lcursor.drive.editor import Editor
from lcursor.drive.screen import Screen

SHOWN_MS, LISTED_MS, KEY_MS, SHARE = 50, 100, 30, 5.0
COLUMNS, LINES = 120, 40
WAIT_S = 20.0
STEPS = (5, 200)
STREAM_S, TOKENS_PER_S, STEPS_PER_S = 4, 50, 1
RUNS, DELTAS_PER_S = 8, 20
"""The host sends what a model writes at most so often."""
ASKS = "LCursorAgentAsks"
TEXT = "\n".join(f"{row:6}\tvalue = value + {row}" for row in range(60))

INIT = """
vim.g.lcursor = { completion = { enabled = false }, index = { enabled = false } } -- no host
vim.o.swapfile, vim.o.showmode = false, false
vim.api.nvim_set_hl(0, "LCursorAgentAsks", { fg = 0x101011 })
"""
# Replaces the host, so that messages go through a real pipe; notes when a decision was sent.
START = """
local channel = vim.fn.jobstart({ "sh", "-c", "cat > /dev/null" }, { rpc = true })
local rpc, requests = require("lcursor.host.rpc"), require("lcursor.host.requests")
rpc.connect(channel)
requests.send = rpc.notify
requests.notify = function(method, params)
  local sent = rpc.notify(method, params)
  if method == "agent.decide" then
    _G.decided_ms = (vim.uv.hrtime() - _G.pressed) / 1e6
  end
  return sent
end
_G.channel = channel
for _ = 1, ... do
  require("lcursor").agent({ task = "measure it" })
end
vim.keymap.set("n", "<F12>", function()
  _G.pressed = vim.uv.hrtime()
  vim.api.nvim_feedkeys("ga", "m", false)
end)
vim.keymap.set("n", "<F11>", "]w", { remap = true })
"""
RECEIVE = "require('lcursor.host.rpc').receive(_G.channel, ...)"
CLOCK = "return { os.clock(), vim.uv.hrtime() / 1e9 }"


class Session:
    """A Neovim with runs of so many steps."""

    def __init__(self, neovim: Path, home: Path, steps: int, runs: int = 1) -> None:
        self.editor = Editor(neovim, home, init=INIT, columns=COLUMNS, lines=LINES)
        self.editor.wait_lua("return vim.v.vim_did_enter == 1")
        self.editor.lua(START, runs)
        self.numbers = itertools.count(1)
        self.runs = range(1, runs + 1)
        for run in self.runs:
            started = {"run": f"r{run}", "task": "measure it", "policy": "auto", "model": "m"}
            more = {"dialect": "native", "sandbox": "bubblewrap", "note": ""}
            self.send("started", {**started, **more, "group": "", "attempt": 0}, run)
        for _ in range(steps):
            number = next(self.numbers)
            for run in self.runs:
                self.step(number, run=run)
        self.editor.lua("return 1")

    def send(self, name: str, params: dict[str, Any], request: int = 1) -> None:
        """Send a message, without waiting for it."""
        args = [f"agent.{name}", {"id": request, **params}]
        self.editor.client.notify("nvim_exec_lua", RECEIVE, args)

    def step(self, number: int, state: str = "done", run: int = 1) -> None:
        """Send a step."""
        step = {"kind": "command", "target": f"make {number}", "result": "exit 0", "seconds": 0.2}
        text = TEXT if state == "done" else ""
        self.send("step", {"number": number, "state": state, "text": text, **step}, run)

    def ask(self) -> tuple[float, float]:
        """Return the ms until a question is on the screen, and from a key to the decision."""
        number, screen = next(self.numbers), self.editor.screen
        self.step(number, "running")
        self.editor.lua("_G.decided_ms = nil vim.cmd.redraw()")
        question = {"command": f"make {number}", "why": "network", "is_bound": False}
        ask = {"ask": number, "number": number, **question}
        began_s = time.perf_counter()
        self.send("asks", ask)

        def is_seen(screen: Screen) -> bool:
            return screen.flushed_s > began_s and screen.has(ASKS)

        if not screen.wait(is_seen, WAIT_S):
            raise TimeoutError("the question is not on the screen")
        shown_ms = (screen.flushed_s - began_s) * 1000
        self.editor.keys("<F11><F12>")
        decided_ms: float = self.editor.wait_lua("return _G.decided_ms", timeout_s=WAIT_S)
        self.step(number)
        return shown_ms, decided_ms

    def open_list(self) -> None:
        """Open the list of the runs."""
        self.editor.command("LCursor agent list")
        request = self.editor.lua("return require('lcursor.host.requests').next_id()") - 1
        row = {"task": "measure it", "state": "running", "at_s": time.time(), "attempt": 0}
        rows = [{"run": f"r{run}", "steps": 5, **row} for run in self.runs]
        self.send("listed", {"runs": rows}, request)
        self.wait_text(f"{len(self.runs)} runs of this project")

    def change(self) -> float:
        """Return the ms until a change of a run's status is in the list."""
        number = next(self.numbers)
        self.editor.lua("vim.cmd.redraw()")
        began_s = time.perf_counter()
        self.step(number, "running", run=5)
        return (self.wait_text(f"make {number}") - began_s) * 1000

    def wait_text(self, text: str) -> float:
        """Return the time at which a text is on the screen.

        Raises:
            TimeoutError: it does not come.
        """
        screen = self.editor.screen
        if not screen.wait(lambda it: any(text in row for row in it.rows()), WAIT_S):
            raise TimeoutError(f"the screen does not show: {text}")
        return screen.flushed_s

    def share(self, deltas_per_s: int = TOKENS_PER_S) -> float:
        """Return the percentage of its time that Neovim works while models write."""
        cpu_s, began_s = self.editor.lua(CLOCK)
        deltas = deltas_per_s // STEPS_PER_S
        for _ in range(STREAM_S * STEPS_PER_S):
            for at in range(deltas):
                delta = {"text": "word and " if at % 9 else "word.\n", "is_new": at == 0}
                for run in self.runs:
                    self.send("delta", delta, run)
                time.sleep(1 / deltas_per_s)
            number = next(self.numbers)
            for run in self.runs:
                self.step(number, run=run)
        cpu_after_s, ended_s = self.editor.lua(CLOCK)
        return float(100 * (cpu_after_s - cpu_s) / (ended_s - began_s))


@contextmanager
def _session(neovim: Path, steps: int, runs: int = 1) -> Iterator[Session]:
    with tempfile.TemporaryDirectory(prefix="lcb") as home:
        session = Session(neovim, Path(home), steps, runs)
        try:
            yield session
        finally:
            session.editor.close()


def command(
    rounds: Annotated[int, typer.Option(min=1, help="Number of questions.")] = 20,
    as_json: Json = False,
) -> None:
    """Show questions and streams of an agent in a real Neovim, with no model.

    Exits with 1 when a promise is not kept.
    """
    report, neovim = Report(), find_neovim()
    with reporting_timeouts():
        for steps in STEPS:
            name = f"after {steps} steps"
            measuring(name)
            with _session(neovim, steps) as session:
                asked = [session.ask() for _ in range(rounds + 1)][1:]
                share = session.share()
            report.add(f"{name}: question on the screen", [a for a, _ in asked], limit=SHOWN_MS)
            report.add(f"{name}: key to decision", [b for _, b in asked], limit=KEY_MS)
            report.add(f"{name}: work while streaming", [share], unit="%", limit=SHARE)
        name = f"list of {RUNS} runs"
        measuring(name)
        with _session(neovim, STEPS[0], RUNS) as session:
            session.open_list()
            changes = [session.change() for _ in range(rounds + 1)][1:]
            share = session.share(DELTAS_PER_S)
        report.add(f"{name}: change on the screen", changes, limit=LISTED_MS)
        report.add(f"{name}: work while all stream", [share], unit="%", limit=SHARE)
    report.finish(as_json)
