"""Highlighting of code in a chat: how long it blocks Neovim at a time."""

from __future__ import annotations

from collections.abc import Callable

from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
ROWS = 1500
MOST_MS = 10.0
MOST_OF_ALL_MS = 16.0  # where others share the core
CODE = [
    f"local function f{n}(x, y) local t = {{ a = x + {n}, b = 's' .. y, [3] = f(x, y) }} "
    "return t.a * t.b[1] or not t end"
    for n in range(ROWS)
]
SHOWN = """
vim.api.nvim_set_current_buf(vim.api.nvim_create_buf(true, true))
vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)
"""
MEASURED = """
local prepare, check, began = vim.uv.new_prepare(), vim.uv.new_check(), nil
_G.spans_ms, _G.is_done = {}, false
-- Between the two the loop is in what it calls; of the process's own time, whoever else runs here.
check:start(function()
  began = os.clock()
end)
prepare:start(function()
  if began then
    table.insert(_G.spans_ms, (os.clock() - began) * 1000)
  end
end)
vim.schedule(function()
  require("lcursor.chat.highlight").rows(0, 0, vim.api.nvim_buf_line_count(0), function()
    _G.is_done = true
    prepare:close()
    check:close()
  end)
end)
"""
COLOURED = """
local ns = vim.api.nvim_create_namespace("lcursor.chat.highlight")
return vim.tbl_map(function(row)
  local marks = vim.api.nvim_buf_get_extmarks(0, ns, { row, 0 }, { row, -1 }, { details = true })
  return vim.tbl_map(function(mark)
    return mark[4].hl_group
  end, marks)
end, ...)
"""


def test_a_long_block_of_dense_code_holds_nobody_up(editor: Start) -> None:
    """Measured the second time: to compile a query is one call of Neovim's own."""
    nvim = editor({"a.py": "x = 1\n"})
    nvim.lua(SHOWN, ["Here:", "", "```lua", *CODE, "```"])
    for _ in range(2):
        nvim.lua(MEASURED)
        nvim.wait_lua("return _G.is_done", timeout_s=40)
    first, middle, last = nvim.lua(COLOURED, [3, 3 + ROWS // 2, 2 + ROWS])
    assert "@keyword.function.lua" in first
    assert sorted(first) == sorted(middle) == sorted(last)
    spans_ms = sorted(nvim.lua("return _G.spans_ms"), reverse=True)
    assert len(spans_ms) > 50
    assert spans_ms[len(spans_ms) // 50] <= MOST_MS, spans_ms[:8]
    assert spans_ms[0] <= MOST_OF_ALL_MS, spans_ms[:8]
