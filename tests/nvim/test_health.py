"""`:checkhealth lcursor` in every kind of ruin: the finding, and the command that mends it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import ROOT, Editor
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

PYTHON = os.environ.get("LCURSOR_TEST_PYTHON") or sys.executable
COULD_NOT = "Not checked: Python did not get that far"


def gguf(tokens: tuple[str, ...] = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")) -> bytes:
    """Make the smallest file that has a model in it."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = text("general.architecture") + struct.pack("<I", 8) + text("qwen2")
    pairs += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(tokens))
    pairs += b"".join(map(text, tokens))
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + pairs
    head += text("weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    return head + bytes(-len(head) % 32) + bytes(32)


class Report:
    """The buffer that `:checkhealth` leaves."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)

    def section(self, title: str) -> str:
        """Return the lines under a title."""
        _, _, rest = self.text.partition(f"lcursor: {title} ~\n")
        assert rest, f"no section {title} in\n{self.text}"
        return rest.partition("\nlcursor: ")[0]

    def finding(self, words: str) -> str:
        """Return the one finding with these words, its advice included."""
        marks = [i for i, line in enumerate(self.lines) if line.startswith("- ")]
        ends = [*marks[1:], len(self.lines)]
        blocks = ["\n".join(self.lines[i:j]) for i, j in zip(marks, ends, strict=True)]
        found = [block for block in blocks if words in block]
        assert len(found) == 1, f"{len(found)} findings with {words!r} in\n{self.text}"
        return found[0].partition("\n\n")[0]

    def error(self, words: str) -> str:
        """Return the advice of the error with these words."""
        return self._advice(words, "ERROR")

    def warning(self, words: str) -> str:
        """Return the advice of the warning with these words."""
        return self._advice(words, "WARNING")

    def _advice(self, words: str, level: str) -> str:
        found, _, advice = self.finding(words).partition("- ADVICE:\n")
        assert f" {level} " in found.splitlines()[0], found
        assert advice, f"no advice in {found!r}"
        return advice

    @property
    def problems(self) -> list[str]:
        """All errors and warnings."""
        return [line for line in self.lines if " ERROR " in line or " WARNING " in line]


def report(editor: Editor) -> Report:
    """Run the health check and read what it says."""
    editor.command("checkhealth lcursor")
    lines = editor.lines()
    assert not [line for line in lines if "Failed to run" in line or "This check failed" in line]
    return Report(lines)


@pytest.fixture
def start(neovim: Path, tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    """Start Neovims whose plugin never began to work: `start(model=…, config=…, init=…)`.

    The interpreter is the setting python, so that nothing depends on what this machine has.
    """
    with ExitStack() as stack:

        def begin(
            python: Path | str = PYTHON,
            *,
            model: Path | str | None = None,
            config: dict[str, Any] | None = None,
            init: str = "",
            **more: Any,
        ) -> Editor:
            home = tmp_path / "home"
            home.mkdir()
            whole = tmp_path / "whole.gguf"
            whole.write_bytes(gguf())
            settings = {"python": str(python), "completion": {"model": str(model or whole)}}
            settings |= config or {}
            given = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n"
            return stack.enter_context(Editor(neovim, home, init=given + init, **more))

        yield begin


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Where the users' environment belongs; there is only a stamp that says that it is whole."""
    lock = (ROOT / "requirements.lock").read_bytes()
    parts = {"runtime": hashlib.sha256(lock).hexdigest(), "engine": "x"}
    path = tmp_path / "data" / "venv"
    (path / "bin").mkdir(parents=True)
    stamp = {"format": 1, "lcursor": "0.1.0", "python": "3", "cpu": [], "parts": parts}
    (path / "lcursor-stamp.json").write_text(json.dumps(stamp))
    return path


@pytest.fixture
def start_in(start: Callable[..., Editor], tmp_path: Path) -> Callable[..., Editor]:
    """Start Neovims that look for the environment, with a checkout that has none of its own."""

    def begin(**more: Any) -> Editor:
        checkout = tmp_path / "checkout"
        shutil.copytree(ROOT / "lua", checkout / "lua")
        for name in ("plugin", "lcursor", "requirements.lock"):
            (checkout / name).symlink_to(ROOT / name)
        init = f"vim.opt.runtimepath:append({json.dumps(str(checkout))})\n"
        environment = {"LCURSOR_DATA": str(tmp_path / "data")}
        return start("", init=init, plugin=False, env=environment, **more)

    return begin


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real environment without any package."""
    path = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(path)], check=True)
    return path


@pytest.fixture
def shadowed(bare: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Make an environment that has all packages but one, which is broken."""

    def make(module: str, source: str) -> Path:
        code = "import sysconfig; print(sysconfig.get_path('platlib'))"
        asked = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True)
        venv = tmp_path / "venv"
        shutil.copytree(bare, venv, symlinks=True)
        [packages] = venv.glob("lib/python*/site-packages")
        (packages / "all.pth").write_text(asked.stdout)
        (packages / f"{module}.py").write_text(source)
        return venv / "bin" / "python"

    return make


def script(folder: Path, text: str) -> Path:
    """Write a program that stands where an interpreter should be."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_all_is_well(start: Callable[..., Editor]) -> None:
    found = report(start())
    assert found.problems == []
    assert "OK Neovim 0." in found.section("Neovim")
    python = found.section("Python environment")
    for name in ("pynvim", "msgpack", "numpy", "typer", "rich", "huggingface_hub"):
        assert f"{name} " in python
    assert "llama-cpp-python 0.3" in python
    assert "State: stopped" in found.section("Host")
    assert "whole.gguf" in found.section("Model")
    assert "qwen2" in found.section("Model")
    assert "physical core" in found.section("Device")
    assert "GPU backend: CPU : " in found.section("Device")
    assert "lcursor.log (not written yet)" in found.section("Log")


def test_the_check_starts_nothing(start: Callable[..., Editor]) -> None:
    editor = start()
    report(editor)
    assert editor.lua("return require('lcursor.host.status').get().state") == "stopped"
    assert editor.lua("return require('lcursor.host').info().job") is None
    assert not (editor.home / "state/nvim/lcursor.log").exists()


def test_no_environment_at_all(start_in: Callable[..., Editor], tmp_path: Path) -> None:
    found = report(start_in())
    advice = found.error(f"There is no environment in {tmp_path}/data/venv")
    assert "Run `:LCursor install`" in advice
    assert COULD_NOT in found.section("Model")
    assert COULD_NOT in found.section("Device")
    assert len(found.problems) == 1


def test_the_interpreter_was_deleted(start_in: Callable[..., Editor], venv: Path) -> None:
    (venv / "bin/python").symlink_to("/no/such/python3")
    found = report(start_in())
    assert "Run `:LCursor install`" in found.error(f"There is no environment in {venv}")


def test_the_interpreter_may_not_be_run(start_in: Callable[..., Editor], venv: Path) -> None:
    script(venv / "bin", "exit 0").chmod(0o644)
    found = report(start_in())
    assert "Run `:LCursor install`" in found.error(f"There is no environment in {venv}")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parts": {"runtime": "x"}}, "is incomplete"),
        ({"parts": {"runtime": "x", "engine": "x"}}, "was made for another version"),
        ({"cpu": ["avx9"]}, "was compiled for another CPU"),
    ],
)
def test_the_environment_is_not_whole(
    start_in: Callable[..., Editor], venv: Path, bare: Path, change: dict[str, Any], complaint: str
) -> None:
    stamp = json.loads((venv / "lcursor-stamp.json").read_text())
    shutil.copytree(bare, venv, symlinks=True, dirs_exist_ok=True)
    (venv / "lcursor-stamp.json").write_text(json.dumps(stamp | change))
    found = report(start_in())
    assert "Run `:LCursor install`" in found.error(complaint)
    assert ":LCursor install, or make test" in found.error("The package numpy is missing")
    assert "whole.gguf" in found.section("Model")
    assert len(found.problems) == 2


def test_a_package_was_lost_from_a_whole_environment(
    start_in: Callable[..., Editor], venv: Path, bare: Path
) -> None:
    shutil.copytree(bare, venv, symlinks=True, dirs_exist_ok=True)
    found = report(start_in())
    assert "(made by `:LCursor install`)" in found.section("Python environment")
    advice = found.error("The package pynvim is missing")
    assert f"Run rm -rf {venv}, then :LCursor install" in advice


def test_the_users_own_interpreter_is_wrong(start: Callable[..., Editor], tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "python")
    found = report(start(missing))
    assert "(the setting python)" in found.section("Python environment")
    advice = found.error("The interpreter cannot be run")
    assert "Correct the setting python, or remove it and run `:LCursor install`" in advice


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("echo 'no such library: libpython' >&2; exit 127", "exit code 127: no such library"),
        ("echo 'hello, I am a banner'; exit 0", "ended with exit code 0"),
        ("kill -SEGV $$", f"crashed with signal {signal.SIGSEGV.value}"),
        ('printf \'{"section": "version", "major": 3, "minor": 9}\\n\'', "It is Python 3.9; 3.10"),
        ('printf \'{"section": "version", "major": 2, "minor": 7}\\n\'', "It is Python 2.7; 3.10"),
    ],
)
def test_what_runs_is_no_interpreter(
    start_in: Callable[..., Editor], venv: Path, text: str, complaint: str
) -> None:
    script(venv / "bin", text)
    found = report(start_in())
    assert f"Run `rm -rf '{venv}'`, then `:LCursor install`" in found.error(complaint)
    assert COULD_NOT in found.section("Model")


def test_an_interpreter_that_hangs_is_given_up(
    start: Callable[..., Editor], tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    program = script(tmp_path, f"echo $$ > {pid_file}; exec sleep 600")
    editor = start(program)
    editor.lua("require('lcursor.host.doctor').limit_ms = 300")
    assert ":LCursor install" in report(editor).error("gave no answer in 0.3 s")
    pid = int(pid_file.read_text())
    editor.wait_lua("return vim.uv.kill(..., 0) == nil", pid)


def test_no_package_is_there(start: Callable[..., Editor], bare: Path) -> None:
    python = bare / "bin" / "python"
    found = report(start(python))
    advice = found.error("The package llama-cpp-python is missing")
    assert "The package pynvim is missing" in found.finding("The package typer is missing")
    assert ":LCursor install" in advice
    assert f"{python} -m pip install -r {ROOT}/requirements.lock" in advice
    assert "whole.gguf" in found.section("Model")
    assert COULD_NOT in found.section("Device")


def test_one_package_does_not_load(
    start: Callable[..., Editor], shadowed: Callable[[str, str], Path]
) -> None:
    python = shadowed("rich", "raise RuntimeError('half installed')")
    found = report(start(python))
    assert len(found.problems) == 1
    advice = found.error("The package rich does not load (RuntimeError: half installed)")
    assert ":LCursor install" in advice
    assert "pynvim" in found.finding("OK Packages: ")


def test_the_engine_crashes_the_process(
    start: Callable[..., Editor], shadowed: Callable[[str, str], Path]
) -> None:
    python = shadowed("llama_cpp", "import os, signal\nos.kill(os.getpid(), signal.SIGILL)")
    found = report(start(python))
    signal_number = signal.SIGILL.value
    words = f"The interpreter crashed with signal {signal_number} while it loaded llama-cpp-python"
    assert ":LCursor install" in found.error(words)
    assert "whole.gguf" in found.section("Model")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "There is no model file"),
        (gguf()[:-8], "is truncated"),
        (gguf()[:50], "is a broken GGUF file"),
        (b"<html>not found</html>", "is not a GGUF file"),
        (b"", "is empty"),
        (gguf(("a", "b", "c")), "no fill-in-the-middle tokens"),
    ],
    ids=["missing", "truncated", "broken", "html", "empty", "no-fim"],
)
def test_the_model_file_is_wrong(
    start: Callable[..., Editor], tmp_path: Path, data: bytes | None, complaint: str
) -> None:
    path = tmp_path / "model.gguf"
    if data is not None:
        path.write_bytes(data)
    found = report(start(model=path))
    advice = found.error(complaint)
    assert f"{PYTHON} -m lcursor models " in advice
    assert len(found.problems) == 1


def test_a_named_model_is_not_here(start: Callable[..., Editor], tmp_path: Path) -> None:
    environment = {"LCURSOR_MODELS": str(tmp_path / "models")}
    found = report(start(model="qwen2.5-coder-0.5b", env=environment))
    advice = found.error("The model qwen2.5-coder-0.5b is not on this machine")
    assert f"cd {ROOT} && {PYTHON} -m lcursor models pull qwen2.5-coder-0.5b" in advice


def test_nobody_knows_the_model(start: Callable[..., Editor]) -> None:
    advice = report(start(model="qwen2.5-coder-0.6b")).error("No model is called")
    assert "Nearest: qwen2.5-coder-0.5b" in advice
    assert f"{PYTHON} -m lcursor models list" in advice


def test_wrong_settings(start: Callable[..., Editor]) -> None:
    config = {"log_level": "loud", "completion": {"keymap": {"acept": "<Tab>"}}}
    found = report(start(config=config))
    assert ":help |lcursor-config|" in found.warning('found "loud"')
    assert ":help |lcursor-config|" in found.warning('did you mean "accept"')
    assert len(found.problems) == 2


def test_settings_that_cannot_be_read(start: Callable[..., Editor]) -> None:
    found = report(start(init="vim.g.lcursor = function() error('boom') end"))
    assert "lcursor-config" in found.warning("vim.g.lcursor failed")
    assert "boom" in found.section("Configuration")
    assert "State: stopped" in found.section("Host")


@pytest.mark.parametrize("off", ["false", "0"])
def test_everything_that_is_switched_off_is_named(
    start: Callable[..., Editor], tmp_path: Path, off: str
) -> None:
    path = tmp_path / "a.py"
    path.write_text("")
    editor = start(config={"enabled": False}, files=(path,))
    editor.lua(f"vim.b.lcursor_enabled = {off}; vim.g.lcursor_enabled = {off}; vim.b.lcursor = 7")
    found = report(editor)
    assert "`enabled = true`" in found.warning("Switched off by the setting enabled")
    assert "`:LCursor enable`" in found.warning("vim.g.lcursor_enabled")
    assert "`:LCursor enable buffer`" in found.warning(f"Switched off in {path}")
    assert "vim.b.lcursor" in found.warning("expected a table, found 7")


def test_the_plugin_file_was_not_sourced(start: Callable[..., Editor]) -> None:
    editor = start(init="vim.o.loadplugins = false")
    editor.lua("vim.opt.runtimepath:append(...)", str(ROOT))
    assert ":runtime plugin/lcursor.lua" in report(editor).warning("was not sourced")


def test_no_key_accepts(start: Callable[..., Editor]) -> None:
    found = report(start(config={"completion": {"keymap": False}}))
    assert "<Plug>(lcursor-accept)" in found.warning("No key accepts a suggestion")
    assert "OK No mapping of yours has a default key" in found.section("Keys")


def test_other_ghosts_are_named(start: Callable[..., Editor], tmp_path: Path) -> None:
    plugin = tmp_path / "llama.vim/plugin/llama.vim"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("let g:sourced = 1\n")
    editor = start()
    editor.lua(
        """
        vim.cmd.source(...)
        package.loaded["copilot"] = {}
        package.loaded["blink.cmp"] = {}
        package.loaded["blink.cmp.config"] = { completion = { ghost_text = { enabled = true } } }
        package.loaded["cmp"] = { get_config = function() return { experimental = {} } end }
        """,
        str(plugin),
    )
    found = report(editor)
    assert "`:LlamaDisable`" in found.warning("llama.vim draws ghost text in the same place")
    assert "`:Copilot disable`" in found.warning("copilot.lua draws ghost text in the same place")
    assert "ghost_text = { enabled = false }" in found.warning("blink.cmp draws ghost text")
    assert "OK nvim-cmp: suggestions are hidden" in found.section("Integrations")
    assert "copilot.vim" not in found.section("Integrations")


def test_a_log_that_cannot_be_written(start: Callable[..., Editor]) -> None:
    editor = start()
    if os.geteuid() == 0:  # root may write everywhere, so the question itself is answered for it
        editor.lua("vim.uv.fs_access = function() return false end")
    log = editor.home / "state/nvim/lcursor.log"
    log.write_text("old line\n")
    log.chmod(0o400)
    assert f"chmod u+w '{log}'" in report(editor).warning("cannot be written")


def test_a_running_host(editor: Callable[..., Pilot], host: FakeHost) -> None:
    nvim = editor({"a.py": "def f(x):\n"})
    nvim.offer("return x", "o")
    nvim.lua("require('lcursor.health.features').server_ms = 100")
    found = report(nvim)
    process = found.section("Host")
    assert "State: ready" in process
    assert f"Process {host.pids[-1]}, started with " in process
    assert ":LCursor restart" in found.warning("The process is of version fake, the plugin of")
    completion = found.section("Completion")
    assert "a.py: " in completion
    assert "OK Last answer: end, first text after 30 ms, all after 50 ms" in completion
    assert "90 of 100 reused, 10 read, 5 generated" in completion


def test_a_host_that_gave_up(editor: Callable[..., Pilot], host: FakeHost) -> None:
    host.is_polite = False
    nvim = editor({"a.py": ""})
    nvim.keys("i")
    host.wait(lambda: host.messages("hello"))
    host.stderr("ImportError: no module named greatness\n")
    nvim.wait_lua("return #require('lcursor.host').info().stderr > 0")
    error = {"id": 0, "code": "protocol_mismatch", "level": "error", "hint": "Update the plugin"}
    host.send("error", {**error, "message": "the plugin speaks protocol 1, the host 9"})
    nvim.wait_state("failed")
    nvim.lua("require('lcursor.health.features').server_ms = 100")
    found = report(nvim)
    advice = found.error("State: failed: the plugin speaks protocol 1, the host 9")
    assert ":LCursor restart" in advice
    assert ":LCursor log" in advice
    assert "ImportError: no module named greatness" in found.section("Host")


def test_a_server_that_is_away_is_asked_again(editor: Callable[..., Pilot], host: FakeHost) -> None:
    box = {"models": {"box": {"url": "http://127.0.0.1:9", "model": "coder"}}}
    nvim = editor({"a.py": ""}, config={**box, "completion": {"model": "box"}})
    nvim.insert("i")
    host.state("failed", "nothing answers at http://127.0.0.1:9")
    nvim.wait_state("failed")
    nvim.lua("require('lcursor.health.features').server_ms = 100")
    advice = report(nvim).error("State: failed: nothing answers at http://127.0.0.1:9")
    assert "typing asks it again" in advice
    assert ":LCursor restart" not in advice
    nvim.command("LCursor")
    nvim.wait_lua("return vim.fn.search('waits for the server, which typing asks again') > 0")
