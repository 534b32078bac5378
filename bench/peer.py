"""The plugins that `bench typing` types with: lcursor, and llama.vim to compare with.

Each knows how to start its Neovim, when it is idle, and where its costs are. llama.vim is a
checkout that the caller names, with a server that runs already.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from bench.editor import PROBE
from bench.report import wait
from bench.trials import Cost, Spot, read_lines
from lcursor.drive.editor import GHOST, Editor
from lcursor.errors import LcursorError

WAIT_S = 10.0

AGAIN_S = 20.0
"""Time to evaluate the full window before the engine is asked again whether it has it."""
SILENCE_S = 1.0
"""Longer than any debounce: after this, no request will come."""

# For both plugins: nothing that changes what is typed.
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

# Times Vimscript handlers: one handler runs before the plugin's own, one after them.
PEER_INIT = """
vim.api.nvim_set_hl(0, "llama_hl_fim_hint", { fg = "#7f848e" })
vim.g.llama_config = vim.json.decode([==[%s]==])
_G.probe = { spent = 0, all = {} }
function probe.key()
  table.insert(probe.all, probe.spent / 1e6)
  probe.spent = 0
end
vim.api.nvim_create_autocmd("VimEnter", { callback = function()
  local began = 0
  vim.api.nvim_create_autocmd("CursorMovedI", { callback = function()
    began = vim.uv.hrtime()
  end })
  vim.opt.rtp:prepend(%s)
  vim.cmd.runtime("plugin/llama.vim")
  vim.api.nvim_create_autocmd("CursorMovedI", { callback = function()
    probe.spent = probe.spent + (vim.uv.hrtime() - began)
  end })
end })
"""

IS_BUSY = """
return vim.iter(vim.api.nvim_list_chans()):any(function(chan)
  return chan.argv ~= nil and vim.fs.basename(chan.argv[1]) == "curl"
end)
"""


class Typist(ABC):
    """A plugin that shows ghost text, driven in a Neovim."""

    group: ClassVar[str]
    """Highlight group of its ghost."""
    has_plugin: ClassVar[bool]
    """Whether lcursor is installed in that Neovim."""

    def open(self, neovim: Path, home: Path, path: Path, columns: int) -> Editor:
        """Start a Neovim on the file. `probe.key()` in it begins the next key's main_ms."""
        return Editor(
            neovim,
            home,
            init=self.init(path),
            files=(path,),
            columns=columns,
            lines=40,
            cwd=path.parent,
            plugin=self.has_plugin,
        )

    @abstractmethod
    def init(self, path: Path) -> str:
        """Return the init.lua for a file."""

    @abstractmethod
    def begin(self, editor: Editor) -> str:
        """Wait until it is ready; return the name of its model."""

    @abstractmethod
    def warm(self, editor: Editor, spot: Spot) -> None:
        """Wait until the requests that entering Insert mode made are answered."""

    @abstractmethod
    def is_settled(self, editor: Editor, since_key_s: float) -> bool:
        """Whether what is shown now will not change by itself."""

    @abstractmethod
    def drain(self, editor: Editor) -> None:
        """Wait until no request runs."""

    @abstractmethod
    def costs(self, editor: Editor, spot: Spot) -> list[Cost]:
        """Return the cost of each key, and reset it."""

    def is_final(self, editor: Editor) -> bool:
        """Whether no better answer can come to what was asked last."""
        return True

    def open_gate(self, editor: Editor) -> bool:
        """Turn the confidence gate off; called in Normal mode. Return whether there is one."""
        return False

    def close_gate(self, editor: Editor) -> None:  # noqa: B027
        """Restore the gate; called in Normal mode."""


class Lcursor(Typist):
    """lcursor as installed.

    Args:
        model: another completion model than the default; a name or a path.
        init: more Lua for its init.lua.
    """

    group, has_plugin = GHOST, True

    def __init__(self, model: str = "", init: str = "") -> None:
        setting = f"vim.g.lcursor = {{ completion = {{ model = {json.dumps(model)} }} }}\n"
        self._init = (setting if model else "") + init

    def init(self, path: Path) -> str:
        """Return the init.lua, with the probe."""
        return PROBE + INIT + self._init

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

    def open_gate(self, editor: Editor) -> bool:
        """Set the threshold to 0, which does not reload the model."""
        editor.lua(OPEN_GATE)
        return True

    def close_gate(self, editor: Editor) -> None:
        """Restore the threshold."""
        editor.lua(CLOSE_GATE)


class LlamaVim(Typist):
    """The plugin llama.vim, on a llama-server.

    Its main_ms is the time of its CursorMovedI handlers only; job callbacks and timers are not
    measured.

    Args:
        checkout: of its repository.
        server: URL of a llama-server that has the model.

    Raises:
        LcursorError: one of the parts is missing.
    """

    group, has_plugin = "llama_hl_fim_hint", False
    N_PREFIX, N_SUFFIX = 128, 32

    def __init__(self, checkout: Path, server: str) -> None:
        if not (checkout / "plugin/llama.vim").is_file():
            raise LcursorError(f"{checkout} is no checkout of llama.vim", "Clone it there")
        if not shutil.which("curl"):
            raise LcursorError("llama.vim needs curl, which is not here", "Install curl")
        self._checkout = checkout.resolve()
        self._server = server.rstrip("/").removesuffix("/infill")
        self._lines: list[str] = []
        self._model = _served_model(self._server)

    def init(self, path: Path) -> str:
        """Return the init.lua, with llama.vim in place of lcursor."""
        self._lines = read_lines(path)
        config = {
            "endpoint_fim": f"{self._server}/infill",
            "n_prefix": self.N_PREFIX,
            "n_suffix": self.N_SUFFIX,
            "ring_n_chunks": 0,
            "auto_fim": True,
            "show_info": 0,
        }
        return INIT + PEER_INIT % (json.dumps(config), json.dumps(str(self._checkout)))

    def begin(self, editor: Editor) -> str:
        """Wait for the plugin, and for its first request."""
        editor.wait_lua("return vim.fn.exists('*llama#fim') == 1")
        wait(lambda: self._is_idle(editor), 60)
        return self._model

    def warm(self, editor: Editor, spot: Spot) -> None:
        """Wait for the answers to the requests of entering Insert mode."""
        wait(lambda: editor.lua(IS_BUSY), SILENCE_S)
        self.drain(editor)

    def is_settled(self, editor: Editor, since_key_s: float) -> bool:
        """Whether a ghost is shown, or no request runs."""
        if editor.ghost().strip():
            return True
        return since_key_s > SILENCE_S and self._is_idle(editor)

    def drain(self, editor: Editor) -> None:
        """Wait until the server has answered everything."""
        wait(lambda: self._is_idle(editor), 120)

    def costs(self, editor: Editor, spot: Spot) -> list[Cost]:
        """Read the prompt tokens of each key's own request from the plugin's cache of answers."""
        costs = []
        for key in range(1, len(spot.typed) + 1):
            name = self._key(spot, spot.before + spot.typed[:key])
            raw = editor.lua("return vim.api.nvim_eval(...)", f"get(g:cache_data, '{name}', '')")
            costs.append(Cost(int(json.loads(raw).get("timings/prompt_n", 0)) if raw else 0, None))
        return costs

    def _key(self, spot: Spot, head: str) -> str:
        """Return the key of the plugin's cache for a position."""
        row = spot.row
        before = "\n".join(self._lines[max(0, row - self.N_PREFIX) : row])
        after = "\n".join(self._lines[row + 1 : row + 1 + self.N_SUFFIX])
        middle = head if head.strip() else ""
        return hashlib.sha256(f"{before}\n{middle}Î\n{after}\n".encode()).hexdigest()

    def _is_idle(self, editor: Editor) -> bool:
        """Whether no request runs, and none starts within three periods of the plugin's timer."""
        for _ in range(4):
            if editor.lua(IS_BUSY):
                return False
            time.sleep(0.1)
        return True


def _served_model(server: str) -> str:
    """Return the name of the model that the server has.

    Raises:
        LcursorError: there is no such server.
    """
    try:
        with urllib.request.urlopen(f"{server}/v1/models", timeout=10) as reply:  # noqa: S310
            models: dict[str, Any] = json.loads(reply.read())
        return Path(models["data"][0]["id"]).name
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise LcursorError(
            f"no llama-server answers at {server} ({error!r})",
            "Start llama-server with the model and name its URL with --server",
        ) from error
