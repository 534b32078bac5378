"""Next edits for functions whose parameters changed, with the references of a language server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, SHORT, Typist
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Open = Callable[..., Typist]
FILES = {
    "a.py": "class A:\n    def get(self, x):\n        return x\n",
    "b.py": "from a import A\nA().get(1)\n{}.get(2)\né = A().get(3)\n",
}
# A language server that answers when a test says so.
SERVER = """
_G.asked, _G.answers = {}, {}
local function server()
  return {
    request = function(method, params, callback)
      if method == "initialize" then
        callback(nil, { capabilities = { referencesProvider = true } })
      elseif method == "textDocument/references" then
        table.insert(_G.asked, params)
        table.insert(_G.answers, callback)
      else
        callback(nil, vim.NIL)
      end
      return true, 1
    end,
    notify = function() end,
    is_closing = function() return false end,
    terminate = function() end,
  }
end
function _G.attach()
  vim.lsp.start({ name = "fake", cmd = server, root_dir = vim.fn.getcwd() }, { bufnr = 0 })
end
function _G.answer(rows)
  local found = {}
  for _, place in ipairs(rows) do
    table.insert(found, {
      uri = vim.uri_from_fname(vim.fn.fnamemodify(place[1], ":p")),
      range = {
        start = { line = place[2], character = place[3] },
        ["end"] = { line = place[2], character = place[3] + 3 },
      },
    })
  end
  table.remove(_G.answers, 1)(nil, found)
end
"""
ADD = "gg/x<CR>a, y<Esc>"
CALLS = [["b.py", 1, 4], ["b.py", 3, 8]]


@pytest.fixture
def start(editor: Start, host: FakeHost) -> Open:
    """Open a.py and b.py, with a language server for a.py."""

    def begin(files: dict[str, str] = FILES, **more: Any) -> Typist:
        desk = Typist(editor(files, config=CONFIG, init=SHORT + SERVER, **more), host)
        for name in [*files][1:]:
            desk.nvim.command(f"edit {name}")
        desk.nvim.command(f"edit {next(iter(files))}")
        desk.nvim.lua("attach()")
        desk.nvim.wait_lua("return #vim.lsp.get_clients({ bufnr = 0, name = 'fake' }) == 1")
        return desk

    return begin


def add_parameter(desk: Typist) -> None:
    """Add one to the function of a.py, and wait until the server is asked."""
    desk.nvim.press(ADD)
    desk.answer()
    desk.nvim.wait_lua("return #asked == 1")


def test_calls_that_a_server_knows_are_proposed_in_other_files(start: Open) -> None:
    desk = start()
    desk.nvim.press(ADD)
    desk.answer()
    assert desk.texts() == []
    desk.nvim.wait_lua("return #asked == 1")
    [asked] = desk.nvim.lua("return asked")
    assert asked["position"] == {"line": 1, "character": 8}
    assert asked["context"] == {"includeDeclaration": False}
    desk.nvim.lua("answer(...)", CALLS)
    request = desk.answer(is_wide=True)
    assert [one["row"] for one in request["references"][0]["found"]] == [1, 3]
    assert desk.wait_drawn() == ["⇥ b.py line 2 +y? (1 of 2)"]
    desk.nvim.press("<Tab>")
    desk.nvim.settle()
    assert desk.nvim.lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }") == ["b.py", 2]
    desk.nvim.press("i, 5<Esc>")
    request = desk.answer()  # the server is not asked again
    assert request["references"][0]["edits"] == 1
    assert desk.texts() == [", 5"]
    desk.nvim.press("<Tab>")
    desk.nvim.settle()
    assert desk.nvim.lines()[1:] == ["A().get(1, 5)", "{}.get(2)", "é = A().get(3, 5)"]
    assert desk.nvim.lua("return #asked") == 1


def test_a_late_answer_still_counts_and_none_does_no_harm(start: Open) -> None:
    desk = start()
    desk.nvim.lua("require('lcursor.next_edit.references').limit_ms = 30")
    desk.nvim.press(ADD)
    desk.answer()
    assert desk.answer(is_wide=True)["references"] == []
    assert desk.drawn() == []
    desk.nvim.lua("answer(...)", CALLS)
    assert len(desk.answer(is_wide=True)["references"]) == 1
    assert desk.wait_drawn() == ["⇥ b.py line 2 +y? (1 of 2)"]


@pytest.mark.parametrize("answer", ["{ 1, 'nonsense' }", "vim.NIL", "nil"])
def test_nonsense_from_a_server_is_no_reference(start: Open, answer: str) -> None:
    desk = start()
    add_parameter(desk)
    desk.nvim.lua(f"answers[1](nil, {answer})")
    assert desk.answer(is_wide=True)["references"] == []


def test_a_server_that_failed_is_asked_again_after_the_next_edit(start: Open) -> None:
    desk = start()
    desk.nvim.lua("require('lcursor.next_edit.references').limit_ms = 30000")
    add_parameter(desk)
    desk.nvim.lua("table.remove(answers, 1)({ code = -32801, message = 'ContentModified' })")
    desk.nvim.press("Go# end<Esc>")
    desk.answer()
    desk.nvim.wait_lua("return #asked == 2")
    desk.nvim.lua("answer(...)", CALLS)
    assert len(desk.answer(is_wide=True)["references"][0]["found"]) == 2


def test_a_function_that_is_changed_again_is_asked_about_again(start: Open) -> None:
    desk = start()
    add_parameter(desk)
    desk.nvim.lua("answer(...)", CALLS[:1])
    assert len(desk.answer(is_wide=True)["references"][0]["found"]) == 1
    desk.nvim.press("gg/y<CR>a, z<Esc>")
    desk.answer()
    desk.nvim.wait_lua("return #asked == 2")
    desk.nvim.lua("answer(...)", CALLS)
    assert len(desk.answer(is_wide=True)["references"][0]["found"]) == 2


def test_references_are_forgotten_after_an_undo(start: Open) -> None:
    desk = start()
    add_parameter(desk)
    desk.nvim.press("u")
    desk.nvim.lua("answer(...)", CALLS)
    desk.nvim.press("gg/x<CR>a, z<Esc>")
    assert desk.answer()["references"] == []
    desk.nvim.wait_lua("return #asked == 2")


def test_an_answer_under_way_does_not_lead_back_to_a_visited_call(start: Open) -> None:
    text = "def f(a):\n    pass\n\n\nf(1)\nf(2)\n"
    desk = start({"a.py": text, "b.py": "from a import f\nf(3)\n"})
    desk.nvim.press("gg/a)<CR>a, b<Esc>")
    desk.answer()
    assert desk.texts() == ["⇥ line 5 +b? (1 of 2)"]
    desk.nvim.press("<Tab>")
    desk.nvim.lua("answer(...)", [["a.py", 4, 0], ["a.py", 5, 0], ["b.py", 1, 0]])
    desk.answer(is_wide=True)
    assert desk.wait_drawn() == ["⇥ line 6 +b? (2 of 2)"]
    desk.nvim.press("<Tab>")
    assert desk.wait_drawn() == ["⇥ b.py line 2 +b?"]
