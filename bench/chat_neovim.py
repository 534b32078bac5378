"""The parts of `bench chat` in a real Neovim: `screen` streams an answer, `ghost` types beside one.

For `screen`, an answer of 200 tokens a second comes from a server on the loopback interface
(`steady.py`) through the real host. Measured are Neovim's main thread, and the delay of keys typed
in another window. For `ghost`, the chat has a server of its own in the home of that Neovim, which
ends when the home is deleted.
"""

from __future__ import annotations

import json
import tempfile
import time
from asyncio import base_events
from pathlib import Path

from bench import steady
from bench.editor import PROBE
from bench.plugin import Plugin
from bench.report import Report, measuring, percentile, sleep_until
from bench.trials import Spot, pick_spots, read_lines
from bench.typing_run import run
from lcursor.drive.editor import Editor
from lcursor.drive.screen import Screen
from lcursor.errors import LcursorError

MODEL = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS = 8192

TOKENS_PER_S = 200
ANSWER_TOKENS = 2400
KEYS, KEY_S = 200, 0.04
ROW_KEYS = 40
WATCH_S = 6.0
COLUMNS, LINES = 160, 44

POSITIONS, PACE_MS, START_S, SEED = 6, 120.0, 120.0, 1

INIT = """
vim.o.swapfile, vim.o.showmode = false, false
vim.g.lcursor = vim.json.decode([==[%s]==])
"""
OPEN = "require('lcursor.chat').open({ new = true, enter = false })"
IS_OPEN = "return require('lcursor.chat').current().key ~= ''"
ASK = "require('lcursor.chat').ask('Explain it.', { enter = false })"
LINE_COUNT = """
local session = require("lcursor.chat").current()
return session and vim.api.nvim_buf_line_count(session.buf) or 0
"""
IS_RUNNING = "local s = require('lcursor.chat').current() return s ~= nil and s.turn ~= nil"
TEXT = """
local session = require("lcursor.chat").current()
return table.concat(vim.api.nvim_buf_get_lines(session.buf, 0, -1, false), "\\n")
"""
ASK_AGAIN = """
local chat = require("lcursor.chat")
local session = chat.current()
if session and session.turn then
  require("lcursor.chat.turn").stop(session)
end
local question = "Print the numbers from 1 to 999, each on a line of its own."
chat.ask(question, { new = true, enter = false })
"""
IS_WRITING = """
local session = require("lcursor.chat").current()
local turn = session and session.turn
return turn ~= nil and turn.bytes > 0
"""


def stream(report: Report, neovim: Path) -> None:
    """Type without and with an answer that streams, and measure the main thread."""
    with (
        tempfile.TemporaryDirectory(prefix="lcb") as folder,
        steady.running(TOKENS_PER_S, ANSWER_TOKENS) as url,
        _editor(neovim, Path(folder), url) as editor,
    ):
        measuring("a host and a chat")
        editor.lua(OPEN)
        editor.wait_lua(IS_OPEN, timeout_s=30)
        editor.wait_state("ready", timeout_s=120)  # the completion's model is loaded
        editor.lua("probe.wrap_messages()")
        measuring("typing while nothing streams")
        alone = _type(editor)
        measuring(f"typing while {TOKENS_PER_S} tokens a second stream")
        _begin(editor)
        streaming = _type(editor)
        if not editor.lua(IS_RUNNING):
            raise LcursorError("the answer ended before the typing did", "Run it again")
        _end(editor)
        measuring("the main thread")
        idle, _, _ = _watch(editor, WATCH_S / 3)
        _begin(editor)
        share, lua, lines = _watch(editor, WATCH_S)
        if not editor.lua(IS_RUNNING) or lines <= 0:
            raise LcursorError("the answer did not come all the time", "See :LCursor log")
        _end(editor)
        answer = "".join(steady.tokens(ANSWER_TOKENS)).rstrip()
        if editor.lua(TEXT).count(answer) != 2:
            raise LcursorError("the buffer does not have the whole answers", "See the log")
    report.add("key to screen, nothing streams", alone)
    report.add(f"the same while {TOKENS_PER_S} tokens/s stream", streaming)
    report.numbers |= {
        "main_thread_share": share,
        "main_thread_lua_share": lua,
        "main_thread_idle_share": idle,
        "typing_p95_more_ms": percentile(streaming, 95) - percentile(alone, 95),
        "lines_a_second": lines,
    }


def _editor(neovim: Path, folder: Path, url: str) -> Editor:
    for name in ("home", "project"):
        (folder / name).mkdir()
    path = folder / "project/notes.txt"
    path.touch()
    model = {"url": url, "api": "openai", "model": "steady", "context_tokens": 65536}
    settings = {
        "completion": {"auto_trigger": False},
        "models": {"steady": model},
        "chat": {"server": "off", "model": "steady"},
    }
    return Editor(
        neovim,
        folder / "home",
        init=PROBE + INIT % json.dumps(settings),
        files=(path,),
        columns=COLUMNS,
        lines=LINES,
        cwd=path.parent,
    )


def _begin(editor: Editor) -> None:
    """Ask, and wait until the answer streams."""
    before = editor.lua(LINE_COUNT)
    editor.lua(ASK)
    editor.wait_lua(f"return (function() {LINE_COUNT} end)() > ...", before + 12, timeout_s=30)


def _end(editor: Editor) -> None:
    editor.wait_lua(f"return not (function() {IS_RUNNING} end)()", timeout_s=60)


def _type(editor: Editor) -> list[float]:
    """Type into the file; return how long each key took to the screen, in ms."""
    seen: list[tuple[float, int]] = []

    def keep(screen: Screen) -> None:
        seen.append((screen.flushed_s, screen.cursor[1]))

    editor.keys("<Esc>Go")
    editor.lua("vim.cmd.redraw()")
    base = editor.screen.cursor[1]
    editor.screen.on_flush = keep
    sent: list[tuple[float, int]] = []
    began_s, col = time.perf_counter(), 0
    for number in range(KEYS):
        sleep_until(began_s + number * KEY_S)
        is_new = col == ROW_KEYS
        col = 0 if is_new else col + 1
        if not is_new:
            sent.append((time.perf_counter(), base + col))
        editor.client.notify("nvim_input", "<CR>" if is_new else "abcdefgh"[number % 8])
    time.sleep(0.3)
    editor.screen.on_flush = None
    editor.keys("<Esc>")
    times = []
    for at_s, col in sent:
        drawn_s = next((s for s, c in seen if s >= at_s and c == col), None)
        if drawn_s is None:
            raise LcursorError("a key did not come to the screen", "Run it on a quiet machine")
        times.append((drawn_s - at_s) * 1000)
    return times


def _watch(editor: Editor, seconds: float) -> tuple[float, float, float]:
    """Return the shares of the main thread (everything, our Lua), and the lines a second."""
    first, pid = editor.lua(LINE_COUNT), editor.client.pid
    editor.lua("probe.spent = 0")
    began_s, before = time.perf_counter(), _cpu_s(pid)
    time.sleep(seconds)
    cpu_s, wall_s = _cpu_s(pid) - before, time.perf_counter() - began_s
    lua_s = editor.lua("return probe.spent") / 1e9
    return cpu_s / wall_s, lua_s / wall_s, (editor.lua(LINE_COUNT) - first) / wall_s


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of the main thread of a process."""
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError) as error:
        raise LcursorError(
            "the system does not report the CPU time of a thread", "Run it on Linux"
        ) from error


class _WhileChatting(Plugin):
    """lcursor with a chat that is answering.

    Args:
        model: of the chat.
    """

    def __init__(self, model: str) -> None:
        chat = {"model": model, "context_tokens": CONTEXT_TOKENS, "idle_minutes": 1}
        settings = {"chat": {**chat, "auto_context": False}}  # the question is not about code
        super().__init__(init=f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n")
        self.covered = 0
        """Lines that were typed while an answer was being written throughout."""

    def begin(self, editor: Editor) -> str:
        """Wait for the completion model and for the first words of an answer."""
        model = super().begin(editor)
        self._write(editor)
        return model

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Start a new answer before each line."""
        editor.keys("<Esc>")
        self._write(editor)
        editor.keys("A")
        super().warm(editor, spot)

    def drain(self, editor: Editor) -> None:
        """Count the line if the answer was still being written."""
        self.covered += bool(editor.lua(IS_WRITING))
        super().drain(editor)

    def _write(self, editor: Editor) -> None:
        editor.lua(ASK_AGAIN)
        editor.wait_lua(IS_WRITING, timeout_s=START_S)


def type_during_answer(report: Report, neovim: Path, model: str) -> None:
    """Type the same lines while no chat runs and while one answers."""
    source = Path(base_events.__file__)
    spots = pick_spots(read_lines(source), POSITIONS, SEED)
    chatting = _WhileChatting(model)
    for key, name, typist in (
        ("ghost_alone", "no chat", Plugin()),
        ("ghost_beside", "a chat answers", chatting),
    ):
        measuring(f"typing while {name}")
        _, trials = run(typist, neovim, source, spots, pace_ms=PACE_MS)
        times = [ms for trial in trials for ms in trial.ghost_ms if ms is not None]
        if not times:
            raise LcursorError("no ghost came", "Run it on a quiet machine")
        found = report.add(f"key to first valid ghost, {name}", times)
        report.numbers |= {
            f"{key}_p50_ms": found.p50,
            f"{key}_p95_ms": found.p95,
            f"{key}_keys": len(times),
        }
    if chatting.covered < POSITIONS // 2:
        raise LcursorError("the answers ended before the typing did", "Run it again")
