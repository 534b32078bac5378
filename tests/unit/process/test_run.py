"""Commands with limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.process.run import run


def test_a_program_that_says_too_much_or_nothing_is_ended(tmp_path: Path) -> None:
    said = run(["yes"], tmp_path, max_bytes=1000)
    assert (len(said.data), said.is_cut) == (1000, True)
    said = run(["sleep", "600"], tmp_path, max_bytes=10, max_s=0.2)
    assert said.failure == "it took too long"
    calls = iter([False, False, True])
    with pytest.raises(Cancelled):
        run(["sleep", "600"], tmp_path, max_bytes=10, max_s=600, cancel=lambda: next(calls))


def test_a_program_that_closes_its_ends_and_stays_is_ended(tmp_path: Path) -> None:
    command = ["sh", "-c", "exec >&- 2>&-; sleep 600"]
    assert run(command, tmp_path, max_bytes=10, max_s=0.3).failure == "it took too long"


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    assert "cannot be run" in run(["no-such-program"], tmp_path, max_bytes=1).failure
    said = run(["sh", "-c", "echo half; echo why >&2; exit 3"], tmp_path, max_bytes=100)
    assert (said.data, said.failure) == (b"half\n", "why")
    assert not run(["false"], tmp_path, max_bytes=1, ok=(0, 1)).failure


def test_a_command_gets_its_input(tmp_path: Path) -> None:
    data = b"x" * (1 << 20)  # more than a pipe holds
    assert run(["cat"], tmp_path, stdin=data).data == data
    assert run(["cat"], tmp_path).data == b""
    assert run(["true"], tmp_path, stdin=data).failure == ""  # it reads nothing
