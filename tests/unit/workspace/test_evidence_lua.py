"""What failed Lua tests did before they failed, with real Neovims in the sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lcursor.config import AgentConfig
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace import evidence
from lcursor.workspace.evidence import HEAD, collect
from lcursor.workspace.shell import Shell
from tests.unit.workspace.projects import Project, project
from tests.unit.workspace.test_evidence import traced

__all__ = ["project"]
pytestmark = pytest.mark.skipif(open_sandbox().level == "none", reason="no sandbox works here")

CART = """\
local Cart = {}
Cart.__index = Cart

function Cart.new()
  return setmetatable({ items = {} }, Cart)
end

function Cart:add(price, count)
  self.items[#self.items + 1] = { price = price, count = count or 1 }
end

local function sum(items)
  local result = 0
  for _, item in ipairs(items) do
    if item.count > 1 then
      result = result + item.price
    else
      result = result + item.price * item.count
    end
  end
  return result
end

function Cart:total()
  local total = sum(self.items)
  return total, nil
end

return Cart
"""
TESTS = """\
local Cart = dofile("cart.lua")
local function check(value, expected)
  if value ~= expected then
    error(("expected %s, got %s"):format(expected, value), 2)
  end
end
describe("cart", function()
  local cart
  it("has one", function()
    cart = Cart.new()
    cart:add(3)
    check(cart:total(), 3)
  end)
  it("has many", function()
    local is_ok = pcall(error, "handled")
    cart = Cart.new()
    cart:add(3, 2)
    local total = cart:total()
    check(total, 6)
  end)
end)
"""
RUNNER = """\
local has_failed = false
local function run(name, test)
  local ok, message = xpcall(test, function(message)
    return message .. "\\n" .. debug.traceback("", 2)
  end)
  has_failed = has_failed or not ok
  print(ok and "ok" or "FAILED", name, message)
end
describe, it = run, run
dofile("cart_spec.lua")
os.exit(has_failed and 1 or 0)
"""
FAILURE = [
    HEAD,
    "",
    "  Cart.new() returned setmetatable({ items = {} }, Cart)  [cart.lua:4]",
    "  Cart:add(self={items = {}}, price=3, count=2) returned nil  [cart.lua:8]",
    "  Cart:total(self={items = {{count = 2, price = 3}}}) returned total, nil (total=3)"
    "  [cart.lua:24]",
    "  sum(items={{count = 2, price = 3}}) returned 3  [cart.lua:12]",
    "  check(value=3, expected=6) raised cart_spec.lua:19: expected 6, got 3  [cart_spec.lua:2]",
    'At cart_spec.lua:14 in (anonymous): it("has many", function()',
    "  cart = {items = {{count = 2, price = 3}}}",
    "At cart_spec.lua:19 in (anonymous): check(total, 6)",
    "  is_ok = false",
    "  total = 3",
    "  cart = {items = {{count = 2, price = 3}}}",
    'At cart_spec.lua:4 in check: error(("expected %s, got %s"):format(expected, value), 2)',
    "  value = 3",
    "  expected = 6",
    "Lines that ran in this test and in none that passed:",
    "  cart.lua:16: result = result + item.price",
    '  cart_spec.lua:4: error(("expected %s, got %s"):format(expected, value), 2)',
]
"""What is said of `TESTS`."""
FILES = {"cart.lua": CART, "cart_spec.lua": TESTS, "deps/plenary/busted.lua": RUNNER}
needs_lua = pytest.mark.skipif(shutil.which("lua") is None, reason="lua is not here")

Start = Callable[..., list[str]]


@pytest.fixture
def nvim(project: Project, neovim: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return what is said of a command with Neovim that fails in a project with some files."""
    monkeypatch.setenv("PATH", f"{neovim.parent}:{os.environ['PATH']}")
    config = AgentConfig(env=("LUA_INIT",), readable=(str(neovim.parent.parent),))

    def run(command: str, files: Mapping[str, str]) -> list[str]:
        return traced(project, command, files, config)

    return run


PCALL = """\
local has_failed = false
function it(name, test)
  local ok, message = pcall(test)
  has_failed = has_failed or not ok
  print(ok and "ok" or "FAILED", name, message)
end
function describe(_, define) define() end
dofile("cart_spec.lua")
os.exit(has_failed and 1 or 0)
"""


@pytest.mark.parametrize("runner", [RUNNER, PCALL])
def test_calls_values_and_lines_of_a_failed_test(nvim: Start, runner: str) -> None:
    files = {**FILES, "deps/plenary/busted.lua": runner}
    assert nvim("nvim -l deps/plenary/busted.lua", files) == FAILURE


def test_a_neovim_that_a_runner_starts_by_its_path(nvim: Start) -> None:
    runner = """\
local words = { vim.v.progpath, "--headless", "--noplugin", "-u", "init.lua" }
print(vim.fn.system(vim.list_extend(words, { "-c", "luafile deps/plenary/busted.lua" })))
os.exit(vim.v.shell_error)
"""
    files = {**FILES, "run.lua": runner, "init.lua": "vim.opt.rtp:append('.')"}
    assert nvim("nvim -l run.lua", files) == FAILURE


ERROR = """\
local function half(number)
  local other
  return other.number / 2
end

local function main()
  return half(3)
end

main()
"""


def test_a_program_without_tests(nvim: Start) -> None:
    found = nvim("nvim -l half.lua", {"half.lua": ERROR})
    error = "half.lua:3: attempt to index local 'other' (a nil value)"
    assert f"  half(number=3) raised {error}  [half.lua:1]" in found
    assert "  main() returned half(3)  [half.lua:6]" in found
    at = found.index("At half.lua:3 in half: return other.number / 2")
    assert found[at + 1 :] == ["  number = 3", "  other = nil"]


@needs_lua
def test_a_program_of_plain_lua(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUA_INIT", "given = 5")
    code = "local seen = given\n\nerror('here')\n"
    found = traced(project, "lua a.lua", {"a.lua": code}, AgentConfig(env=("LUA_INIT",)))
    assert found[2:] == ["At a.lua:3 in main chunk: error('here')", "  seen = 5"]


def test_values_that_run_code_or_are_large_do_no_harm(nvim: Start) -> None:
    code = """\
local function trap() error("a metamethod ran") end
local traps = {}
for _, name in ipairs({ "__tostring", "__index", "__len", "__pairs", "__eq", "__metatable" }) do
  traps[name] = trap
end
local function use(odd, ...)
  return odd
end
local odd, loop, long, many = setmetatable({ 1 }, traps), {}, {}, {}
loop.me = loop
for n = 1, 1e5 do
  long[n] = n
end
for n = 1, 1e6 do
  many.n = use(odd, long, n)
end
local text, bytes, int = ("x"):rep(1e6), "\\255ü\\n", require("ffi").new("int64_t", 1)
error("here")
"""
    found = nvim("nvim -l odd.lua", {"odd.lua": code})
    assert "  odd = {1}" in found
    assert "  loop = {me = {me = {me = {…}}}}" in found
    assert "  long = {1, 2, 3, 4, 5, 6, …}" in found
    assert "  int = cdata" in found
    assert '  bytes = "\ufffdü\\n"' in found
    assert sum(map(len, found)) <= evidence.MAX_CHARS


def test_a_program_that_replaces_functions(nvim: Start) -> None:
    code = """\
for name in pairs(string) do string[name] = nil end
for name in pairs(table) do table[name] = nil end
io.open, debug.getinfo, debug.getlocal, package.loaded, package = nil
pcall, xpcall, tostring, type, next, pairs, select, rawget, setmetatable = nil
local value = 5
error("here")
"""
    found = nvim("nvim -l a.lua", {"a.lua": code})
    assert found[2:] == ['At a.lua:6 in main chunk: error("here")', "  value = 5"]


@pytest.mark.parametrize(
    "code",
    [
        "pcall(error, 'handled')\nos.exit(1)",
        "print(pcall(function() error('handled', 0) end) and 1)\nos.exit(1)",
        "os.exit(3)",
        "debug.sethook()\nerror('here')",
    ],
)
def test_nothing_is_said_of_handled_errors_and_of_none(nvim: Start, code: str) -> None:
    assert nvim("nvim -l a.lua", {"a.lua": code}) == []


def test_a_program_does_the_same_as_without_a_tracer(
    project: Project, neovim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """\
local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end
local function again() return 1 + again() end
local pack = function(...) return select("#", ...), ... end
print(pack(pcall(pack, nil, 2, nil)))
print(pcall(error), pcall(error, nil), pcall(error, "a", 2), pcall(error, { 1 }) == false)
print(pcall(nil), pcall(again) == false, deep(5000))
print(xpcall(pack, function(m) return m .. "!" end, 1, nil))
print(xpcall(function() local x = nil + 1 end, function(m) return m .. "!" end))
print(pcall(xpcall, pack, nil), pcall(function() error("b", 1) end))
local co = coroutine.wrap(function() pcall(coroutine.yield, 1) error("c") end)
print(co(), pcall(co), select("#", ...), ...)
for n = 1, 3 do print(n, pcall(string.rep)) end
error("last")
"""
    command = "nvim -l a.lua x y >log 2>&1; echo $? >>log; cat log; exit 5"
    monkeypatch.setenv("PATH", f"{neovim.parent}:{os.environ['PATH']}")
    project.repository({"a.lua": code})
    tree = project.tree()
    config = AgentConfig(readable=(str(neovim.parent.parent),))
    shell = Shell(tree, open_sandbox(), config, (command,))
    result = shell.run(command, bool)
    log = (tree.path / "log").read_text()
    (tree.path / "log").unlink()
    assert collect(shell, command, result, bool, tree.path)
    assert (tree.path / "log").read_text() == log
