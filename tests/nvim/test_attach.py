"""The options should_attach and on_attach: functions of the user that choose what is read."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}
ATTACH = """
_G.asked, _G.attached = {}, {}
require("lcursor").setup({
  should_attach = function(buf)
    table.insert(_G.asked, vim.fs.basename(vim.api.nvim_buf_get_name(buf)))
    return not vim.api.nvim_buf_get_name(buf):find("notes")
  end,
  on_attach = function(buf)
    table.insert(_G.attached, vim.fs.basename(vim.api.nvim_buf_get_name(buf)))
  end,
})
"""


def test_a_buffer_that_should_attach_excludes_is_not_read(editor: Start, host: FakeHost) -> None:
    nvim = editor({"notes.py": "x = 1\n", "a.py": "from notes import x\n"}, init=ATTACH)
    nvim.press("oy<Esc>x")
    nvim.wait_why("not_attached")
    nvim.command("edit a.py")
    nvim.insert("A")
    nvim.press("<Esc>oz<Esc>")
    nvim.settle()
    assert {request["name"] for request in host.requests} == {"a.py"}
    sent = [*host.messages("context.chunk"), *host.messages("next_edit.predict")]
    assert "notes.py" not in str(sent)
    assert nvim.lua("return _G.attached") == ["a.py"], "once"
    assert sorted(nvim.lua("return _G.asked")) == ["a.py", "notes.py"], "once for each"


def test_a_should_attach_that_fails_excludes(editor: Start, host: FakeHost) -> None:
    init = "require('lcursor').setup({ should_attach = function() error('broken') end })\n"
    nvim = editor({"a.py": "x = 1\n"}, init=init)
    nvim.press("oy")
    nvim.wait_why("not_attached")
    assert host.requests == []
    nvim.wait_lua("return vim.fn.execute('messages'):find('should_attach failed') ~= nil")


def test_another_should_attach_is_asked_again(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "x = 1\n"})
    for value, code in [("false", "not_attached"), ("true", "waiting")]:
        nvim.lua(f"require('lcursor').setup({{ should_attach = function() return {value} end }})")
        nvim.press("oy")
        nvim.wait_why(code)
        nvim.press("<Esc>")
