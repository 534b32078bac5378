"""The index feeds completion: real Neovim, host and worker, and a file that nobody opened."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.model_server import ModelServer
from tests.waiting import WAIT_S

HARBOURS = '''"""Harbours."""


def moor_vessel(vessel, quay_number, mooring_lines=4):
    """Tie a vessel up."""
    return [tie(vessel, quay_number, line) for line in range(mooring_lines)]
'''
HERE = '"""A trip."""\n\n\ndef arrive(vessel):\n    moor_vessel(\n'
HEAD = "def moor_vessel(vessel, quay_number, mooring_lines=4):"
REST_S = 0.5
"""Idle time at first, in which the index is asked; then twice as long."""
IDLE = "return require('lcursor.complete').is_settled()"
INDEX = "local state = require('lcursor.index').states()[1]"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as fake:
        fake.llama("7")
        yield fake


@pytest.fixture
def indexed(neovim: Path, tmp_path: Path, server: ModelServer) -> Iterator[Editor]:
    """A Neovim in a project that is indexed by words."""
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        folder.mkdir()
    (project / "harbours.py").write_text(HARBOURS)
    (project / "trip.py").write_text(HERE)
    settings = {
        "python": sys.executable,
        "index": {"embedder": ""},
        "models": {"desk": {"url": server.url}},
        "completion": {"model": "desk", "files_tokens": 400},
    }
    init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(settings)}]==])\n"
    with Editor(neovim, home, init=init, files=(project / "trip.py",), cwd=project) as editor:
        editor.keys("GA")
        editor.wait_state("ready")
        editor.keys("<Esc>")
        editor.command("LCursor index start")
        editor.wait_lua(f"{INDEX} return state and state.phase == 'ready'", timeout_s=WAIT_S)
        yield editor
        pid = editor.lua(f"{INDEX} return state.pid")
    os.kill(pid, signal.SIGTERM)  # only now, or the host would start another one


def test_a_definition_from_a_file_that_nobody_opened_is_in_the_prompt(
    indexed: Editor, server: ModelServer
) -> None:
    def prompt() -> str:
        """Return the prompt of the last request."""
        prompts = [body["prompt"] for *_, body in server.asked if body and "prompt" in body]
        return prompts[-1] if prompts else ""

    indexed.keys("O    quay = 7")
    rest_s = REST_S
    while HEAD not in (shown := prompt()):
        assert rest_s < WAIT_S, shown
        time.sleep(rest_s)
        indexed.keys("<Esc>a7")
        indexed.wait_lua(IDLE)
        rest_s *= 2
    assert shown.index("harbours.py") < shown.index(HEAD) < shown.index("def arrive")
