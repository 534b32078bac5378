"""The index feeds completion: real Neovim, real worker, real model, a file that nobody opened."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.drive.editor import Editor
from tests.model.test_features import BUFFERS, SETTLED
from tests.waiting import WAIT_S

HARBOURS = '''"""Harbours."""


def moor_vessel(vessel, quay_number, mooring_lines=4):
    """Tie a vessel up."""
    return [tie(vessel, quay_number, line) for line in range(mooring_lines)]
'''
HERE = '"""A trip."""\n\n\ndef arrive(vessel):\n    moor_vessel(\n'
REST_S = 1.0
"""Idle time at first, in which the index is asked and what it found is read; then twice as long."""
IDLE = "return require('lcursor.complete').is_settled()"  # also where the answer is empty
INDEX = "local state = require('lcursor.index').states()[1]"


@pytest.fixture
def indexed(neovim: Path, tmp_path: Path) -> Iterator[Editor]:
    """A Neovim in a project that has been told to be indexed by words."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "harbours.py").write_text(HARBOURS)
    (project / "trip.py").write_text(HERE)
    home = tmp_path / "home"
    home.mkdir()
    python = os.environ.get("LCURSOR_TEST_PYTHON", sys.executable)
    init = (
        f"vim.g.lcursor = {{ python = {python!r}, index = {{ embedder = '' }},"
        " completion = { min_confidence = 0, files_tokens = 400 } }\n"
    )
    with Editor(neovim, home, init=init, files=(project / "trip.py",), cwd=project) as editor:
        editor.keys("GA")
        editor.wait_state("ready", timeout_s=WAIT_S)
        editor.wait_lua(SETTLED, timeout_s=WAIT_S)
        editor.keys("<Esc>")
        editor.command("LCursor index start")
        editor.wait_lua(f"{INDEX} return state and state.phase == 'ready'", timeout_s=WAIT_S)
        yield editor
        pid = editor.lua(f"{INDEX} return state.pid")
    os.kill(pid, signal.SIGTERM)  # only now, or the host would start another one


def test_a_definition_from_a_file_that_nobody_opened_is_in_the_prompt(indexed: Editor) -> None:
    indexed.keys("O    quay = 7")
    head = "def moor_vessel(vessel, quay_number, mooring_lines=4):"
    rest_s = REST_S
    while head not in (shown := prompt(indexed)):
        assert rest_s < WAIT_S, shown
        indexed.keys("a7")
        time.sleep(rest_s)  # a model that writes digits without end is busy at first
        rest_s *= 2
        indexed.wait_lua(IDLE, timeout_s=WAIT_S)
    assert shown.index("harbours.py") < shown.index(head) < shown.index("def arrive")


def prompt(editor: Editor) -> str:
    """Return the prompt of the last request; afterwards nothing is being typed."""
    editor.keys("<Esc>")
    editor.command("LCursor suggestion prompt")
    shown = ""

    def is_there() -> bool:
        nonlocal shown
        shown = str(editor.lua(BUFFERS))
        return "def arrive" in shown

    deadline_s = time.monotonic() + WAIT_S
    while not is_there():
        assert time.monotonic() < deadline_s, "no prompt is shown"
    editor.keys("q")
    return shown
