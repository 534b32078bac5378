"""The lock of a project's index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lcursor.index import lock
from lcursor.index.lock import Lock

HOLD = """
import sys
from pathlib import Path
from lcursor.index.lock import Lock
held = Lock.take(Path(sys.argv[1]))
assert held
held.say(pid=1, socket="somewhere")
print("held", flush=True)
sys.stdin.read()
"""


def test_one_holds_it_and_says_who_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = Lock.take(path)
    assert first is not None
    assert Lock.take(path) is None
    first.say(pid=1, socket="x" * 100)
    first.say(pid=12)  # shorter than what was there
    assert lock.words(path) == {"pid": 12}
    first.release()
    second = Lock.take(path)
    assert second is not None
    assert lock.words(path) == {"pid": 12}  # the one before is what is known
    second.release()


def test_a_process_that_is_killed_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[3],
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        assert Lock.take(path) is None
        assert lock.words(path)["socket"] == "somewhere"
        process.kill()
    held = Lock.take(path)
    assert held is not None
    held.release()


def test_a_file_that_was_deleted_is_nobodys_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = Lock.take(path)
    assert first is not None
    assert first.is_mine()
    path.unlink()
    assert not first.is_mine()
    second = Lock.take(path)
    assert second is not None
    assert not first.is_mine()
    assert second.is_mine()
    first.release()
    second.release()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff"])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "lock").write_bytes(data)
    assert lock.words(tmp_path / "lock") == {}
    assert lock.words(tmp_path / "missing") == {}


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Lock.take(tmp_path / "missing/lock")
