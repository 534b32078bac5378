"""What a test of the front ends drives them with: each as its own program would call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n    \n"}
NO_GHOST = {"completion": {"auto_trigger": False}}
SUGGESTION = "turn x\n    # more"

# What each front end hands to a source, made of the cursor as it does it; answers are collected.
DRIVERS = r"""
_G.answers, _G.replies = {}, {}
local function take(...)
  table.insert(_G.answers, (select("#", ...) > 1 and select(2, ...)) or ... or { items = {} })
end
local function here()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  return row, col, line, vim.fn.match(line:sub(1, col), "\\k*$")
end
function _G.blink(trigger)
  local row, col, line, first = here()
  _G.source = _G.source or require("lcursor.integrations.blink").new({}, {})
  local bounds = { line = line, line_number = row, start_col = first + 1, length = col - first }
  _G.cancel = _G.source:get_completions({
    id = 1, mode = "default", bufnr = vim.api.nvim_get_current_buf(), cursor = { row, col },
    line = line, keyword = line:sub(first + 1, col), bounds = bounds,
    trigger = trigger or { kind = 1 }, providers = { "lcursor" },
  }, take)
end
function _G.cmp(reason)
  local row, col, line, first = here()
  _G.source = _G.source or require("lcursor.integrations.cmp").new()
  _G.source:complete({
    name = "lcursor", offset = first + 1, completion_context = { triggerKind = 1 },
    context = {
      bufnr = vim.api.nvim_get_current_buf(), filetype = vim.bo.filetype, cursor_line = line,
      cursor = { row = row, col = col + 1, line = row - 1, character = col },
      cursor_before_line = line:sub(1, col), cursor_after_line = line:sub(col + 1),
      get_reason = function() return reason or "auto" end,
    },
  }, take)
end
function _G.attach(capabilities)
  local id = vim.lsp.start({
    name = "lcursor", cmd = require("lcursor.integrations.lsp").cmd, capabilities = capabilities,
  })
  assert(vim.wait(5000, function() return vim.lsp.get_client_by_id(id).initialized end, 5))
  _G.client = vim.lsp.get_client_by_id(id)
end
function _G.lsp(method, kind)
  local params = vim.lsp.util.make_position_params(0, _G.client.offset_encoding)
  params.context = { triggerKind = kind or 1 }
  local ok, id = _G.client:request("textDocument/" .. method, params, take, 0)
  assert(ok)
  _G.cancel = function() _G.client:cancel_request(id) end
  return id
end
function _G.completion() return _G.lsp("completion") end
function _G.inline(kind) return _G.lsp("inlineCompletion", kind or 2) end
"""
FRONT_ENDS = ["blink", "cmp", "completion", "inline"]


def starter(editor: Start) -> Start:
    """Return what starts a Neovim without ghost text, where each front end is a Lua function."""

    def begin(files: dict[str, str] | None = None, **more: Any) -> Pilot:
        more.setdefault("config", NO_GHOST)
        nvim = editor(files or DEF, init=DRIVERS + more.pop("init", ""), **more)
        nvim.lua("attach()")
        return nvim

    return begin


def insert(nvim: Pilot, keys: str = "GA") -> None:
    """Enter insert mode at the end, and wait for the host."""
    nvim.press(keys)
    nvim.wait_state()


def answers(nvim: Pilot, count: int = 1) -> list[list[dict[str, Any]]]:
    """Wait for so many answers and return the items of each."""
    nvim.wait_lua("return #answers >= ...", count)
    nvim.settle()
    found: list[dict[str, Any]] = nvim.lua("return answers")
    assert len(found) == count
    return [answer["items"] or [] for answer in found]


def texts(items: list[dict[str, Any]]) -> list[str]:
    """What the items insert."""
    return [item["insertText"] for item in items]
