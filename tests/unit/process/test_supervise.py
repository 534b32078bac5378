"""A background process that editors share: started once, found, stopped; real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.process import supervise
from lcursor.process.supervise import Child, Supervised
from tests.waiting import is_running, wait_for

pytestmark = pytest.mark.process
WRITES_STATE = (
    "import json, os, signal, sys, time; "
    "open(sys.argv[1], 'w').write(json.dumps({'pid': os.getpid()})); "
)


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Supervised]:
    made = Supervised(tmp_path / "x.lock", tmp_path / "x.json", tmp_path / "x.log")
    yield made
    made.stop()


def start(helper: Supervised, code: str = "time.sleep(60)") -> Child:
    lock = helper.try_lock()
    assert lock is not None
    command = [sys.executable, "-c", WRITES_STATE + code, str(helper.state_path)]
    child = helper.spawn(command, lock, header="first line")
    os.close(lock)
    wait_for(lambda: helper.read_state() or child.status is not None, what="its state")
    return child


def test_the_lock_is_held_as_long_as_the_process_lives(helper: Supervised) -> None:
    assert not helper.is_running()
    child = start(helper)
    assert helper.is_running()
    assert helper.try_lock() is None
    assert helper.read_state() == {"pid": child.pid}
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: not helper.is_running(), what="the kernel frees the lock")
    lock = helper.try_lock()
    assert lock is not None
    os.close(lock)


def test_a_child_can_be_stopped(helper: Supervised) -> None:
    assert not helper.stop()
    child = start(helper)
    assert helper.stop()
    assert not is_running(child.pid)
    assert not helper.stop()


def test_stopping_one_that_ignores_it(helper: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "STOP_S", 0.2)
    child = start(helper, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    assert helper.stop()
    wait_for(lambda: child.status == -signal.SIGKILL)


def test_a_holder_of_the_lock_without_a_state_cannot_be_stopped(
    helper: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "STOP_S", 0.2)
    lock = helper.try_lock()
    assert lock is not None
    with pytest.raises(TimeoutError):
        helper.stop()
    os.close(lock)


def test_a_state_that_was_left_behind_is_no_reason_to_signal(helper: Supervised) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        helper.write_state({"pid": bystander.pid})
        assert not helper.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", "\0" * 9])
def test_a_state_that_cannot_be_read(helper: Supervised, text: str) -> None:
    helper.state_path.write_text(text)
    assert helper.read_state() == {}


def test_the_log_of_a_child(helper: Supervised, monkeypatch: pytest.MonkeyPatch) -> None:
    helper.log_path.write_text("old\n")
    child = start(helper, "sys.exit('error: no model')")
    wait_for(lambda: child.status == 1)
    assert child.output() == "error: no model\n"
    assert helper.log_path.read_text().startswith("old\n--- ")
    assert "first line" in helper.log_path.read_text()
    assert helper.log_path.stat().st_size < supervise.MAX_LOG_BYTES
    monkeypatch.setattr(supervise, "MAX_LOG_BYTES", 10)
    wait_for(lambda: not helper.is_running())
    start(helper, "sys.exit()")
    assert "old" not in helper.log_path.read_text()
    assert "old" in helper.log_path.with_suffix(".log.1").read_text()
