"""Stream an answer of 200 tokens a second into a real Neovim, for `bench chat screen`.

The answer comes from a server on the loopback interface (`steady.py`) through the real host.
Measures the time on Neovim's main thread, and the delay of keys typed in another window.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.editor import PROBE
from bench.report import Figure, figure, measuring, percentile
from bench.steady import tokens
from lcursor.drive.editor import ROOT, Editor
from lcursor.drive.screen import Screen
from lcursor.errors import LcursorError

TOKENS_PER_S = 200
ANSWER_TOKENS = 2400
KEYS = 200
KEY_S = 0.04
WATCH_S = 6.0
COLUMNS, LINES = 160, 44
ROW_KEYS = 40

INIT = """
vim.g.loaded_python3_provider = 0
vim.o.swapfile, vim.o.showmode = false, false
vim.g.lcursor = vim.json.decode([==[%s]==])
"""
OPEN = "require('lcursor.chat').open({ new = true, enter = false })"
IS_OPEN = "return require('lcursor.chat').current().chat ~= ''"
ASK = "require('lcursor.chat').ask('Explain it.', { enter = false })"
LONG = """
local session = require("lcursor.chat").current()
return session and vim.api.nvim_buf_line_count(session.buf) or 0
"""
IS_RUNNING = "local s = require('lcursor.chat').current() return s ~= nil and s.turn ~= nil"
TEXT = """
local session = require("lcursor.chat").current()
return table.concat(vim.api.nvim_buf_get_lines(session.buf, 0, -1, false), "\\n")
"""


@contextmanager
def steady(count: int = ANSWER_TOKENS) -> Iterator[str]:
    """Run the server that streams a text at a steady pace, and yield its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.steady", str(TOKENS_PER_S), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.terminate()


def measure(neovim: Path) -> tuple[list[Figure], dict[str, float]]:
    """Type without and with an answer that streams, and measure the main thread."""
    with tempfile.TemporaryDirectory(prefix="lcb") as folder, steady() as url:
        home = Path(folder) / "home"
        home.mkdir()
        project = Path(folder) / "project"
        project.mkdir()
        path = project / "notes.txt"
        path.write_text("")
        with _editor(neovim, home, path, url) as editor:
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
            idle = _busy_share(editor)
            _begin(editor)
            lua, share, grown = _watched(editor)
            _end(editor)
            _check(editor)
    figures = [
        figure("key to screen, nothing streams", alone),
        figure(f"the same while {TOKENS_PER_S} tokens/s stream", streaming),
    ]
    return figures, {
        "main_thread_share": share,
        "main_thread_lua_share": lua,
        "main_thread_idle_share": idle,
        "typing_p95_more_ms": percentile(streaming, 95) - percentile(alone, 95),
        "lines_a_second": grown,
    }


def _editor(neovim: Path, home: Path, path: Path, url: str) -> Editor:
    model = {"url": url, "api": "openai", "model": "steady", "context_tokens": 65536}
    settings = {
        "completion": {"auto_trigger": False},
        "chat": {"server": "off", "model": "steady", "models": {"steady": model}},
    }
    return Editor(
        neovim,
        home,
        init=PROBE + INIT % json.dumps(settings),
        files=(path,),
        columns=COLUMNS,
        lines=LINES,
        cwd=path.parent,
    )


def _begin(editor: Editor) -> None:
    """Ask, and wait until the answer streams."""
    before = editor.lua(LONG)
    editor.lua(ASK)
    editor.wait_lua(f"return (function() {LONG} end)() > ...", before + 12, timeout_s=30)


def _end(editor: Editor) -> None:
    editor.wait_lua(f"return not (function() {IS_RUNNING} end)()", timeout_s=60)


def _check(editor: Editor) -> None:
    """Check that the buffer has the whole answers."""
    answer = "".join(tokens(ANSWER_TOKENS)).rstrip()
    if editor.lua(TEXT).count(answer) != 2:
        raise LcursorError("the buffer does not have the whole answers", "See the log")


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
        time.sleep(max(0.0, began_s + number * KEY_S - time.perf_counter()))
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


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of the main thread of a process."""
    path = Path(f"/proc/{pid}/task/{pid}/schedstat")
    try:
        return int(path.read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError) as error:
        raise LcursorError(
            "the system does not report the CPU time of a thread", "Run it on Linux"
        ) from error


def _busy_share(editor: Editor) -> float:
    pid, began_s = editor.client.pid, time.perf_counter()
    before = _cpu_s(pid)
    time.sleep(WATCH_S / 3)
    return (_cpu_s(pid) - before) / (time.perf_counter() - began_s)


def _watched(editor: Editor) -> tuple[float, float, float]:
    """Return the shares of the main thread (our Lua, everything), and the lines a second."""
    first = editor.lua(LONG)
    editor.lua("probe.spent = 0")
    pid, began_s = editor.client.pid, time.perf_counter()
    before = _cpu_s(pid)
    time.sleep(WATCH_S)
    cpu_s, wall_s = _cpu_s(pid) - before, time.perf_counter() - began_s
    lua_s = editor.lua("return probe.spent") / 1e9
    lines = editor.lua(LONG) - first
    if not editor.lua(IS_RUNNING) or lines < 1:
        raise LcursorError("the answer did not come all the time", "See :LCursor log")
    return lua_s / wall_s, cpu_s / wall_s, lines / wall_s
