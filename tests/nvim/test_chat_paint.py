"""Colours of code in a chat: how long at a time they hold Neovim up."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk, message

Start = Callable[..., Pilot]
ROWS = 1500
MOST_MS = 10.0
CODE = "".join(
    f"local function f{n}(x, y) local t = {{ a = x + {n}, b = 's' .. y, [3] = f(x, y) }} "
    "return t.a * t.b[1] or not t end\n"
    for n in range(ROWS)
)
MEASURED = """
local buf = require("lcursor.chat").current().buf
local prepare, check, began = vim.uv.new_prepare(), vim.uv.new_check(), nil
_G.spans_ms, _G.is_painted = {}, false
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
  require("lcursor.chat.paint").rows(buf, 0, vim.api.nvim_buf_line_count(buf), function()
    _G.is_painted = true
    prepare:close()
    check:close()
  end)
end)
"""


def test_a_long_block_of_dense_code_holds_nobody_up(editor: Start, host: FakeHost) -> None:
    """Measured the second time: to compile a query is one call of Neovim's own."""
    nvim = editor({"a.py": "x = 1\n"})
    history = [message(1, "all of it"), message(2, f"Here:\n\n```lua\n{CODE}```")]
    Talk(nvim, host).open(messages=history)
    for _ in range(2):
        nvim.lua(MEASURED)
        nvim.wait_lua("return _G.is_painted", timeout_s=30)
    spans_ms = sorted(nvim.lua("return _G.spans_ms"), reverse=True)
    assert len(spans_ms) > 50
    assert spans_ms[0] <= MOST_MS, spans_ms[:8]
