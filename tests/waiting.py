"""Wait for conditions, with a deadline that only a hang reaches."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Value = TypeVar("Value")
POLL_S = 0.01
BUDGET_MS = 60_000
"""Of a completion: none is cut short because the machine is busy."""
WAIT_S = 300.0
"""Longest wait for something a model does: benches measure times, tests do not."""


def wait_for(predicate: Callable[[], Value], timeout_s: float = 30.0, what: str = "") -> Value:
    """Poll `predicate` until its value is true, and return that value.

    Fails the test when the deadline passes; `what` says what was waited for.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := predicate()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout_s:g} s: {what or predicate}")
        time.sleep(POLL_S)
    return value


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    if sys.platform != "linux":
        words = ["ps", "-o", "stat=", "-p", str(pid)]
        state = subprocess.run(words, capture_output=True, text=True).stdout.strip()
        return state[:1] not in ("", "Z")
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
