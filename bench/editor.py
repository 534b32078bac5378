"""`bench` without a name: the time on Neovim's main thread, starts, and how soon a request stops.

Everything that lcursor runs there is called by an autocommand, a buffer listener, a scheduled
callback or a message. `PROBE` wraps these before the plugin is loaded, and adds up their time
between one key and the next.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, Report, check_names, measuring
from lcursor.cli.editor import find_neovim
from lcursor.config import CompletionConfig
from lcursor.drive.editor import ROOT, Editor, prepare_home
from lcursor.fim.completer import Completer
from lcursor.host.backends import open_backend
from lcursor.protocol.fim import FimRequest

STARTS, HOST_STARTS = 15, 5
KEYS = 200
STOPS = 40

SOURCE = ROOT / "lcursor/fim/engine.py"

PROBE = """
_G.probe = { spent = 0, all = {} }
local now = vim.uv.hrtime
local depth = 0
local function timed(fn)
  return function(...)
    local began = now()
    depth = depth + 1
    local function close(...)
      depth = depth - 1
      if depth == 0 then probe.spent = probe.spent + (now() - began) end
      return ...
    end
    return close(fn(...))
  end
end
local create = vim.api.nvim_create_autocmd
vim.api.nvim_create_autocmd = function(events, opts)
  if opts.callback and type(opts.callback) == "function" then
    opts = vim.tbl_extend("force", opts, { callback = timed(opts.callback) })
  end
  return create(events, opts)
end
local attach = vim.api.nvim_buf_attach
vim.api.nvim_buf_attach = function(buf, is_sent, opts)
  for name, fn in pairs(opts) do
    opts[name] = type(fn) == "function" and timed(fn) or fn
  end
  return attach(buf, is_sent, opts)
end
local schedule = vim.schedule
vim.schedule = function(fn) return schedule(timed(fn)) end
vim.schedule_wrap = function(fn)
  local inner = timed(fn)
  return function(...)
    local args = vim.F.pack_len(...)
    schedule(function() inner(vim.F.unpack_len(args)) end)
  end
end
function probe.wrap_messages()
  local rpc = require("lcursor.host.rpc")
  rpc.receive = timed(rpc.receive)
end
function probe.key()  -- record the cost of the previous key
  table.insert(probe.all, probe.spent / 1e6)
  probe.spent = 0
end
"""

HOSTS = {"dead": "sleep 0.01", "slow": "cat > /dev/null"}
"""Commands that replace the host: one ends at once, one never answers."""
REPLACE_HOST = """
vim.api.nvim_create_autocmd("InsertEnter", { once = true, callback = function()
  require("lcursor.host").argv = function() return { "sh", "-c", "%s" } end
end })
"""


BUFFER_SETTINGS = """
vim.b.lcursor = {
  completion = {
    max_lines = 4, filetypes = { markdown = true }, keymap = { accept_word = false },
  },
  privacy = { exclude = { "*.private" } },
}
"""


DECIDED_EDITS = """
require("lcursor.edit").start()
local proposals, diff = require("lcursor.edit.proposals"), require("lcursor.text.diff")
local buf, changed = vim.api.nvim_get_current_buf(), {}
for turn = 1, 20 do
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  for hunk = 0, 4 do
    local row = turn * 2 + hunk * 40
    changed[hunk + 1] = {
      first_row = row, last_row = row + 1, old = { lines[row + 1] }, new = { "# accepted" },
    }
  end
  proposals.propose({
    id = turn, turn = "t" .. turn, title = "", alternative = 1, note = "", attempts = 1, chat = "",
    files = { {
      path = vim.api.nvim_buf_get_name(buf), name = "engine.py", kind = "edit", to = "",
      base = diff.digest(lines), tick = -1, changes = vim.deepcopy(changed), checks = {},
      is_outside = false, is_guarded = false, unneeded = {},
    } },
  })
  assert(#proposals.hunks(buf) == 5)
  assert(not require("lcursor.edit.apply").accept(buf, proposals.hunks(buf)))
end
assert(proposals.count() == 0)
"""
"""Five hunks each."""


DRAW = """
local rpc, complete = require("lcursor.host.rpc"), require("lcursor.complete")
local samples, now = {}, vim.uv.hrtime
local channel = ...
local text = "alpha(beta, gamma)\\n        return alpha[beta] + gamma * "
for number = 1, #text * 4 do
  local id = complete.current_id()
  local said = text:rep(4):sub(1, number)
  local began = now()
  rpc.receive(channel, "fim.partial", {
    id = id, buf = vim.api.nvim_get_current_buf(), tick = 0, text = said,
  })
  vim.cmd.redraw()
  samples[#samples + 1] = (now() - began) / 1e6
end
return samples
"""


@contextmanager
def _editor(neovim: Path, init: str = "") -> Iterator[Editor]:
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "engine.py").write_bytes(SOURCE.read_bytes())
        with Editor(neovim, home, init=init, files=("engine.py",), lines=40) as editor:
            yield editor


def _start(report: Report, neovim: Path) -> None:
    """Measure what sourcing the plugin adds to Neovim's start, by `--startuptime`."""
    samples = []
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        environment = {"PATH": "/usr/bin:/bin", **prepare_home(home, "", plugin=True)}
        for number in range(STARTS + 1):
            log = home / f"{number}.log"
            subprocess.run(
                [neovim, "--headless", "--startuptime", str(log), "+qa!"],
                env=environment,
                check=True,
                capture_output=True,
                timeout=30,
            )
            match = re.search(
                r"\s(\d+\.\d+)\s+\d+\.\d+: sourcing .*plugin/lcursor\.lua", log.read_text()
            )
            if match and number:  # the first start fills the page cache
                samples.append(float(match[1]))
    report.add("sourcing the plugin at start", samples, limit=1, judged="p50")


def _keystrokes(report: Report, neovim: Path) -> None:
    """Measure the Lua time of each key typed, with several hosts and after several actions."""
    text = "def measure(values, weights):\n    total = sum(values)\n    return total / len(w"
    for host, case, prepare in (
        ("real", "", ""),
        ("slow", "", ""),
        ("dead", "", ""),
        ("real", ", vim.b.lcursor set", BUFFER_SETTINGS),
        ("real", ", 20 decided edits", DECIDED_EDITS),
    ):
        with _editor(
            neovim, PROBE + (REPLACE_HOST % HOSTS[host] if host in HOSTS else "")
        ) as editor:
            editor.keys("Go<CR>")
            editor.lua("probe.wrap_messages()")
            if host == "real":
                editor.wait_state("ready", timeout_s=120)
            editor.lua(f"{prepare} probe.key() probe.all = {{}}")
            for number in range(KEYS):
                editor.type(text[number % len(text)], pace_ms=40)
                editor.lua("probe.key()")
            samples: list[float] = editor.lua("return probe.all")
        report.add(f"Lua work per keystroke, host {host}{case}", samples, limit=2)


def _first_insert(report: Report, neovim: Path) -> None:
    """Measure what the first insert in a file waits for: the modules that it loads."""
    samples = []
    for number in range(STARTS + 1):
        with _editor(neovim, PROBE + REPLACE_HOST % HOSTS["slow"]) as editor:
            load = "local began = vim.uv.hrtime() vim.cmd.doautocmd('InsertEnter') "
            spent: float = editor.lua(f"{load} return (vim.uv.hrtime() - began) / 1e6")
            if number:
                samples.append(spent)
    report.add("first insert", samples, limit=8, judged="p50")


def _deletions(report: Report, neovim: Path) -> None:
    """Measure the Lua time of each `x` in Normal mode, in a long file."""
    with _editor(neovim, PROBE + REPLACE_HOST % HOSTS["slow"]) as editor:
        editor.lua("vim.fn.append('$', vim.fn['repeat']({ 'value = measure(1)' }, 9900))")
        editor.keys("Go<CR><Esc>5000Gix<Esc>")
        editor.lua("probe.wrap_messages() probe.key() probe.all = {}")
        for _ in range(KEYS // 10):
            editor.type("x", pace_ms=300)
            editor.lua("probe.key()")
            editor.keys("j")
            editor.lua("probe.spent = 0")
        samples: list[float] = editor.lua("return probe.all")
    report.add("Lua work per x in 9,900 lines", samples, limit=0.5, judged="p50")


def _draw(report: Report, neovim: Path) -> None:
    """Measure the time from the arrival of a streamed message to the drawn screen."""
    with _editor(neovim, REPLACE_HOST % HOSTS["slow"]) as editor:
        editor.keys("Go<CR>value = ")
        editor.wait_state("starting")
        channel = editor.lua("return require('lcursor.host').info().job")
        editor.lua("require('lcursor.host.status').set('ready', '')")
        editor.wait_lua("return require('lcursor.complete').why().code == 'waiting'")
        samples: list[float] = editor.lua(DRAW, channel)
        if "alpha" not in editor.ghost():
            raise RuntimeError("nothing was drawn")
    report.add("message to drawn ghost", samples, limit=2)


def _host(report: Report, neovim: Path) -> None:
    """Measure the start of the host and of its model after the first insert, page cache warm."""
    ready, model = [], []
    for number in range(HOST_STARTS + 1):
        with _editor(neovim) as editor:
            editor.keys("i")
            editor.wait_state("ready", timeout_s=120)
            info = editor.lua("return require('lcursor.host').info()")
            if number:
                ready.append(info["ready_ms"])
                model.append(info["model_ms"])
    report.add("host ready after the first insert", ready, limit=500, judged="p50")
    report.add("model ready after the first insert", model, limit=2000, judged="p50")


class _Recorder:
    """A completer without Neovim, and the messages that it sent."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[tuple[float, str, Mapping[str, Any]]] = []
        config = CompletionConfig(min_confidence=0.0)  # show every suggestion
        self.completer = Completer(config, self._emit, open_backend)

    def _emit(self, method: str, params: Mapping[str, Any]) -> None:
        with self._changed:
            self._events.append((time.perf_counter(), method, params))
            self._changed.notify_all()

    def wait(self, method: str, **fields: object) -> float:
        """Wait for a message and return its time."""

        def found() -> float | None:
            for at, name, params in self._events:
                if name == method and all(params.get(k) == v for k, v in fields.items()):
                    return at
                if name == "error":
                    raise RuntimeError(params["message"])
            return None

        with self._changed:
            if not self._changed.wait_for(lambda: found() is not None, timeout=120):
                raise TimeoutError(f"{method} {fields} did not come")
            return found() or 0.0

    def request(self, number: int, prefix: str, suffix: str) -> None:
        """Send a request as the editor does."""
        self.completer.request(
            FimRequest(
                id=number,
                buf=1,
                tick=number,
                path="",
                name="engine.py",
                repo="bench",
                filetype="python",
                first_row=0,
                row=prefix.count("\n"),
                col=0,
                prefix=prefix,
                suffix=suffix,
                top="",
                single_line=False,
                trigger="auto",
            )
        )


def _cancel(report: Report, neovim: Path) -> None:
    """Measure the time from a new request to the end of the running one, at random moments."""
    recorder = _Recorder()
    recorder.completer.start()
    recorder.wait("state", state="ready")
    text, rng, samples = SOURCE.read_text(), random.Random(1), []
    for number in range(1, 2 * STOPS, 2):
        start = rng.randrange(len(text) // 2)
        recorder.request(number, text[start : start + 3000], text[start + 3000 :])
        time.sleep(rng.uniform(0.03, 0.5))
        asked = time.perf_counter()
        recorder.request(number + 1, "x = ", "")
        ended = recorder.wait("fim.done", id=number)
        if ended > asked:
            samples.append((ended - asked) * 1000)
        recorder.wait("fim.done", id=number + 1)
    recorder.completer.close()
    report.add("a running request stops after the next keystroke", samples, limit=15)


PARTS: dict[str, Callable[[Report, Path], None]] = {
    "start": _start,
    "insert": _first_insert,
    "keystroke": _keystrokes,
    "delete": _deletions,
    "draw": _draw,
    "host": _host,
    "cancel": _cancel,
}


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="start, insert, keystroke, delete, draw, host, cancel; default: all."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure all but typing; exits with 1 when a promise is not kept. The default."""
    check_names(names or (), PARTS)
    neovim, report = find_neovim(), Report()
    for name in names or PARTS:
        measuring(name)
        PARTS[name](report, neovim)
    report.finish(as_json)
