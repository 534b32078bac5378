"""The folder of a server: its state and its users."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from lcursor.errors import LcursorError
from lcursor.llm.server_state import BEGIN, ServerFolder, ServerState
from lcursor.storage import folders
from tests.unit.llm.serving import mode


@pytest.fixture
def folder(tmp_path: Path) -> ServerFolder:
    made = ServerFolder(tmp_path / "server")
    made.create()
    return made


def a_state() -> ServerState:
    return ServerState(os.getpid(), "unix:///x", "xllamacpp", "toy", "/toy.gguf", 4096)


def test_a_state_comes_back_whole_and_nobody_else_can_read_it(folder: ServerFolder) -> None:
    written = a_state()
    folder.write(written)
    assert folder.last() == written
    assert mode(folder.state_path) == 0o600
    assert folder.running() is None  # nobody holds the lock
    fd = folder.try_lock()
    assert fd is not None
    assert folder.running() == written
    os.close(fd)
    assert [path.name for path in folder.path.iterdir() if path.name.startswith("lease")] == [
        "lease.json"
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"version": 99}', '{"version": 1, "pid": 1}', "\0" * 50]
)
def test_a_state_that_says_nothing(folder: ServerFolder, text: str) -> None:
    folder.state_path.write_text(text)
    assert folder.last() is None
    assert folder.running() is None


def test_a_state_with_more_in_it_than_we_know_is_read(folder: ServerFolder) -> None:
    folder.write_state({**asdict(a_state()), "more": 1})
    assert folder.last() == a_state()


@pytest.mark.parametrize("way", ["file", "link", "link to a pipe"])
def test_signals_are_written_to_the_servers_pipe_only(
    folder: ServerFolder, tmp_path: Path, way: str
) -> None:
    pipe, other = folder.path / "completions", tmp_path / "other"
    fd = folder.open_signals()
    folder.signal(is_begin=True)
    assert os.read(fd, 9) == BEGIN
    if way == "link to a pipe":
        pipe.rename(other)
    else:
        pipe.unlink()
        other.write_bytes(b"text")
    if way == "file":
        other.rename(pipe)
        other = pipe
    else:
        pipe.symlink_to(other)
    folder.signal(is_begin=True)
    if way == "link to a pipe":
        with pytest.raises(BlockingIOError):
            os.read(fd, 9)
    else:
        assert other.read_bytes() == b"text"
    os.close(fd)


def test_a_full_pipe_does_not_block(folder: ServerFolder) -> None:
    fd = folder.open_signals()
    size = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            size += os.write(fd, b"x")
    folder.signal(is_begin=True)
    assert os.read(fd, size + 1) == b"x" * size
    os.close(fd)
    folder.signal(is_begin=False)  # nobody reads it


def test_users_are_counted_and_the_dead_forgotten(folder: ServerFolder) -> None:
    first, second = folder.join(), folder.join()
    assert folder.users() == [os.getpid()] * 2
    code = (
        "import sys; from pathlib import Path; from lcursor.llm.server_state import ServerFolder; "
        "user = ServerFolder(Path(sys.argv[1])).join(); print('in', flush=True); input()"
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


def test_a_folder_of_the_users_own(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    assert mode(folders.make_private(place)) == 0o700
    place.chmod(0o777)
    assert mode(folders.make_private(place)) == 0o700
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(LcursorError, match="not owned by you"):
        folders.make_private(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(LcursorError, match="cannot be created"):
        folders.make_private(tmp_path / "file" / "x")


def test_a_socket_has_a_short_path_with_the_needed_suffix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="lc-") as run:  # the one of the test may be long
        monkeypatch.setenv("XDG_RUNTIME_DIR", run)
        path = folders.socket_path(tmp_path)
        assert path.parent == Path(run) / "lcursor"
        assert path.suffix == ".sock"
        assert folders.socket_path(tmp_path / "other") != path
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    path = folders.socket_path(tmp_path)
    assert not path.is_relative_to(long)
    assert len(os.fsencode(path)) <= folders.MAX_SOCKET_BYTES
