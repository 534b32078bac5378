"""The sources for snacks.picker, Telescope and fzf-lua, by the interfaces that these document.

The plugins themselves were tried by hand, see doc/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.edits import file
from tests.nvim.pilot import Pilot
from tests.nvim.test_index import FILES
from tests.nvim.test_index_search import answer, hit
from tests.nvim.test_sources import place, propose

Start = Callable[..., Pilot]

# Each picker by what it does with a source: `open`, `search`, then the lines in `_G.lines`;
# `preview` returns what it would show of the first one, `confirm` does what a key does.
FAKES = {
    "snacks": """
local opts, entries
package.preload["snacks"] = function()
  return { picker = { pick = function(given) opts = given end } }
end
function _G.open(name) require("lcursor.integrations.snacks").open(name) end
function _G.search(query)
  local async = {}
  local run = coroutine.create(function()
    entries = {}
    opts.finder(opts, { filter = { search = query }, async = async })(function(entry)
      table.insert(entries, entry)
    end)
    _G.lines = vim.tbl_map(function(entry) return entry.text end, entries)
  end)
  local function resume() -- as snacks does it: in a fast event
    assert(vim.uv.new_timer()):start(0, 0, function() assert(coroutine.resume(run)) end)
  end
  function async:suspend() coroutine.yield() end
  function async:resume() resume() end
  resume()
end
function _G.is_live() return opts.live == true end
function _G.preview()
  local entry = entries[1]
  if opts.preview == "preview" then
    return vim.split(entry.preview.text, "\\n")
  end
  return { entry.file, entry.pos[1] }
end
function _G.confirm(key)
  local picker = { close = function() _G.is_closed = true end }
  opts.confirm(picker, entries[1], { cmd = key == "split" and "split" or nil })
end
""",
    "telescope": """
local picker, source, select, entries
local function module(name, value) package.preload[name] = function() return value end end
local exports
module("telescope", { register_extension = function(it) return it end })
module("telescope.actions", { close = function() _G.is_closed = true end })
module("telescope.actions.set", { select = { replace = function(_, fn) select = fn end } })
module("telescope.actions.state", { get_selected_entry = function() return entries[1] end })
module("telescope.config", { values = {
  grep_previewer = function() return "grep" end, generic_sorter = function() return "generic" end,
} })
module("telescope.finders", {
  new_table = function(it) return it end, new_dynamic = function(it) return it end,
})
module("telescope.pickers", { new = function(_, given)
  picker = given
  return { find = function() picker.attach_mappings() end }
end })
module("telescope.previewers", { new_buffer_previewer = function(it) return it end })
module("telescope.previewers.utils", { highlighter = function() end })
module("telescope.sorters", { empty = function() return "empty" end })
module("plenary.async.control", { channel = { oneshot = function()
  local run = coroutine.running()
  local value
  return function(found)
    value = found
    if coroutine.status(run) == "suspended" then assert(coroutine.resume(run)) end
  end, function()
    if not value then coroutine.yield() end
    return value
  end
end } })
function _G.open(name)
  require("telescope._extensions.lcursor").exports[name]()
end
function _G.search(query)
  local finder = picker.finder
  coroutine.wrap(function()
    entries = vim.tbl_map(finder.entry_maker, finder.fn and finder.fn(query) or finder.results)
    _G.lines = vim.tbl_map(function(entry) return (entry.display(entry)) end, entries)
  end)()
end
function _G.is_live() return picker.sorter == "empty" end
function _G.preview()
  if picker.previewer == "grep" then
    return { entries[1].filename, entries[1].lnum }
  end
  local buf = vim.api.nvim_create_buf(false, true)
  picker.previewer.define_preview({ state = { bufnr = buf } }, entries[1])
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end
function _G.confirm(key) select(1, key == "split" and "horizontal" or "default") end
""",
    "fzf_lua": """
local opts, contents, is_live, raw
local function module(name, value) package.preload[name] = function() return value end end
module("fzf-lua", {
  fzf_live = function(fn, given) contents, opts, is_live = fn, given, true end,
  fzf_exec = function(fn, given) contents, opts, is_live = fn, given, false end,
})
module("fzf-lua.utils", { ansi_from_hl = function(_, text) return text end })
module("fzf-lua.previewer.builtin", { buffer_or_file = {
  extend = function(super)
    return setmetatable({ super = super }, { __index = super })
  end,
  parse_entry = function(self, line) return self:entry_to_file(line) end,
} })
function _G.open(name) require("lcursor.integrations.fzf_lua").open(name) end
function _G.search(query)
  raw = {}
  local write = is_live and contents({ query }) or contents
  write(function(line)
    if line then return table.insert(raw, line) end
    _G.lines = vim.tbl_map(function(one) return one:match("\\t(.*)") end, raw)
  end)
end
function _G.is_live() return is_live end
function _G.preview()
  local entry = opts.previewer._ctor():parse_entry(raw[1])
  return entry.content or { entry.path, entry.line }
end
function _G.confirm(key)
  _G.is_closed = true
  opts.actions[key == "split" and "ctrl-s" or "enter"]({ raw[1] })
end
""",
}


@pytest.fixture(params=FAKES)
def start(request: pytest.FixtureRequest, editor: Start) -> Start:
    """Start a Neovim with one of the pickers."""

    def begin(files: dict[str, str] | None = None) -> Pilot:
        return editor(files or FILES, init=reach.NOTES + FAKES[request.param])

    return begin


def lines(nvim: Pilot) -> Any:
    """Return what the picker lists."""
    nvim.settle()
    return nvim.lua("return _G.lines")


def test_it_searches_while_one_types(start: Start, host: FakeHost) -> None:
    nvim = start()
    nvim.lua("open('search')")
    assert nvim.lua("return is_live()")
    nvim.lua("search('')")
    assert lines(nvim) == []
    nvim.lua("_G.lines = nil search('beta')")
    answer(nvim, host, "beta", [hit(nvim, "sub/b.py", first_row=0, end_row=1), hit(nvim)])
    assert lines(nvim) == ["sub/b.py:1: def beta(y):", "a.py:5: def beta(y):"]
    assert nvim.lua("return preview()") == [str(nvim.home / "project/sub/b.py"), 1]
    nvim.lua("confirm('split')")
    nvim.settle()
    assert place(nvim) == ("sub/b.py", 1)
    assert nvim.lua("return { #vim.api.nvim_list_wins(), _G.is_closed }") == [2, True]


def test_it_lists_hunks(start: Start) -> None:
    nvim = start({"a.txt": "one\ntwo\n"})
    nvim.lua("open('hunks')")
    assert reach.told(nvim) == ["lcursor: no open hunks"]
    propose(nvim, file(nvim.home / "project/a.txt", ["one", "two"], ["one", "TWO"]))
    nvim.lua("open('hunks')")
    assert not nvim.lua("return is_live()")
    nvim.lua("search('')")
    assert lines(nvim) == ["a.txt:2: +1 -1 | + TWO | do it"]
    assert nvim.lua("return preview()")[-2:] == ["-two", "+TWO"]
    nvim.lua("confirm()")
    nvim.settle()
    assert place(nvim) == ("a.txt", 2)


def test_models_have_no_preview(start: Start, host: FakeHost) -> None:
    nvim = start()
    reach.chat(nvim, host)
    nvim.lua("open('models') search('')")
    assert lines(nvim) == ["small (current)", "large"]
