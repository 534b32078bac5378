"""The time that lcursor takes on Neovim's main thread, with a running, dead or slow host.

Everything that lcursor runs there is called by an autocommand, a buffer listener, a scheduled
callback or a message. These are wrapped before the plugin is loaded, and their time is added up
between one key and the next.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.report import Figure, figure
from lcursor.drive.editor import ROOT, Editor, prepare_home

STARTS = 15
KEYS = 200

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
  local rpc = require("lcursor.rpc")
  rpc.receive = timed(rpc.receive)
end
function probe.key()  -- record the cost of the previous key
  table.insert(probe.all, probe.spent / 1e6)
  probe.spent = 0
end
"""

# Commands that replace the host's process.
HOSTS = {"dead": "sleep 0.01", "slow": "cat > /dev/null"}


@contextmanager
def _editor(neovim: Path, init: str, **more: object) -> Iterator[Editor]:
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "engine.py").write_bytes(SOURCE.read_bytes())
        with Editor(neovim, home, init=init, files=("engine.py",), lines=40) as editor:
            yield editor


def startup(neovim: Path) -> Figure:
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
    return figure("sourcing the plugin at start", samples, limit=1, judged="p50")


BUFFER_SETTINGS = """
vim.b.lcursor = {
  completion = { max_lines = 4, filetypes = { markdown = true }, secrets = { "*.private" } },
  keymaps = { accept_word = false },
}
"""


DECIDED_EDITS = """
require("lcursor.edit").start()
local store, diff = require("lcursor.edit.store"), require("lcursor.edit.diff")
local buf, changed = vim.api.nvim_get_current_buf(), {}
for turn = 1, 20 do
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  for hunk = 0, 4 do
    local row = turn * 2 + hunk * 40
    changed[hunk + 1] = {
      first_row = row, last_row = row + 1, old = { lines[row + 1] }, new = { "# accepted" },
    }
  end
  store.propose({
    id = turn, turn = "t" .. turn, title = "", alternative = 1, note = "", attempts = 1, chat = "",
    files = { {
      path = vim.api.nvim_buf_get_name(buf), name = "engine.py", kind = "edit", to = "",
      base = diff.digest(lines), tick = -1, changes = vim.deepcopy(changed), checks = {},
      is_outside = false,
    } },
  })
  assert(require("lcursor.edit.decide").accept(buf, store.hunks(buf)) == 5)
end
assert(store.count() == 0)
"""
"""Five hunks each."""


def keystrokes(neovim: Path, host: str, case: str = "", prepare: str = "") -> Figure:
    """Measure the Lua time of each key typed.

    Args:
        neovim: the executable.
        host: "real", "dead" (its process ends at once) or "slow" (it never answers).
        case: a description of `prepare`, for the name of the figure.
        prepare: Lua code that is run before typing.
    """
    init = PROBE
    if host != "real":
        init += (
            "vim.api.nvim_create_autocmd('InsertEnter', { once = true, callback = function()\n"
            "  require('lcursor.host').argv = function()\n"
            f"    return {{ 'sh', '-c', '{HOSTS[host]}' }}\n"
            "  end\n"
            "end })\n"
        )
    with _editor(neovim, init) as editor:
        editor.keys("Go<CR>")
        editor.lua("probe.wrap_messages()")
        if host == "real":
            editor.wait_state("ready", timeout_s=120)
        if prepare:
            editor.lua(prepare)
        text = "def measure(values, weights):\n    total = sum(values)\n    return total / len(w"
        editor.lua("probe.key() probe.all = {}")
        for number in range(KEYS):
            char = text[number % len(text)]
            editor.type(char, pace_ms=40)
            editor.lua("probe.key()")
        samples: list[float] = editor.lua("return probe.all")
    name = f"Lua work per keystroke, host {host}" + (f", {case}" if case else "")
    return figure(name, samples, limit=2)


def draws(neovim: Path) -> Figure:
    """Measure the time from the arrival of a streamed message to the drawn screen."""
    code = """
        local rpc, complete = require("lcursor.rpc"), require("lcursor.complete")
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
    init = """
        vim.api.nvim_create_autocmd("InsertEnter", { once = true, callback = function()
          require("lcursor.host").argv = function() return { "sh", "-c", "cat > /dev/null" } end
        end })
    """
    with _editor(neovim, init) as editor:
        editor.keys("Go<CR>value = ")
        editor.wait_state("starting")
        channel = editor.lua("return require('lcursor.host').info().job")
        editor.lua("require('lcursor.status').set('ready', '')")
        editor.wait_lua("return require('lcursor.complete').why().code == 'waiting'")
        samples: list[float] = editor.lua(code, channel)
        drawn = editor.ghost()
    if "alpha" not in drawn:
        raise RuntimeError("nothing was drawn")
    return figure("message to drawn ghost", samples, limit=2)


def host_starts(neovim: Path, starts: int = 5) -> list[Figure]:
    """Measure the start of the host and of its model after the first insert, page cache warm."""
    ready, model = [], []
    for number in range(starts + 1):
        with _editor(neovim, "") as editor:
            editor.keys("i")
            editor.wait_state("ready", timeout_s=120)
            info = editor.lua("return require('lcursor.host').info()")
            if number:
                ready.append(info["ready_ms"])
                model.append(info["model_ms"])
    return [
        figure("host ready after the first insert", ready, limit=500, judged="p50"),
        figure("model ready after the first insert", model, limit=2000, judged="p50"),
    ]
