"""Accepting: all, line, word; what undo and `.` make of it; dismissing; the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}
TRIGGER = "vim.keymap.set('i', '<C-l>', '<Plug>(lcursor-trigger)')\n"
EVENTS = """
vim.g.events = {}
vim.api.nvim_create_autocmd("User", { pattern = "LCursorCompletion*", callback = function(event)
  local all = vim.g.events
  table.insert(all, { event.match, event.data })
  vim.g.events = all
end })
"""


def test_all_of_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("y = x\n    return y\n", "o")
    nvim.press("<Tab>")
    assert nvim.lines() == ["def f(x):", "    y = x", "    return y", ""]
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [4, 0]
    again = nvim.host.requests[-1]
    assert (len(host.requests), again["row"], again["col"]) == (2, 3, 0)


def test_line_by_line_with_the_rest_in_sight(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("y = x\n    z = y\n    return z", "o")
    nvim.press("<S-Tab>")
    assert nvim.lines() == ["def f(x):", "    y = x"]
    assert nvim.ghost() == "    z = y\n    return z"
    nvim.press("<S-Tab>")
    assert nvim.lines() == ["def f(x):", "    y = x", "    z = y"]
    assert nvim.ghost() == "    return z"
    assert nvim.count() == 1
    nvim.press("<S-Tab>")
    assert nvim.lines()[-1] == "    return z"
    assert nvim.count() == 2


def test_word_by_word_with_the_rest_in_sight(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return foo_bar(x)\n    pass", "o")
    states = []
    for _ in range(6):
        nvim.press("<C-Right>")
        states.append(nvim.lines()[1:])
    assert states == [
        ["    return"],
        ["    return foo_bar"],
        ["    return foo_bar("],
        ["    return foo_bar(x"],
        ["    return foo_bar(x)"],
        ["    return foo_bar(x)", "    "],
    ]
    assert nvim.ghost() == "pass"
    assert nvim.count() == 1


def test_mixing_typing_and_accepting(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("value = foo(x)\n    pass", "o")
    nvim.press("val")
    nvim.press("<C-Right>")
    nvim.press(" ")
    nvim.press("<S-Tab>")
    nvim.press("<CR>")
    assert nvim.ghost() == "pass"
    nvim.press("<Tab>")
    assert nvim.lines() == ["def f(x):", "    value = foo(x)", "    pass"]


def test_accepting_while_it_still_streams(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return")
    nvim.wait_ghost()
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return"
    host.partial(request, "return x")
    nvim.wait_ghost(lambda text: text.strip() == "x")
    host.done(request, "return x + 1")
    nvim.wait_ghost(lambda text: text.strip() == "x + 1")
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return x + 1"
    assert nvim.count() == 2


@pytest.mark.parametrize("text", ["return x", "y = x\n\n    return y\n"])
def test_undo_takes_back_the_accept_and_nothing_else(
    editor: Start, host: FakeHost, text: str
) -> None:
    nvim = editor({"a.py": ""})
    nvim.insert("i")
    nvim.keys("before ")
    host.done(nvim.request("before "), text)
    nvim.wait_ghost()
    nvim.press("<Tab>")
    nvim.press(" after<Esc>")
    whole = "\n".join(nvim.lines())
    assert whole == "before " + text + " after"
    nvim.press("u")
    assert "\n".join(nvim.lines()) == "before " + text
    nvim.press("u")
    assert nvim.lines() == ["before "]
    nvim.press("u")
    assert nvim.lines() == [""]
    nvim.press("3<C-r>")
    assert "\n".join(nvim.lines()) == whole


@pytest.mark.parametrize("text", ["ghost(x)", "{\n  y\n}"])
def test_dot_repeats_an_insert_with_an_accept(editor: Start, host: FakeHost, text: str) -> None:
    nvim = editor({"a.py": "\n\n"}, init="vim.o.autoindent = true\n")
    nvim.insert("i")
    nvim.keys("foo ")
    host.done(nvim.request("foo "), text)
    nvim.wait_ghost()
    nvim.press("<Tab>")
    nvim.press(" bar<Esc>")
    once = "foo " + text + " bar"
    assert "\n".join(nvim.lines()) == once + "\n"
    nvim.press("G.")
    assert "\n".join(nvim.lines()) == once + "\n" + once
    assert nvim.lua("return vim.v.errmsg") == ""


def test_an_override_of_paste_is_not_asked(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="vim.paste = function() error('not yours') end\n")
    nvim.offer("return x", "o")
    nvim.press("<Tab>")
    assert nvim.lines()[1] == "    return x"
    assert nvim.lua("return pcall(vim.paste, {}, -1)") is False


def test_registers_and_marks_of_the_user_stay(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.fn.setreg('\"', 'mine')")
    nvim.offer("return x", "o")
    nvim.press("<Tab><Esc>")
    assert nvim.lua("return vim.fn.getreg('\"')") == "mine"


def test_text_width_and_indent_rules_do_not_touch_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="vim.o.textwidth = 20\nvim.o.formatoptions = 'tcqan'\n")
    text = "value = one + two + three + four\n        deep\n  shallow"
    nvim.offer(text, "o")
    nvim.press("<Tab>")
    assert "\n".join(nvim.lines()) == "def f(x):\n    " + text


def test_it_goes_in_front_of_a_closing_bracket(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "print();\n"})
    nvim.command("call cursor(1, 7)")
    nvim.offer("1, 2", "i")
    nvim.press("<Tab>")
    assert nvim.lines() == ["print(1, 2);"]


def test_dismiss_until_the_text_changes(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    nvim.press("<C-]>")
    assert nvim.ghost() == ""
    assert nvim.why() == "dismissed"
    assert nvim.lines() == ["def f(x):", "    "]
    nvim.press("<Left><Right>")
    assert nvim.count() == 1
    nvim.press("r")
    assert nvim.count() == 2


def test_the_trigger_asks_again_after_a_dismiss(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=TRIGGER)
    nvim.offer("return x", "o")
    nvim.press("<C-]>")
    host.skip()
    nvim.keys("<C-l>")
    assert nvim.request()["trigger"] == "manual"


def test_the_trigger_asks_in_the_middle_of_a_line(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "x =  + 1\n"}, init=TRIGGER)
    nvim.command("call cursor(1, 5)")
    nvim.keys("i")
    nvim.wait_why("midline")
    assert nvim.count() == 0
    nvim.keys("<C-l>")
    request = nvim.request()
    assert (request["trigger"], request["single_line"]) == ("manual", True)
    host.done(request, "y")
    assert nvim.wait_ghost() == "y"


def test_without_auto_trigger(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        config={"completion": {"auto_trigger": False}},
        init="vim.keymap.set('i', '<C-l>', '<Cmd>LCursor suggestion trigger<CR>')\n",
    )
    nvim.press("o")
    nvim.wait_state()
    nvim.press("r")
    assert nvim.count() == 0
    assert nvim.why() == "manual_only"
    nvim.keys("<C-l>")
    assert nvim.request()["trigger"] == "manual"


def test_the_lua_api(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    assert nvim.lua("return require('lcursor').accept()") is False
    nvim.offer("return x\n    pass", "o")
    assert nvim.lua("return require('lcursor').is_visible()") is True
    assert nvim.lua("return require('lcursor').accept('word')") is True
    nvim.settle()
    assert nvim.lines()[1] == "    return"
    assert nvim.lua("return require('lcursor').accept('line')") is True
    nvim.settle()
    assert nvim.lines()[1] == "    return x"
    assert nvim.lua("return require('lcursor').dismiss()") is True
    assert nvim.shows() == ""
    assert nvim.lua("return require('lcursor').dismiss()") is False


def test_events(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=EVENTS)
    nvim.offer("return x\n    pass", "o")
    nvim.press("<C-Right>")
    nvim.press("<C-]>")
    events: list[Any] = nvim.lua("return vim.g.events")
    assert events == [
        ["LCursorCompletionShow", {"buf": 1, "text": "return x\n    pass"}],
        ["LCursorCompletionAccept", {"buf": 1, "text": "return", "kind": "word"}],
        ["LCursorCompletionDismiss", {"buf": 1}],
    ]
