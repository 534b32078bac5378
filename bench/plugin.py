"""The plugin that `bench typing` types with: when it is idle, and where its costs are."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench.editor import PROBE
from bench.report import wait
from bench.trials import Cost, Spot
from lcursor.drive.editor import Editor

WAIT_S = 10.0

AGAIN_S = 20.0
"""Time to evaluate the full window before the engine is asked again whether it has it."""
SILENCE_S = 1.0
"""Longer than any debounce: after this, no request will come."""

# Nothing that changes what is typed.
INIT = """
vim.o.showmode, vim.o.wrap = false, false
vim.api.nvim_create_autocmd("FileType", { callback = function()
  vim.schedule(function()
    vim.bo.indentexpr, vim.bo.cindent, vim.bo.smartindent, vim.bo.textwidth = "", false, false, 0
  end)
end })
"""

LISTEN = """
probe.wrap_messages()
_G.asked = {}
local rpc = require("lcursor.host.rpc")
local notify, receive = rpc.notify, rpc.receive
rpc.notify = function(method, params)
  if method == "fim.request" then
    table.insert(asked, { id = params.id, row = params.row, col = params.col, decoded = -1 })
  end
  return notify(method, params)
end
rpc.receive = function(from, method, params)
  if method == "fim.done" then
    for _, request in ipairs(asked) do
      if request.id == params.id then
        request.decoded = params.stats.decoded_tokens
        request.passes = params.stats.passes
        request.window = params.stats.window
      end
    end
  elseif method == "fim.improved" then
    for _, request in ipairs(asked) do
      if request.id == params.id then
        request.is_improved, request.window = true, params.stats.window
      end
    end
  end
  return receive(from, method, params)
end
"""

ASKED_AT = """
local row, col = ...
return vim.iter(asked):any(function(r) return r.row == row and r.col == col end)
"""
IS_WORKING = "return vim.iter(asked):any(function(r) return r.decoded < 0 end)"

IS_FULL = 'return #asked == 0 or asked[#asked].window == "full"'
IS_IMPROVED = "return #asked > 0 and asked[#asked].is_improved == true"
ASK = 'require("lcursor.complete").trigger()'

IS_SETTLED = """
local is_silent = ...
local complete = require("lcursor.complete")
if complete.current_id() then
  return complete.is_settled()
end
return is_silent and complete.why().code ~= "waiting"
"""

OPEN_GATE = 'require("lcursor").setup({ completion = { min_confidence = 0 } })'
CLOSE_GATE = 'require("lcursor").setup({})'


class Plugin:
    """lcursor as installed, driven in a Neovim.

    Args:
        model: another completion model than the default; a name or a path.
        init: more Lua for its init.lua.
    """

    def __init__(self, model: str = "", init: str = "") -> None:
        setting = f"vim.g.lcursor = {{ completion = {{ model = {json.dumps(model)} }} }}\n"
        self._init = (setting if model else "") + init

    def open(self, neovim: Path, home: Path, path: Path, columns: int) -> Editor:
        """Start a Neovim on the file. `probe.key()` in it begins the next key's main_ms."""
        return Editor(
            neovim,
            home,
            init=PROBE + INIT + self._init,
            files=(path,),
            columns=columns,
            lines=40,
            cwd=path.parent,
        )

    def begin(self, editor: Editor) -> str:
        """Wait for the model, and record messages from now on."""
        editor.wait_state("ready", timeout_s=120)
        editor.lua(LISTEN)
        model: str = editor.lua("return require('lcursor.host.status').get().detail")
        return model

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Wait for an answer from the full window to the request of entering Insert mode."""
        wait(lambda: editor.lua(ASKED_AT, spot.row, len(spot.before)), 3 * SILENCE_S)
        wait(lambda: not editor.lua(IS_WORKING), 120)
        self._evaluate_all(editor)

    def is_settled(self, editor: Editor, since_key_s: float) -> bool:
        """Whether the answer is complete, or there is no request."""
        settled: bool = editor.lua(IS_SETTLED, since_key_s > SILENCE_S)
        return settled

    def is_final(self, editor: Editor) -> bool:
        """Whether the last answer is from the full window; from a short one, it may be improved."""
        final: bool = editor.lua(IS_FULL) or editor.lua(IS_IMPROVED)
        return final

    def _evaluate_all(self, editor: Editor) -> None:
        """Wait until an answer is from the full window, which is evaluated in idle time."""
        deadline = time.monotonic() + 60
        while not editor.lua(IS_FULL) and time.monotonic() < deadline:
            if not wait(lambda: editor.lua(IS_FULL), AGAIN_S):
                editor.lua(ASK)
                wait(lambda: not editor.lua(IS_WORKING), WAIT_S)

    def drain(self, editor: Editor) -> None:
        """Wait for the last answers."""
        wait(lambda: not editor.lua(IS_WORKING), 60)

    def costs(self, editor: Editor, spot: Spot) -> list[Cost]:
        """Add up the costs of the answers; a cancelled request counts 0."""
        costs = [Cost(0, None)] * len(spot.typed)
        for request in editor.lua("local all = asked; asked = {}; return all"):
            key = request["col"] - len(spot.before) - 1
            if request["row"] != spot.row or not 0 <= key < len(costs):
                continue
            tokens, passes = costs[key]
            if request["decoded"] > 0:
                tokens += int(request["decoded"])
                if request.get("passes"):  # 0 where it was cancelled
                    passes = (passes or 0) + int(request["passes"])
            costs[key] = Cost(tokens, passes)
        return costs

    def open_gate(self, editor: Editor) -> None:
        """Set the confidence threshold to 0, which does not reload the model; in Normal mode."""
        editor.lua(OPEN_GATE)

    def close_gate(self, editor: Editor) -> None:
        """Restore the threshold; in Normal mode."""
        editor.lua(CLOSE_GATE)
