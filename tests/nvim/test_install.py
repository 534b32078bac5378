"""The editor's side of the set-up: which environment is whole, the notification, the progress."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from lcursor.installer.engine import cpu_flags

ROOT = Path(__file__).resolve().parents[2]
LOCK = hashlib.sha256((ROOT / "requirements.lock").read_bytes()).hexdigest()


@pytest.fixture
def ask(neovim: Path, tmp_path: Path) -> Any:
    """Run Lua in a Neovim and return what it returns."""
    root = tmp_path / "plugin"
    shutil.copytree(ROOT / "lua", root / "lua")
    (root / "lcursor").mkdir()
    (root / "requirements.lock").write_bytes((ROOT / "requirements.lock").read_bytes())

    def run(code: str, path: str = "/usr/bin:/bin", script: str = "") -> Any:
        (root / "lcursor" / "install.py").write_text(textwrap.dedent(script))
        (tmp_path / "ask.lua").write_text(
            f"vim.opt.rtp:prepend({str(root)!r})\n"
            "local install = require('lcursor.host.environment')\n"
            "local said = {}\n"
            "vim.notify = function(text) table.insert(said, text) end\n"
            "local result = (function()\n" + textwrap.dedent(code) + "\nend)()\n"
            "io.stdout:write('\\n=' .. vim.json.encode(result))\n"
        )
        done = subprocess.run(
            [str(neovim), "--clean", "--headless", "-l", str(tmp_path / "ask.lua")],
            env={"PATH": path, "HOME": str(tmp_path), "LCURSOR_DATA": str(tmp_path / "data")},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert "\n=" in done.stdout, done.stderr
        return json.loads(done.stdout.rpartition("\n=")[2])

    return run


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Where a user's environment is, with something executable in it."""
    python = tmp_path / "data" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return tmp_path / "data" / "venv"


NEEDED = (
    "local needed, why = install.is_needed(); return { needed, why or '', install.python() or '' }"
)


def stamp(venv: Path, **parts: str) -> dict[str, Any]:
    """Write a stamp and return it."""
    data = {"format": 1, "python": "3.11", "cpu": cpu_flags(), "parts": parts}
    (venv / "lcursor-stamp.json").write_text(json.dumps(data))
    return data


def test_a_whole_environment_is_used(ask: Any, venv: Path) -> None:
    stamp(venv, runtime=LOCK, engine="key")
    assert ask(NEEDED) == [False, "", str(venv / "bin" / "python")]


def test_no_environment_at_all(ask: Any, tmp_path: Path) -> None:
    assert ask(NEEDED) == [True, f"there is no environment in {tmp_path}/data/venv", ""]


@pytest.mark.parametrize(
    "text", [None, "", "[1]", "null", '{"format": 1}', '{"format": 1, "parts": 0}']
)
def test_a_half_installed_environment_is_not_used(ask: Any, venv: Path, text: str | None) -> None:
    if text is not None:
        (venv / "lcursor-stamp.json").write_text(text)
    needed, why, python = ask(NEEDED)
    assert (needed, python) == (True, "")
    assert why.endswith("is incomplete")


def test_an_environment_without_the_engine_is_not_used(ask: Any, venv: Path) -> None:
    stamp(venv, runtime=LOCK)
    assert ask(NEEDED)[0] is True


def test_an_environment_of_another_lock_is_not_used(ask: Any, venv: Path) -> None:
    stamp(venv, runtime="0" * 64, engine="key")
    assert ask(NEEDED)[1].endswith("was made for another version of lcursor")


def test_while_the_engine_is_compiled_its_environment_is_used(ask: Any, venv: Path) -> None:
    stamp(venv, runtime=LOCK)
    code = "install.set_interim('/venv/python', 'Ollama') "
    code += "local one = { install.python(), install.interim() } install.set_interim(nil) "
    assert ask(f"{code} return {{ one, install.python() or '' }}") == [
        ["/venv/python", "Ollama"],
        "",
    ]


def test_an_environment_for_another_cpu_is_not_used(ask: Any, venv: Path) -> None:
    data = stamp(venv, runtime=LOCK, engine="key")
    data["cpu"].append("avx1024")
    (venv / "lcursor-stamp.json").write_text(json.dumps(data))
    assert ask(NEEDED)[1].endswith("was compiled for another CPU")


def test_the_setting_wins(ask: Any) -> None:
    code = """
        vim.g.lcursor = { python = "~/my/python" }
        return { install.is_needed(), install.python() }
    """
    needed, python = ask(code)
    assert needed is False
    assert python.endswith("/my/python")


RUN = """
    local results, states = {}, {}
    local status = require("lcursor.host.status")
    local set = status.set
    status.set = function(state, detail, at)
      table.insert(states, { state, detail })
      set(state, detail, at)
    end
    install.run(function(err) table.insert(results, err or "fine") end)
    install.run(function(err) table.insert(results, err or "fine") end)
    vim.wait(10000, function() return #results == 2 end, 5)
    return { results = results, states = states, said = said, final = status.get().state }
"""


def test_the_set_up_shows_its_progress_and_informs_all_who_wait(ask: Any) -> None:
    script = """
        print('{"step": "engine", "fraction": 0.25, "text": "compiling", "elapsed_s": 61}')
        print('{"step": "done", "fraction": 1, "text": "ready", "hint": ""}')
    """
    out = ask(RUN, script=script)
    assert out["results"] == ["fine", "fine"]
    assert ["installing", "engine: 25% compiling (61 s)"] in out["states"]
    assert out["final"] == "stopped"


ECHO = """
    import json, sys
    words = sys.argv[1:]
    print(json.dumps({"step": "done", "fraction": 1, "text": "", "hint": " ".join(words)}))
"""


@pytest.mark.parametrize(
    ("settings", "fetched"),
    [
        ("{}", "--model qwen2.5-coder-0.5b --embedder minilm-l6-v2-int8"),
        ("{ models = { x = {} }, completion = { model = 'x' } }", "--embedder minilm-l6-v2-int8"),
        ("{ completion = { model = '~/my.gguf' }, index = { enabled = false } }", ""),
        ("{ index = { embedder = '' } }", "--model qwen2.5-coder-0.5b"),
    ],
)
def test_it_fetches_the_models_that_the_settings_name(
    ask: Any, settings: str, fetched: str
) -> None:
    out = ask(f"vim.g.lcursor = {settings}\n{RUN}", script=ECHO)
    assert out["results"] == ["fine", "fine"]
    [told] = [text for text in out["said"] if "--venv" in text]
    assert told.partition("--verify")[2].partition("--progress")[0].strip() == fetched


def test_a_failed_set_up_says_what_to_do_once(ask: Any) -> None:
    script = """
        print('{"step": "failed", "text": "the disk is full", "hint": "Free some"}')
        raise SystemExit(1)
    """
    out = ask(RUN, script=script)
    assert [error["message"] for error in out["results"]] == ["the disk is full"] * 2
    assert [text for text in out["said"] if "disk" in text] == [
        "lcursor: the disk is full. Free some"
    ]


def test_a_set_up_that_crashes_leaves_a_command_to_run(ask: Any) -> None:
    out = ask(RUN, script="raise SystemExit(7)")
    assert "exit code 7" in out["results"][0]["message"]
    assert "install.py" in out["results"][0]["hint"]


def test_a_machine_without_a_new_enough_python_is_reported(ask: Any, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o755)
    out = ask(RUN, path=str(folder))
    assert "no Python 3.10 or newer" in out["results"][0]["message"]
    assert "apt install python3" in out["results"][0]["hint"]


@pytest.mark.parametrize("state", ["loading_model", "ready"])
@pytest.mark.parametrize("step", ["failed", "done"])
def test_a_host_that_runs_keeps_its_state(ask: Any, state: str, step: str) -> None:
    script = f"""
        print('{{"step": "engine", "fraction": 0.25, "text": "compiling", "elapsed_s": 61}}')
        print('{{"step": "{step}", "fraction": 1, "text": "", "hint": ""}}')
        raise SystemExit({int(step == "failed")})
    """
    code = f"""
    local status, texts = require("lcursor.host.status"), {{}}
    status.set("{state}", "a model")
    status.listen(function() texts[vim.g.lcursor_status] = true end)
    {RUN.replace("return {", "return { texts = vim.tbl_keys(texts), now = vim.g.lcursor_status,")}
    """
    out = ask(code, script=script)
    assert (out["final"], out["states"]) == (state, [])
    shown = "lc" if state == "ready" else "lc: loading"
    assert f"{shown} installing 25%" in out["texts"]
    assert out["now"] == shown


SUGGEST = """
local select = 0
vim.ui.select = function() select = select + 1 end
install.suggest()
install.suggest()
vim.wait(5000, function() return #said > 0 end, 5)
return { said, select }
"""
NOTHING_SAID = """
install.suggest()
vim.schedule(function() table.insert(said, "later") end)
vim.wait(5000, function() return #said > 0 end, 5)
return said
"""


def test_the_installation_is_suggested_once_a_day(ask: Any, tmp_path: Path) -> None:
    said, prompts = ask(SUGGEST)
    assert said == [
        f"lcursor: not set up: there is no environment in {tmp_path}/data/venv. "
        "Run :LCursor install"
    ]
    assert prompts == 0
    assert ask(NOTHING_SAID) == ["later"], "in another Neovim on the same day"

    [state] = tmp_path.rglob("install-suggested")
    yesterday = state.stat().st_mtime - 25 * 60 * 60
    os.utime(state, (yesterday, yesterday))
    assert ask(SUGGEST) == [said, 0]


def test_an_installation_that_is_lost_is_suggested_again(ask: Any) -> None:
    assert ask(NOTHING_SAID)[0] != "later"
    script = 'print(\'{"step": "done", "text": "", "fraction": 1}\')'
    assert ask(RUN, script=script)["results"] == ["fine", "fine"]
    assert ask(NOTHING_SAID)[0] != "later"


def test_the_first_insert_without_an_environment_is_not_disturbed(
    neovim: Path, tmp_path: Path
) -> None:
    """No prompt takes what is typed at that moment."""
    init = 'require("lcursor.host.environment").python = function() end\nvim.o.swapfile = false\n'
    with Editor(neovim, tmp_path, init=init, files=("a.py",)) as editor:
        editor.keys("iimport os<CR>1")
        said = editor.wait_lua(
            "local all = vim.fn.execute('messages') return all:find('install', 1, true) and all"
        )
        editor.keys("2")
        editor.wait_lua("return vim.api.nvim_get_current_line() == '12'")
        assert editor.lines() == ["import os", "12"]
        assert editor.client.request("nvim_get_mode") == {"mode": "i", "blocking": False}
        assert said.strip().endswith("Run :LCursor install")
