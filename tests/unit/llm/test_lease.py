from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lcursor import folders
from lcursor.errors import LcursorError, ServerFailed
from lcursor.llm import lease
from lcursor.llm.lease import Folder, Lease
from tests.unit.llm.serving import mode
from tests.waiting import wait_for


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "server")
    made.make()
    return made


def a_lease(**changes: object) -> Lease:
    fields = {
        "pid": os.getpid(),
        "ticks": lease.ticks(os.getpid()),
        "boot": lease.boot(),
        "url": "unix:///x",
        "engine": "xllamacpp",
        "model": "toy",
        "path": "/toy.gguf",
        "context_tokens": 4096,
        "key": "secret-key",
    }
    return Lease(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_lock_is_one_and_free_again(folder: Folder) -> None:
    assert not folder.is_held()
    fd = folder.take()
    assert fd is not None
    assert folder.is_held()
    assert folder.take() is None
    os.close(fd)
    assert not folder.is_held()


def test_a_lock_is_held_as_long_as_one_who_inherited_it_lives(folder: Folder) -> None:
    fd = folder.take()
    assert fd is not None
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(fd,)
    )
    os.close(fd)
    assert folder.is_held()
    child.communicate(b"\n", timeout=10)
    assert not folder.is_held()


def test_a_lease_comes_back_whole_and_nobody_else_can_read_it(folder: Folder) -> None:
    written = a_lease()
    folder.write(written)
    assert folder.read() == written
    assert mode(folder.lease_path) == 0o600
    assert folder.living() is None  # nobody holds the lock
    fd = folder.take()
    assert fd is not None
    assert folder.living() == written
    os.close(fd)
    assert "secret-key" not in repr(written)
    assert [path.name for path in folder.path.iterdir() if path.name.startswith("lease")] == [
        "lease.json"
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"version": 99}', '{"version": 1, "pid": 1}', "\0" * 50]
)
def test_a_lease_that_says_nothing(folder: Folder, text: str) -> None:
    folder.lease_path.write_text(text)
    assert folder.read() is None
    assert folder.living() is None


def test_users_are_counted_and_the_dead_forgotten(folder: Folder) -> None:
    first, second = folder.join(), folder.join()
    assert folder.users() == [os.getpid()] * 2
    code = (
        "import sys; from pathlib import Path; from lcursor.llm.lease import Folder; "
        "user = Folder(Path(sys.argv[1])).join(); print('in', flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(folder.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"in\n"
    assert sorted(folder.users()) == sorted([os.getpid(), os.getpid(), other.pid])
    other.kill()
    other.communicate()
    first.leave()
    first.leave()
    assert folder.users() == [os.getpid()]
    second.leave()
    assert folder.users() == []
    assert list(folder.users_path.iterdir()) == []


@pytest.mark.process
def test_without_proc_a_process_is_known_by_its_start_as_ps_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "PROC", tmp_path)
    monkeypatch.setattr(lease, "BOOT_ID", tmp_path / "boot_id")
    child = subprocess.Popen(["sleep", "60"])
    try:
        began = lease.ticks(child.pid)
        assert abs(began - time.time()) < 3600, "seconds since 1970"
        assert not lease.end(child.pid, began - 60, lease.boot())
        assert child.poll() is None
        # On Linux, where ps reckons the start anew each time, it may differ by a second.
        wait_for(lambda: lease.end(child.pid, lease.ticks(child.pid), lease.boot()))
        wait_for(lambda: lease.ticks(child.pid) == 0, what="a zombie counts as ended")
    finally:
        child.kill()
        child.wait()
    assert lease.ticks(child.pid) == 0


def test_a_start_of_a_process_as_macos_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ps = tmp_path / "ps"
    ps.write_text("#!/bin/sh\nprintf 'S    Sun Nov  1 09:08:07 2026    \\n'\n")
    ps.chmod(0o755)
    monkeypatch.setattr(lease, "PROC", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lease.ticks(7) == 1793524087
    ps.write_text("#!/bin/sh\nexit 1\n")
    assert lease.ticks(7) == 0


@pytest.mark.process
def test_a_number_that_was_used_again_is_another_process() -> None:
    child = subprocess.Popen(["sleep", "60"])
    began = lease.ticks(child.pid)
    try:
        assert began > 0
        assert lease.is_alive(child.pid, began, lease.boot())
        assert not lease.end(child.pid, began - 1, lease.boot())
        assert not lease.end(child.pid, began, "another run")
        assert not lease.end(0, 0, lease.boot())
        assert child.poll() is None
        assert lease.end(child.pid, began, lease.boot())
        wait_for(lambda: lease.ticks(child.pid) == 0, what="a zombie counts as ended")
        assert not lease.is_alive(child.pid, began, lease.boot())
    finally:
        child.kill()
        child.wait()


def test_a_folder_that_cannot_be_locked_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match=r"cannot be used: No such file .*server\.lock"):
        Folder(tmp_path / "absent").take()


def test_a_folder_of_the_users_own(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    assert mode(folders.own(place)) == 0o700
    place.chmod(0o777)
    assert mode(folders.own(place)) == 0o700
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(LcursorError, match="not a folder of yours"):
        folders.own(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(LcursorError, match="cannot be made"):
        folders.own(tmp_path / "file" / "x")


def test_a_socket_has_a_short_path_that_ends_as_the_program_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="lc-") as run:  # the one of the test may be long
        monkeypatch.setenv("XDG_RUNTIME_DIR", run)
        path = folders.socket_path(tmp_path)
        assert path is not None
        assert path.parent == Path(run) / "lcursor"
        assert path.suffix == ".sock"
        assert folders.socket_path(tmp_path / "other") != path
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    path = folders.socket_path(tmp_path)
    assert path is not None
    assert not path.is_relative_to(long)
    assert len(os.fsencode(path)) <= folders.MOST_SOCKET_BYTES
    monkeypatch.setattr(folders, "MOST_SOCKET_BYTES", 5)
    assert folders.socket_path(tmp_path) is None
