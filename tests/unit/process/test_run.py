"""Running a command: limits hold, and nothing that it started is left running."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.process.run import Output, run
from tests.waiting import is_running, wait_for

pytestmark = pytest.mark.process


def python(code: str, **options: object) -> Output:
    limits = {"time_limit_s": 30.0, "max_bytes": 1000, **options}
    return run([sys.executable, "-c", code], **limits)  # type: ignore[arg-type]


def test_what_a_command_prints_and_how_it_ends() -> None:
    said = python("import sys; print('out'); sys.exit('bad\\nworse')")
    assert said == Output(b"out\n", b"bad\nworse\n", 1)
    assert said.complaint == "bad"


def test_input_directory_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(len(sys.stdin.read()), os.getcwd(), os.environ['X'])"
    said = python(code, data=b"x" * 200_000, cwd=tmp_path, env={**os.environ, "X": "y"})
    assert said.data.decode().split() == ["200000", str(tmp_path), "y"]


def test_input_that_nobody_reads() -> None:
    assert python("print(1)", data=b"x" * 1_000_000).data == b"1\n"


def test_too_much_output_ends_it_or_is_dropped() -> None:
    code = "while True: print('x' * 99)"
    said = python(code)
    assert (len(said.data), said.stopped_by, said.status < 0) == (1000, "size", True)
    said = python("print('x' * 300_000); print('end')", is_cut=True)
    assert (len(said.data), said.stopped_by, said.status) == (1000, "", 0)


def test_errors_are_dropped_behind_their_limit() -> None:
    said = python("import sys; sys.stderr.write('e' * 300_000)", max_error_bytes=10)
    assert (said.errors, said.status) == (b"e" * 10, 0)


def test_too_slow() -> None:
    said = python("import time; print('a', flush=True); time.sleep(60)", time_limit_s=1.0)
    assert (said.data, said.stopped_by) == (b"a\n", "time")


def test_a_command_that_closes_its_pipes_and_goes_on() -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(0.2); os._exit(3)"
    assert python(code).status == 3


def test_cancelling_ends_all_that_it_started(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = f"sleep 60 & echo $! > {path}; wait"
    with pytest.raises(Cancelled):
        run(["sh", "-c", code], time_limit_s=30, max_bytes=10, cancel=lambda: path.exists())
    wait_for(lambda: path.read_text().strip())
    wait_for(lambda: not is_running(int(path.read_text())), what="the child ends")


def test_what_it_leaves_behind_is_not_waited_for() -> None:
    began_s = time.monotonic()
    said = run(["sh", "-c", "sleep 60 & echo done"], time_limit_s=30, max_bytes=100)
    assert (said.data, said.stopped_by) == (b"done\n", "")
    assert time.monotonic() - began_s < 30


def test_without_waitid_as_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    assert python("print(1); raise SystemExit(4)") == Output(b"1\n", b"", 4)


@pytest.mark.parametrize("command", [["no-such-program-anywhere"], ["a\0b"]])
def test_what_cannot_be_started(command: list[str]) -> None:
    with pytest.raises((OSError, ValueError)):
        run(command, time_limit_s=1, max_bytes=10)
