"""Highlighting of code in a chat: how long it blocks Neovim at a time."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk, message

Start = Callable[..., Pilot]
ROWS = 1500
MOST_MS = 10.0
MOST_OF_ALL_MS = 30.0  # the first time, queries are compiled: one call of Neovim's own
CODE = [
    f"local function f{n}(x, y) local t = {{ a = x + {n}, b = 's' .. y, [3] = f(x, y) }} "
    "return t.a * t.b[1] or not t end"
    for n in range(ROWS)
]
MEASURED = """
local prepare, check, began = vim.uv.new_prepare(), vim.uv.new_check(), nil
_G.spans_ms = {}
-- Between the two the loop is in what it calls; of the process's own time, whoever else runs here.
check:start(function()
  began = os.clock()
end)
prepare:start(function()
  if began then
    table.insert(_G.spans_ms, (os.clock() - began) * 1000)
  end
end)
"""


def test_an_answer_below_a_long_block_of_dense_code_holds_nobody_up(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor({"a.py": "x = 1\n"}, columns=160, lines=40)
    answer = "\n".join(["Here:", "", "```lua", *CODE, "```"])
    talk = Talk(nvim, host).open(messages=[message(1, "why?"), message(2, answer)])
    number = talk.ask("and?")
    nvim.lua(MEASURED)
    talk.delta(number, "```lua\n")
    for line in CODE[:60]:
        talk.delta(number, line + "\n")
    talk.wait_text(CODE[59])
    nvim.settle()
    spans_ms = sorted(nvim.lua("return _G.spans_ms"), reverse=True)
    talk.done(number)
    assert len(spans_ms) > 50
    assert spans_ms[len(spans_ms) // 50] <= MOST_MS, spans_ms[:8]
    assert spans_ms[0] <= MOST_OF_ALL_MS, spans_ms[:8]
