"""The plugin loaded again in a running Neovim, as plugin managers do it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change
from tests.nvim.pilot import Pilot
from tests.waiting import is_running, wait_for

Start = Callable[..., Pilot]
FORGET = """
for name in pairs(package.loaded) do
  if name == "lcursor" or vim.startswith(name, "lcursor.") then
    package.loaded[name] = nil
  end
end
"""
SOURCE = """
vim.g.loaded_lcursor = nil
vim.cmd.runtime("plugin/lcursor.lua")
"""
GROUPS = """
return vim.iter(vim.api.nvim_get_autocmds({})):filter(function(it)
  return vim.startswith(it.group_name or "", "lcursor")
end):fold(0, function(count) return count + 1 end)
"""


@pytest.mark.parametrize("deactivate", [True, False], ids=["deactivated", "modules dropped"])
def test_the_host_of_the_plugin_before_ends(
    editor: Start, host: FakeHost, deactivate: bool
) -> None:
    nvim = editor({"a.py": "one\n"}, init=reach.NOTES)
    nvim.press("A")
    host.wait_count(1)
    nvim.press("<Esc>")
    before = nvim.lua(GROUPS)
    if deactivate:
        nvim.lua("require('lcursor').deactivate()")
        assert nvim.lua(GROUPS) == 0
        wait_for(lambda: not is_running(host.pids[0]))
    nvim.lua(FORGET + SOURCE + host.init())
    nvim.keys("A")
    host.wait_count(2)
    wait_for(lambda: not is_running(host.pids[0]))
    assert is_running(host.pids[1])
    nvim.keys(" x")
    host.request()
    nvim.press("<Esc>")
    assert nvim.lua(GROUPS) == before
    assert reach.told(nvim) == []


def test_nothing_that_the_plugin_before_drew_stays(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"}, init=reach.NOTES)
    desk = Desk(nvim, host)
    desk.edited(desk.ask("1LCEdit do it"), [change(0, ["one"], ["1"])])
    marks = "return #vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {})"
    assert nvim.lua(marks) > 0
    nvim.lua("require('lcursor').deactivate()")
    time.sleep(0.2)  # what is drawn in slices is drawn by then
    assert nvim.lua(marks) == 0
