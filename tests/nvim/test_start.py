"""`:LCursor`: the start page, in every state of the installation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.nvim.test_index import STATE

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]
Fact = dict[str, Any]

MODEL = "qwen2.5-coder-0.5b"
BETTER = "qwen2.5-coder-1.5b"
WHY = "needs 0.9 GiB; 2 physical cores: a larger one would not keep up with typing"
PULL = "Download it: python -m lcursor models pull "
READY: dict[str, Fact] = {
    "python": {"text": "3.12.3", "version": "3.12.3"},
    "hardware": {
        "text": "no GPU found; 16 GiB RAM; 2 physical cores",
        "gpu": None,
        "recommended": {"completion": {"model": MODEL, "why": WHY}, "chat": {"model": BETTER}},
    },
    "model": {"text": f"{MODEL}: /models/x.gguf (469 MiB)", "name": MODEL},
    "index": {
        "text": "1 project",
        "embedder": "minilm-l6-v2-int8",
        "is_embedder_here": True,
        "is_begun": True,
    },
    "chat": {"text": "llama-server serves it", "program": "llama-server", "model": BETTER},
    "engine": {"text": "the native build", "step": "native", "has_gpu": False},
    "end": {"text": ""},
}
GPU = "NVIDIA GeForce RTX 4090, 24 GiB; 64 GiB RAM; 16 physical cores"
MISSING: dict[str, Fact] = {
    **READY,
    "hardware": {
        "text": GPU,
        "gpu": "NVIDIA GeForce RTX 4090",
        "recommended": {"completion": {"model": BETTER, "why": "needs 1.9 GiB"}},
    },
    "model": {
        "text": MODEL,
        "problem": {
            "code": "model_missing",
            "level": "error",
            "message": f"the model {MODEL} is not on this machine",
            "hint": PULL + MODEL,
        },
    },
    "index": {**READY["index"], "is_begun": False, "is_embedder_here": False, "root": "/src/shop"},
    "chat": {"text": "no local server is possible", "program": None, "pull": BETTER},
    "engine": {
        **READY["engine"],
        "problem": {
            "code": "engine_failed",
            "level": "warn",
            "message": "There is an NVIDIA GPU, but this llama.cpp was built without CUDA",
            "hint": "Install the CUDA toolkit",
        },
    },
}
STUBS = """
require("lcursor.host").version = function() return "1.2.3" end
local install = require("lcursor.host.environment")
install.python = function() return vim.env.HOME .. "/.local/share/lcursor/venv/bin/python" end
require("lcursor.host.doctor").argv = function() return vim.json.decode([==[%s]==]) end
"""
ABSENT = """
install.python = function() end
install.venv = function() return "/no/venv" end
install.is_needed = function() return true, "there is no environment in ~/.local/share/lcursor" end
"""
PROGRESS = "engine: 34% compiling llama.cpp, 41 of 120 (62 s)"
INSTALLING = f"install.progress = function() return '{PROGRESS}' end\n"
INTERIM = INSTALLING + "install.interim = function() return 'Ollama' end\n"
CHECKED = """
local page = table.concat(vim.fn.getline(1, "$"))
return not page:find("checking") and not page:find("… model")
"""


def facts_file(folder: Path, facts: dict[str, Fact]) -> Path:
    """Write what the doctor prints."""
    rows = [{"section": name, **fact} for name, fact in facts.items()]
    path = folder / "facts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def opener(editor: Start, tmp_path: Path) -> Callable[..., Pilot]:
    """Open the start page with facts of the doctor, or another command in its place."""

    def open_page(
        facts: dict[str, Fact] | None = None,
        *,
        init: str = "",
        argv: list[str] | None = None,
        wait: bool = True,
        **more: Any,
    ) -> Pilot:
        argv = argv or ["cat", str(facts_file(tmp_path, READY if facts is None else facts))]
        nvim = editor(init=NOTES + STUBS % json.dumps(argv) + init, **more)
        nvim.command("LCursor")
        if wait:
            nvim.wait_lua(CHECKED)
        return nvim

    return open_page


def screen(nvim: Pilot) -> str:
    """Return the screen without rows that are empty."""
    nvim.command("redraw")
    return "\n".join(row for row in nvim.screen.rows() if row not in ("", "~")) + "\n"


def text(nvim: Pilot) -> str:
    """Return the page in one line, with single blanks."""
    return " ".join(" ".join(nvim.lines()).split())


CASES: dict[str, tuple[dict[str, Fact], str, str]] = {
    # name: facts of the doctor, Lua before, Lua after
    "ready": (READY, "", "require('lcursor.host.status').set('ready', '')"),
    "missing": (
        MISSING,
        "",
        "require('lcursor.host.status').set('failed', 'the model is missing')",
    ),
    "absent": ({}, ABSENT, ""),
    "installing": ({}, ABSENT + INSTALLING, "require('lcursor.host.status').set('installing', '')"),
    "interim": (
        {},
        INTERIM,
        "require('lcursor.host.status').set('ready', 'qwen2.5-coder:1.5b (qwen2.5-coder) by '"
        " .. 'ollama at http://127.0.0.1:11434')",
    ),
}


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("name", CASES)
def test_screen(opener: Callable[..., Pilot], golden: Golden, name: str, columns: int) -> None:
    facts, before, after = CASES[name]
    nvim = opener(facts, init=before, columns=columns, lines=30)
    nvim.lua(after)
    nvim.settle()
    nvim.wait_lua(CHECKED)  # a new state is probed
    golden(f"start-{name}-{columns}", screen(nvim))


@pytest.mark.parametrize("columns", [100, 80, 60, 40])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_cut_off(opener: Callable[..., Pilot], name: str, columns: int) -> None:
    nvim = opener(CASES[name][0], init=CASES[name][1], columns=columns, lines=50)
    width = nvim.lua("return vim.api.nvim_win_get_width(0)")
    assert [line for line in nvim.lines() if len(line) > width] == []
    assert nvim.lua("return vim.api.nvim_win_get_height(0)") == len(nvim.lines())


@pytest.mark.parametrize("columns", [80, 60])
def test_it_fits_into_24_lines(opener: Callable[..., Pilot], columns: int) -> None:
    nvim = opener(READY, columns=columns, lines=24)
    assert nvim.lua("return vim.api.nvim_win_get_height(0)") == len(nvim.lines())
    assert "q close" in screen(nvim)


@pytest.mark.parametrize("columns", [60, 40])
def test_its_keys_are_always_visible(opener: Callable[..., Pilot], columns: int) -> None:
    nvim = opener(MISSING, columns=columns, lines=24)
    nvim.lua("require('lcursor.host.status').set('failed', 'the model is missing')")
    nvim.press("G")
    assert "next hunk" in screen(nvim)
    assert "t tutor  g? help  q close" in screen(nvim)
    nvim.press("gg")
    assert "✓ python" in screen(nvim)
    assert "t tutor  g? help  q close" in screen(nvim)


def test_it_names_a_way_to_start_each_feature(opener: Callable[..., Pilot]) -> None:
    shown = text(opener(READY, columns=40))
    for name in ("accept suggestion", ":LCChat", ":LCEdit", ":LCursor agent"):
        assert name in shown


def test_it_opens_while_the_doctor_hangs(opener: Callable[..., Pilot], host: FakeHost) -> None:
    nvim = opener(argv=["sleep", "60"], wait=False)
    assert "checking" in text(nvim)
    assert "accept suggestion" in text(nvim)
    assert not nvim.has_started_host(), "it starts no host"
    job = nvim.lua("return vim.fn.systemlist({'pgrep', '-P', vim.uv.os_getpid(), 'sleep'})")
    nvim.press("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    gone = "return vim.fn.system({'ps', '-o', 'stat=', '-p', ...}):find('^[^Z]') == nil"
    nvim.wait_lua(gone, job[0])


@pytest.mark.parametrize("argv", [["/no/such/python"], ["false"], ["echo", "no JSON"]])
def test_a_doctor_that_cannot_be_asked(opener: Callable[..., Pilot], argv: list[str]) -> None:
    nvim = opener(argv=argv)
    assert "engine not checked" in text(nvim)
    assert notes(nvim) == []


def test_it_follows_the_host_and_the_index(opener: Callable[..., Pilot], host: FakeHost) -> None:
    nvim = opener(MISSING, files={"pyproject.toml": "", "a.py": "x = 1\n"})
    assert "host starts when you enter Insert mode" in text(nvim)
    host.is_polite = False
    nvim.lua("require('lcursor.host').start()")
    host.wait(lambda: host.pids)
    host.greet()
    host.state("loading_model", progress=0.4)
    nvim.wait_lua("return table.concat(vim.fn.getline(1, '$')):find('loading the model 40%%')")
    host.state("ready")
    host.wait(lambda: host.messages("server.ask"))
    answer = {"id": host.messages("server.ask")[-1]["id"], "state": "running", "lines": []}
    host.send("server.status", {**answer, "url": "", "pid": 1, "model": "", "log": ""})
    root = nvim.lua("return vim.uv.fs_realpath('.')")
    host.send("index.state", {**STATE, "root": root, "phase": "reading", "done": 3, "total": 9})
    nvim.settle()
    assert "host ready" in text(nvim)
    assert "index 3 of 9 files read" in text(nvim)


def test_the_key_of_a_line_fixes_it(opener: Callable[..., Pilot], host: FakeHost) -> None:
    nvim = opener(MISSING, init="_G.pulled = {}\n")
    nvim.lua(
        "require('lcursor.host.environment').pull = function(_, name, on_line, on_done)"
        " table.insert(_G.pulled, name) on_line(name .. ': 1 of 4 (25 %)') _G.done = on_done end"
    )
    nvim.press("m")
    assert nvim.lua("return _G.pulled") == [MODEL]
    assert "model downloading (25 %)" in text(nvim)
    nvim.press("m")
    assert nvim.lua("return #_G.pulled") == 1, "the key is gone while it is downloaded"
    nvim.lua("_G.done('the disk is full')")
    nvim.settle()
    assert notes(nvim)[-1][0] == f"lcursor: {MODEL} was not downloaded: the disk is full"
    nvim.press("x")
    host.wait(lambda: host.messages("index.begin"))
    assert host.messages("index.begin")[0]["path"].endswith("/project/a.py")
    row = next(i for i, line in enumerate(nvim.lines(), 1) if line.startswith("  ! embedder"))
    nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row)
    nvim.press("<CR>")
    assert nvim.lua("return _G.pulled") == [MODEL, "minilm-l6-v2-int8"]


CPU = READY["hardware"]["text"]
BEST = f"{BETTER}-q4_0"
WORDS = "needs 1.5 GiB; reads about 90 and writes 15 tokens per second here"
SLOW: dict[str, Fact] = {
    **READY,
    "hardware": {
        "text": CPU,
        "recommended": {
            "completion": {"model": BEST, "why": WORDS, "placement": "on the CPU"},
            "is_measured": True,
        },
    },
}


def test_a_better_model_is_offered_and_used(opener: Callable[..., Pilot], host: FakeHost) -> None:
    nvim = opener(SLOW)
    nvim.lua("require('lcursor.host').start()")
    host.wait(lambda: host.pids)
    nvim.wait_lua("return require('lcursor.host.status').get().state == 'ready'")
    assert f"✓ model {MODEL}: the default; better here: {BEST} ({WORDS}) m download" in text(nvim)
    nvim.lua(
        "require('lcursor.host.environment').pull = function(_, name, on_line, on_done)"
        " _G.pulled, _G.done = name, on_done end"
    )
    nvim.press("m")
    assert nvim.lua("return _G.pulled") == BEST
    pids = len(host.pids)
    nvim.lua("_G.done()")
    host.wait(lambda: len(host.pids) > pids)
    assert notes(nvim)[-1][0] == f"lcursor: {BEST} is downloaded"


def test_a_model_of_the_user_stays(opener: Callable[..., Pilot]) -> None:
    nvim = opener(SLOW, config={"completion": {"model": MODEL}})
    shown = text(nvim)
    assert f"{MODEL}: set in completion.model; recommended here: {BEST} ({WORDS})" in shown
    assert "m download" not in shown


def test_it_waits_for_the_speed_of_this_machine(
    opener: Callable[..., Pilot], host: FakeHost, tmp_path: Path
) -> None:
    facts: dict[str, Fact] = json.loads(json.dumps(READY))
    facts["hardware"]["recommended"]["is_measured"] = False
    nvim = opener(facts)
    nvim.lua("package.loaded['lcursor.ui.notify'].later = function(_, fn) _G.later = fn end")
    nvim.lua("require('lcursor.host').start()")
    nvim.wait_lua("return _G.later ~= nil")
    facts_file(tmp_path, SLOW)
    nvim.lua("_G.later()")
    nvim.wait_lua("return table.concat(vim.fn.getline(1, '$')):find('better here') ~= nil")


def test_it_shows_what_was_installed_while_the_host_starts(opener: Callable[..., Pilot]) -> None:
    nvim = opener(READY, init=f"_G.python = install.python {ABSENT}{INSTALLING}")
    nvim.lua("require('lcursor.host.status').set('installing', '')")
    nvim.wait_lua("return table.concat(vim.fn.getline(1, '$')):find('… install')")
    nvim.lua(
        "local install = require('lcursor.host.environment')"
        " local status = require('lcursor.host.status')"
        " install.python, install.progress = _G.python, function() end"
        " install.is_needed = function() return false end"
        " status.set('stopped', '') status.set('starting', '')"
    )
    nvim.wait_lua("return table.concat(vim.fn.getline(1, '$')):find('✓ python')")
    assert "host starting" in text(nvim)


def test_it_installs(opener: Callable[..., Pilot]) -> None:
    nvim = opener({}, init=ABSENT)
    assert nvim.lua("return vim.api.nvim_get_current_line()").startswith("  ! install")
    nvim.lua("require('lcursor.host.environment').run = function() _G.ran = true end")
    nvim.press("<CR>")
    assert nvim.lua("return _G.ran")


def test_servers_of_the_user(opener: Callable[..., Pilot]) -> None:
    where = "big: qwen3 at https://gpu.example/v1; what you write leaves this machine"
    server = {
        "code": "server_unreachable",
        "level": "error",
        "message": "no answer",
        "hint": "Run it",
    }
    facts = {key: fact for key, fact in READY.items() if key != "model"}
    facts["endpoint"] = {"text": "qwen2.5-coder-1.5b by llama.cpp at http://127.0.0.1:8012"}
    facts["chat_model"] = {"text": where, "is_local": False}
    models = {"fast": {"url": "http://127.0.0.1:8012"}, "big": {"url": "https://gpu.example/v1"}}
    config = {"models": models, "completion": {"model": "fast"}, "chat": {"model": "big"}}
    nvim = opener(facts, config=config)
    assert "model qwen2.5-coder-1.5b by llama.cpp at http://127.0.0.1:8012" in text(nvim)
    assert f"chat {where}" in text(nvim)
    facts["endpoint"]["problem"] = server
    nvim = opener(facts, config=config)
    assert "! model no answer. Run it" in text(nvim)


def test_the_page_says_that_everything_is_switched_off(opener: Callable[..., Pilot]) -> None:
    nvim = opener(READY, config={"enabled": False})
    assert "! enabled everything is switched off by the option enabled" in text(nvim)
    assert "switch on" not in text(nvim)
    for name in ("host", "index", "chat"):
        assert f" {name} off; enabled = true turns it on" in text(nvim)
    assert "✓ index" not in text(nvim)


def test_index_and_chat_are_off(opener: Callable[..., Pilot], golden: Golden) -> None:
    config: dict[str, Any] = {"index": {"enabled": False}, "chat": {"server": "off"}}
    nvim = opener(READY, config=config, columns=60, lines=30)
    assert " index off; index.enabled = true turns it on" in text(nvim)
    assert ' chat off; chat.server = "auto" turns it on' in text(nvim)
    golden("start-off-60", screen(nvim))
    models = {"big": {"url": "http://127.0.0.1:8012"}}
    config["chat"]["model"] = "big"
    nvim = opener(READY, config={**config, "models": models})
    assert "chat.server" not in text(nvim)


def test_what_is_switched_off_is_switched_on(opener: Callable[..., Pilot]) -> None:
    nvim = opener(READY, config={"completion": {"enabled": False}})
    assert "enabled suggestions are switched off" in text(nvim)
    nvim.press("o")
    assert "switched off" not in text(nvim)
    nvim.press("q")
    nvim.lua("vim.b.lcursor_enabled = false")
    nvim.command("LCursor")
    assert "suggestions are switched off in this buffer" in text(nvim)
    nvim.press("o")
    assert "switched off" not in text(nvim)


def test_the_keys_are_those_of_the_user(opener: Callable[..., Pilot]) -> None:
    init = 'vim.keymap.set("n", "<C-l>", "<Plug>(lcursor-hunk-accept)")\n'
    keymap = {"accept": "<C-y>"}
    config = {"completion": {"keymap": keymap}, "edit": {"keymap": {"next": False}}}
    nvim = opener(READY, init=init, config=config)
    lines = [line.split() for line in nvim.lines()]
    assert ["<C-y>", "accept", "suggestion", "at", "ghost", "text"] in lines
    assert ["<C-L>", "accept", "hunk", "at", "a", "hunk"] in lines
    assert ["-", "next", "hunk", "no", "key", "is", "mapped"] in lines


def test_where_it_leads(opener: Callable[..., Pilot]) -> None:
    nvim = opener(READY)
    nvim.command("wincmd p")
    nvim.command("LCursor")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2, "it is open once"
    nvim.press("t")
    assert nvim.lua("return vim.fn.expand('%:t')") == "practice.py"
    nvim.command("LCursor start")
    nvim.press("h")
    assert nvim.lua("return vim.bo.filetype") == "checkhealth"
    nvim.command("LCursor")
    nvim.lua("vim.cmd = function(text) _G.command = text end")  # no tags were made of the help
    nvim.press("g?")
    assert nvim.lua("return _G.command") == "help lcursor-quickstart"


def test_it_is_redrawn_when_the_screen_is_resized(opener: Callable[..., Pilot]) -> None:
    nvim = opener(READY)
    nvim.client.request("nvim_ui_try_resize", 60, 30)
    nvim.wait_lua("return vim.api.nvim_win_get_width(0) == 56")
    assert [line for line in nvim.lines() if len(line) > 56] == []
