"""Agents that are killed at random points; `python -m lcursor eval kills` does it more often."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lcursor.process.sandbox import open_sandbox

pytestmark = pytest.mark.sandbox


@pytest.mark.process
def test_killed_runs_lose_nothing_and_do_nothing_twice() -> None:
    words = ["eval", "kills", "--runs", "3", "--kills", "4", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "lcursor", *words], capture_output=True, text=True, timeout=300
    )
    assert open_sandbox().level != "none"
    assert not done.returncode, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["runs"] == 3
    assert found["kills"] > 5  # a run may end before it is killed
