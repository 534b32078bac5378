"""Commands with limits."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.process.run import Output, run
from tests.waiting import is_running, wait_for


def test_a_program_that_says_too_much_or_nothing_is_ended(tmp_path: Path) -> None:
    said = run(["yes"], tmp_path, max_bytes=1000)
    assert (len(said.data), said.is_cut) == (1000, True)
    said = run(["sleep", "600"], tmp_path, max_bytes=10, max_s=0.2)
    assert said.failure == "stopped after 0.2 s"
    calls = iter([False, False, True])
    with pytest.raises(Cancelled):
        run(["sleep", "600"], tmp_path, max_bytes=10, max_s=600, cancel=lambda: next(calls))


def test_a_program_that_closes_its_ends_and_stays_is_ended(tmp_path: Path) -> None:
    command = ["sh", "-c", "exec >&- 2>&-; sleep 600"]
    assert run(command, tmp_path, max_bytes=10, max_s=0.3).failure == "stopped after 0.3 s"


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


def test_more_than_the_limit_is_dropped_where_that_is_wanted(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('e' * 300_000); print('x' * 300_000); sys.exit(3)"
    said = run([sys.executable, "-c", code], tmp_path, max_bytes=1000, drops_excess=True, ok=(3,))
    assert (len(said.data), said.is_cut, said.failure, said.status) == (1000, False, "", 3)
    assert len(said.errors) == 4096


def test_cancelling_ends_all_processes_of_a_command(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! > {path}; wait"]
    with pytest.raises(Cancelled):
        run(command, tmp_path, cancel=lambda: bool(path.exists() and path.read_text().strip()))
    wait_for(lambda: not is_running(int(path.read_text())), what="what it started ends")


def test_processes_left_behind_are_killed_and_not_waited_for(tmp_path: Path) -> None:
    said = run(["sh", "-c", "sleep 600 & echo $!"], tmp_path, max_s=300)
    assert said.failure == ""
    wait_for(lambda: not is_running(int(said.data)), what="what it started ends")


def test_without_waitid_as_on_macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid", raising=False)
    said = run(["sh", "-c", "echo a; exit 4"], tmp_path, ok=(4,))
    assert said == Output(b"a\n", status=4)
