"""The plugin as plugin managers install it, instead of on the package path from the start.

lazy.nvim is in none of the registries that this project takes packages from, so `LAZY` stands for
what its documentation promises: a plugin's directory comes on the runtime path, and its `plugin/`
files are sourced, when an event, a command or a filetype first asks for it; then `opts` go to
`setup()`, and the event is fired again for the autocommands that the plugin just made. It runs
`:helptags`, and `build.lua` where a plugin has one. vim.pack, of Neovim 0.12, puts a plugin into
`site/pack/core/opt` and loads it by `:packadd`, which is what the tests do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., Pilot]

LAZY = """
local dir, spec = %r, vim.json.decode(%r)
package.path = package.path .. (";%%s/lua/?.lua;%%s/lua/?/init.lua"):format(dir, dir)
_G.loads = 0

local function load()
  _G.loads = _G.loads + 1
  for _, name in ipairs(spec.cmd or {}) do
    pcall(vim.api.nvim_del_user_command, name)
  end
  vim.opt.rtp:prepend(dir)
  for _, file in ipairs(vim.fn.glob(dir .. "/plugin/**/*.lua", false, true)) do
    vim.cmd.source(file)
  end
  _G.use_fake_host()
  require("lcursor").setup(spec.opts)
end

for _, name in ipairs(spec.cmd or {}) do
  vim.api.nvim_create_user_command(name, function(call)
    load()
    vim.cmd({ cmd = name, args = call.fargs, bang = call.bang })
  end, { bang = true, nargs = "*", range = true })
end
for _, event in ipairs(spec.event or {}) do
  vim.api.nvim_create_autocmd(event, {
    once = true,
    callback = function(call)
      load()
      vim.api.nvim_exec_autocmds(event, { group = "lcursor", buffer = call.buf, modeline = false })
    end,
  })
end
for _, filetype in ipairs(spec.ft or {}) do
  vim.api.nvim_create_autocmd("FileType", { once = true, pattern = filetype, callback = load })
end
"""


@pytest.fixture
def lazy(editor: Start, host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start Neovims whose plugin manager loads the plugin when a spec says so."""
    folder = tmp_path / "lazy/lcursor.nvim"
    folder.parent.mkdir()
    folder.symlink_to(ROOT)
    use = f"_G.use_fake_host = function() {host.init()} end\n"

    def start(**spec: Any) -> Pilot:
        init = use + LAZY % (str(folder), json.dumps(spec))
        monkeypatch.setattr(host, "init", lambda: init)
        return editor({"a.py": "def add(a, b):\n"}, plugin=False)

    return start


def completes(nvim: Pilot) -> None:
    """Enter insert mode, see a suggestion, and accept it."""
    request = nvim.insert("o")
    nvim.host.done(request, "return a + b")
    nvim.wait_ghost("return a + b")
    nvim.press("<Tab><Esc>")
    assert nvim.lines()[-1].strip() == "return a + b"


def test_loaded_by_the_first_insert(lazy: Start) -> None:
    nvim = lazy(event=["InsertEnter"])
    assert nvim.lua("return _G.loads") == 0
    assert nvim.lua("return package.loaded['lcursor']") is None
    completes(nvim)
    assert nvim.lua("return _G.loads") == 1


def test_loaded_by_a_command(lazy: Start) -> None:
    nvim = lazy(cmd=["LCursor", "LCChat", "LCEdit"])
    assert nvim.lua("return _G.loads") == 0
    nvim.command("LCursor status")
    assert nvim.lua("return _G.loads") == 1
    nvim.wait_lua("return vim.bo.buftype ~= '' or #vim.api.nvim_list_wins() > 1")
    nvim.press("q")
    nvim.command("silent! wincmd o")
    completes(nvim)


def test_loaded_by_a_filetype(lazy: Start) -> None:
    nvim = lazy(ft=["python"])
    nvim.wait_lua("return _G.loads == 1")
    completes(nvim)


def test_opts_arrive(lazy: Start) -> None:
    nvim = lazy(event=["InsertEnter"], opts={"completion": {"auto_trigger": False}})
    nvim.press("ox")
    assert nvim.lua("return require('lcursor.config').get().completion.auto_trigger") is False
    assert nvim.host.requests == []


def test_nothing_has_to_be_built(tmp_path: Path) -> None:
    assert not (ROOT / "build.lua").exists()
    assert not list(ROOT.glob("*.rockspec"))


def test_help_is_found(lazy: Start, tmp_path: Path) -> None:
    nvim = lazy(ft=["python"])
    nvim.wait_lua("return _G.loads == 1")
    doc = tmp_path / "docs/doc"
    doc.mkdir(parents=True)
    (doc / "lcursor.txt").symlink_to(ROOT / "doc/lcursor.txt")
    nvim.lua("vim.opt.rtp:append(...)", str(doc.parent))
    nvim.command(f"helptags {doc}")  # fails at a tag that is there twice
    nvim.command("help lcursor-config")
    assert nvim.lua("return vim.fn.expand('%:t')") == "lcursor.txt"


@pytest.mark.parametrize("when", ["in init.lua", "later"])
def test_a_package_that_is_added(
    editor: Start, host: FakeHost, monkeypatch: pytest.MonkeyPatch, when: str, tmp_path: Path
) -> None:
    added = f"vim.cmd.packadd('lcursor.nvim')\n{host.init()}"
    opt = tmp_path / "home1/data/nvim/site/pack/core/opt/lcursor.nvim"
    begin = f"""
    vim.fn.mkdir({str(opt.parent)!r}, "p")
    vim.uv.fs_symlink({str(ROOT)!r}, {str(opt)!r})
    """
    init = begin + (added if when == "in init.lua" else "")
    monkeypatch.setattr(host, "init", lambda: init)
    nvim = editor({"a.py": "def add(a, b):\n"}, plugin=False)
    if when == "later":
        assert nvim.lua("return vim.fn.exists(':LCursor')") == 0
        nvim.lua(added)
    assert nvim.lua("return vim.fn.exists(':LCursor')") == 2
    completes(nvim)
