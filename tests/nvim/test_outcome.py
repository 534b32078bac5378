"""What counts as an accept or a rejection, and that the host is told: a table, and real keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor import protocol
from lcursor.drive.editor import Editor
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Call = Callable[..., Any]
Start = Callable[..., Pilot]
DEF = {"a.py": "def f(x):\n"}

# Each step is [what happens, arguments, time in ms].
REPLAY = """
local outcome, told = require("lcursor.complete.outcome"), vim.NIL
local buf, real, ms = vim.api.nvim_get_current_buf(), vim.uv.hrtime, 0
vim.bo[buf].filetype = "lua"
require("lcursor.host.rpc").notify = function(_, row) told = row end
vim.uv.hrtime = function() return ms * 1e6 end
outcome.requested(7, 1000)
outcome.answered(7, { confidence = 0.5, source = "model" })
for _, step in ipairs(...) do
  ms = tonumber(step[#step]) or ms
  if step[1] == "show" then
    outcome.shown({ id = 7, buf = buf, text = step[2] }, step[3])
  elseif step[1] == "accept" then
    outcome.accepted(step[2])
  elseif step[1] == "hide" then
    outcome.hidden()
  else
    outcome.ended(step[2])
  end
end
vim.uv.hrtime = real
return told
"""


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as nvim:
        yield nvim.lua


SHOW = ["show", "return x", "return x", 1040]


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        ([["finish", "typed", 2000]], None),  # never seen
        ([SHOW, ["finish", "typed", 1289]], None),  # not looked at
        ([SHOW, ["finish", "left", 1289]], None),
        ([SHOW, ["finish", "through", 1289]], None),
        ([SHOW, ["finish", "typed", 1290]], {"outcome": "rejected", "shown_ms": 250}),
        ([SHOW, ["finish", "dismissed", 1290]], {"outcome": "rejected"}),
        ([SHOW, ["finish", "left", 1290]], {"outcome": "ignored"}),
        ([SHOW, ["finish", "typed", 11040]], {"outcome": "rejected"}),
        ([SHOW, ["finish", "typed", 11041]], {"outcome": "ignored"}),
        ([SHOW, ["finish", "dismissed", 11041]], {"outcome": "ignored"}),
        # An accept counts however quick it was.
        (
            [SHOW, ["accept", "return x"], ["finish", "through", 1050]],
            {"outcome": "accepted", "kept_chars": 8, "through_keys": 0},
        ),
        (
            [
                SHOW,
                ["accept", "return"],
                ["show", "return x", " x", 1050],
                ["finish", "typed", 1060],
            ],
            {"outcome": "partial", "kept_chars": 6, "through_keys": 0},
        ),
        # Typed to its end, and typed on: two keys that asked nobody.
        (
            [
                SHOW,
                ["show", "return x", "eturn x", 1100],
                ["show", "return x", "turn x", 1200],
                ["finish", "through", 1300],
            ],
            {"outcome": "typed", "kept_chars": 8, "through_keys": 2},
        ),
        (
            [SHOW, ["show", "return x", "eturn x", 1100], ["finish", "typed", 1300]],
            {"outcome": "rejected", "kept_chars": 1, "through_keys": 1},
        ),
        # More of the same is no new one; what was chosen instead has no confidence of its own.
        (
            [SHOW, ["show", "return x + 1", "return x + 1", 1100], ["finish", "typed", 1300]],
            {"shown_chars": 12, "latency_ms": 40, "confidence": 0.5, "through_keys": 0},
        ),
        (
            [SHOW, ["show", "pass", "pass", 1100], ["finish", "typed", 1300]],
            {"shown_chars": 4, "confidence": -1},
        ),
        # Only the time on the screen counts.
        ([SHOW, ["hide", 1100], ["finish", "typed", 9000]], None),
        (
            [
                SHOW,
                ["hide", 1240],
                ["show", "return x", "return x", 90000],
                ["finish", "typed", 90050],
            ],
            {"outcome": "rejected", "shown_ms": 250},
        ),
        (
            [["show", "größe", "größe", 1040], ["finish", "typed", 1290]],
            {"shown_chars": 5, "kept_chars": 0, "id": 7, "filetype": "lua", "source": "model"},
        ),
    ],
)
def test_what_counts(lua: Call, steps: list[Any], wanted: dict[str, Any] | None) -> None:
    row = lua(REPLAY, steps)
    if wanted is None:
        assert row is None
    else:
        protocol.check("fim.outcome", row)
        assert {name: row[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("was", "now", "how"),
    [
        ((1, 5, 3, 4), (1, 6, 3, 5), "typed"),
        ((1, 5, 3, 4), (1, 6, 4, 0), "typed"),  # a new line
        ((1, 5, 3, 4), (1, 5, 3, 5), "left"),  # the cursor moved
        ((1, 5, 3, 4), (1, 6, 3, 3), "left"),  # deleted
        ((1, 5, 3, 4), (1, 6, 3, 4), "left"),  # changed elsewhere, or deleted behind the cursor
        ((1, 5, 3, 4), (1, 6, 2, 9), "left"),
        ((1, 5, 3, 4), (2, 9, 3, 5), "left"),
    ],
)
def test_how_it_ended(lua: Call, was: tuple[int, ...], now: tuple[int, ...], how: str) -> None:
    names = ["buf", "tick", "row", "col"]
    code = "return require('lcursor.complete.outcome').how(...)"
    assert lua(code, dict(zip(names, was, strict=True)), dict(zip(names, now, strict=True))) == how


# A quarter of a second passes between two looks at the clock.
CLOCK = """
local real = vim.uv.hrtime
local ahead = 0
_G.pass = function(ms) ahead = ahead + ms * 1e6 end
vim.uv.hrtime = function() return real() + ahead end
"""


def outcomes(nvim: Pilot) -> list[dict[str, Any]]:
    """Return what the host was told, when everything has settled."""
    nvim.settle()
    told = nvim.host.messages("fim.outcome")
    for row in told:
        protocol.check("fim.outcome", row)
    return told


def test_an_accept_in_pieces_is_one_suggestion(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    request = nvim.offer("return x + 1", ";")
    nvim.press("<C-Right>")
    nvim.press(" ")
    assert outcomes(nvim) == []
    nvim.press("<Tab>")
    (row,) = outcomes(nvim)
    assert (row["id"], row["outcome"]) == (request["id"], "accepted")
    assert (row["filetype"], row["source"], row["confidence"]) == ("python", "model", 0.9)
    assert (row["shown_chars"], row["kept_chars"], row["through_keys"]) == (12, 12, 1)
    assert 0 <= row["latency_ms"] < 10_000


def test_a_start_is_not_the_latency_of_a_key(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")  # the first request comes when the host is ready
    nvim.press("<Tab>")
    assert [row["latency_ms"] for row in outcomes(nvim)] == [-1]


def test_typing_something_else_is_a_rejection(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=CLOCK)
    nvim.offer("return x", "o")
    nvim.lua("_G.pass(300)")
    nvim.press("q")
    (row,) = outcomes(nvim)
    assert (row["outcome"], row["kept_chars"]) == ("rejected", 0)
    assert row["shown_ms"] >= 300


@pytest.mark.parametrize(
    ("keys", "outcome"),
    [("<C-]>", "rejected"), ("<Esc>", "ignored"), ("<Left>", "ignored"), ("<BS>", "ignored")],
)
def test_other_ends(editor: Start, host: FakeHost, keys: str, outcome: str) -> None:
    nvim = editor(DEF, init=CLOCK)
    nvim.offer("return x", "o")
    nvim.lua("_G.pass(300)")
    nvim.press(keys)
    assert [row["outcome"] for row in outcomes(nvim)] == [outcome]


def test_a_glance_is_nothing(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="local t = vim.uv.hrtime() vim.uv.hrtime = function() return t end\n")
    nvim.offer("return x", "o")
    nvim.press("q")
    assert outcomes(nvim) == []


def test_what_went_while_it_was_written_has_no_confidence(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=CLOCK)
    host.partial(nvim.insert("o"), "return x")
    nvim.wait_ghost()
    nvim.lua("_G.pass(300)")
    nvim.press("q")
    (row,) = outcomes(nvim)
    assert (row["outcome"], row["confidence"]) == ("rejected", -1)
