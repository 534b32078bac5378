"""The first run on a clean machine: an empty home, no environment, no configuration.

The installer is the real one. uv and pip are stand-ins that write down what they are asked for, and
the environment that they "make" is the one that runs the tests; the engine was compiled before.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from lcursor.installer import engine
from tests.fakes.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
PYTHON = """#!/bin/sh
for word in "$@"; do
  if [ "$word" = pip ]; then
    case "$*" in *engine.whl*) while [ -e '{hold}' ]; do sleep 0.1; done ;; esac
    echo "pip $*" >>'{said}'; exit 0
  fi
done
exec '{python}' "$@"
"""
UV = """#!/bin/sh
echo "uv $*" >>'{said}'
if [ "$1" = venv ]; then
  for last in "$@"; do :; done
  mkdir -p "$last/bin" && cp '{venv_python}' "$last/bin/python"
  echo "home = /usr/bin" >"$last/pyvenv.cfg"
fi
"""
NOTIFICATIONS = """
_G.notes, _G.prompts = {}, 0
vim.notify = function(text) table.insert(_G.notes, text) end
vim.ui.select = function() _G.prompts = _G.prompts + 1 end
vim.fn.confirm = vim.ui.select
vim.ui.input = vim.ui.select
vim.o.swapfile = false
"""
SETTLED = "local c = require('lcursor.complete') return c.current_id() and c.is_settled()"


def clone(folder: Path) -> None:
    """Put the plugin into a folder, as a clone does: without the environment of this checkout."""
    for name in ("lcursor", "lua", "plugin", "rplugin", "syntax", "models", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("requirements.in", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)


class Machine:
    """A clean home, and programs that stand in for the package managers."""

    def __init__(self, neovim: Path, home: Path) -> None:
        self._neovim, self.home = neovim, home
        self.project = home / "project"
        self.project.mkdir(parents=True)
        (self.project / "a.py").write_text("def add(a, b):\n")
        self._said = home / "said"
        self.hold = home / "hold"
        """As long as this file exists, the engine is not installed."""
        self._programs = home / "bin"
        self._programs.mkdir()
        base = getattr(sys, "_base_executable", sys.executable)
        (self._programs / "python3").symlink_to(base)
        venv_python = home / "venv-python"
        words = {"said": self._said, "python": sys.executable, "venv_python": venv_python}
        words["hold"] = self.hold
        for path, text in ((venv_python, PYTHON), (self._programs / "uv", UV)):
            path.write_text(text.format(**words))
            path.chmod(0o755)
        clone(home / "data/nvim/site/pack/user/start/lcursor.nvim")
        wheel = home / "cache/lcursor/wheels" / engine.ladder()[0].key / "engine.whl"
        wheel.parent.mkdir(parents=True)
        wheel.touch()

    def said(self) -> list[str]:
        """Return what the package managers were asked for."""
        return self._said.read_text().splitlines() if self._said.exists() else []

    def open(self, init: str = "") -> Editor:
        """Start Neovim on a file of the project."""
        return Editor(
            self._neovim,
            self.home,
            init=NOTIFICATIONS + init,
            files=(self.project / "a.py",),
            cwd=self.project,
            env={"PATH": f"{self._programs}:/usr/bin:/bin"},
            plugin=False,
        )


@pytest.fixture
def machine(neovim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in [name for name in os.environ if name.startswith("LCURSOR_")]:
        if name not in ("LCURSOR_MODELS", "LCURSOR_NEOVIM"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LCURSOR_CUDA", "0")  # the key of the engine names what it was built for
    return Machine(neovim, tmp_path / "home")


def test_the_first_insert_ends_in_one_notification(machine: Machine) -> None:
    with machine.open() as editor:
        editor.keys("o")
        editor.type("return a + b")
        editor.keys("<Esc>")
        editor.wait_lua("return #notes > 0")
        editor.keys("o")
        editor.type("print(add(1, 2))")
        editor.keys("<Esc>")
        editor.wait_lua("return vim.fn.getline('.') == 'print(add(1, 2))'")
        (note,) = editor.lua("return notes")
        assert "there is no environment" in note
        assert "Run :LCursor install" in note
        assert editor.lua("return prompts") == 0
        assert editor.lines() == ["def add(a, b):", "    return a + b", "print(add(1, 2))"]
        assert editor.lua("return vim.fn.mode()") == "n"
    assert machine.said() == []


def test_install_then_the_first_ghost(machine: Machine) -> None:
    with ModelServer() as server:
        server.llama("return a + b")
        models = {"desk": {"url": server.url}}
        completion = {"model": "desk", "debounce_ms": 0}
        index = {"enabled": False}
        settings = json.dumps({"models": models, "completion": completion, "index": index})
        with machine.open(f"vim.g.lcursor = vim.json.decode([==[{settings}]==])\n") as editor:
            editor.keys("A")
            editor.wait_lua("return #notes > 0")
            editor.keys("<Esc>")
            editor.command("LCursor install")
            editor.wait_state("ready", timeout_s=150)
            editor.keys("o    ")
            editor.wait_ghost("return a + b", timeout_s=60)
            editor.keys("<Tab>")
            editor.wait_lua("return vim.trim(vim.api.nvim_get_current_line()) == 'return a + b'")
            assert editor.lua("return prompts") == 0

    venv = machine.home / "data/lcursor/venv"
    stamp = json.loads((venv / "lcursor-stamp.json").read_text())
    assert stamp["parts"]["engine"] == engine.ladder()[0].key
    made, runtime, wheel = [line for line in machine.said() if "--version" not in line]
    assert made.startswith("uv venv")
    assert made.endswith(str(venv))
    assert "--require-hashes" in runtime
    assert wheel.endswith("engine.whl")


def test_a_server_completes_until_the_engine_is_installed(machine: Machine) -> None:
    """The doctor's fact is a stand-in, because the ports it looks at are fixed."""
    with ModelServer() as server:
        server.llama("return a + b")
        fact = {"section": "local_server", "text": "qwen at home", "url": server.url}
        facts = machine.home / "facts"
        facts.write_text(json.dumps({**fact, "api": "llama.cpp", "model": "qwen2.5-coder-0.5b"}))
        completion = {"model": "/nowhere.gguf", "debounce_ms": 0}
        settings = json.dumps({"completion": completion, "index": {"enabled": False}})
        init = f"vim.g.lcursor = vim.json.decode([==[{settings}]==])\n"
        machine.hold.touch()
        with machine.open(init) as editor:
            argv = ["sh", "-c", f"cat {facts}; echo"]
            editor.lua(
                "local argv = ... require('lcursor.host.doctor').argv = function() return argv end",
                argv,
            )
            editor.command("LCursor install")
            editor.wait_state("ready", timeout_s=100)
            assert "qwen at home completes; nothing leaves" in editor.lua("return notes[#notes]")
            editor.keys("o    ")
            editor.wait_ghost("return a + b", timeout_s=60)
            editor.keys("<Esc>")
            text = editor.lua("return vim.g.lcursor_status")
            assert text.startswith("lc via llama-server, installing")
            editor.command("LCursor")
            page = "\n".join(editor.lines())
            assert "until then llama-server on this machine" in page
            editor.command("close")
            machine.hold.unlink()
            editor.wait_state("failed", timeout_s=100)
            asked = len(server.asked)
            assert editor.lua("return require('lcursor.host.environment').interim()") is None
            assert "/nowhere.gguf" in editor.lua(
                "return require('lcursor.host.status').get().detail"
            )
            editor.keys("o    x")
            editor.wait_lua("return vim.api.nvim_get_current_line():find('x$')")
            assert len(server.asked) == asked


def test_an_installation_that_fails_ends_the_use_of_a_server(machine: Machine) -> None:
    with ModelServer() as server, machine.open() as editor:
        server.llama("return a + b")
        fact = {"url": server.url, "api": "ollama", "text": "qwen", "model": "qwen2.5-coder"}
        editor.lua(
            """
            local fact = ...
            local install = require("lcursor.host.environment")
            install.progress = function() return "engine" end
            require("lcursor.host.doctor").follow = function(_, _, on_fact)
              on_fact(vim.tbl_extend("force", fact, { section = "local_server" }))
            end
            install.run = function(on_done, on_packages)
              _G.fail = on_done
              on_packages(...)
            end
            """.replace("on_packages(...)", f"on_packages({json.dumps(sys.executable)})"),
            fact,
        )
        editor.command("LCursor install")
        editor.wait_state("ready")
        editor.lua("_G.fail({ message = 'the compiler crashed' })")
        status = editor.lua("return require('lcursor.host.status').get()")
        assert (status["state"], status["detail"]) == ("absent", "the compiler crashed")
        assert editor.lua("return require('lcursor.config').completion_server()") is None
        assert editor.lua("return require('lcursor.host').info().job") is None
