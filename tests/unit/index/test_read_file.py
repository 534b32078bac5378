"""Reading one file as it stands."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from lcursor.index.parse import Content, Unreadable, read_file
from tests.unit.project.trees import anybody


def content(root: Path, path: str) -> Content:
    found = read_file(root, path)
    assert isinstance(found, Content), found
    return found


def test_a_file_comes_with_its_state(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    found = content(tmp_path, "a.py")
    stat = (tmp_path / "a.py").stat()
    assert found.data == b"x = 1\n"
    assert (found.state.size_bytes, found.state.mtime_ns) == (6, stat.st_mtime_ns)
    assert found.state.digest.hex() == "9e26bf369911c45c243c684147b23fc9"


@pytest.mark.parametrize("name", [b"a b.py", b"a\nb.py", b"a\xff.py", "ü.py".encode()])
def test_a_file_with_any_name_is_read(tmp_path: Path, name: bytes) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text("x")
    assert content(tmp_path, os.fsdecode(name)).data == b"x"


def test_links_folders_and_pipes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "real.py").touch()
    (tmp_path / "link.py").symlink_to("real.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")  # nobody writes to it: a reader would wait for ever
    for name in ("folder", "link.py", "loop.py", "pipe.py"):
        found = read_file(tmp_path, name)
        assert isinstance(found, Unreadable), name
    (tmp_path / "away").symlink_to("folder")
    (tmp_path / "folder/inner.py").touch()
    for name in ("missing.py", "real.py/under.py", "away/inner.py"):
        found = read_file(tmp_path, name)
        assert found == Unreadable("there is no such file")


def test_an_unreadable_file_is_rejected() -> None:
    with anybody() as root:
        (root / "a.py").touch(mode=0o000)
        found = read_file(root, "a.py")
    assert isinstance(found, Unreadable)
    assert "Permission denied" in found.reason


def test_secrets_and_giants_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    with (tmp_path / "big.py").open("wb") as file:
        file.truncate(2 << 20)
    for name in (".env", "big.py"):
        found = read_file(tmp_path, name)
        assert isinstance(found, Unreadable)
        assert found.reason


def test_a_file_that_is_written_meanwhile_is_whole_or_rejected(tmp_path: Path) -> None:
    path, is_over = tmp_path / "a.py", threading.Event()
    path.write_bytes(b"0" * 50_000)

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number = (number + 1) % 10
            if number % 2:
                path.write_bytes(b"%d" % number * 50_000)
            else:
                (tmp_path / "new").write_bytes(b"%d" % number * 50_000)
                os.replace(tmp_path / "new", path)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(15):
            found = read_file(tmp_path, "a.py")
            if isinstance(found, Content) and found.data:
                assert found.state.digest == hashlib.sha256(found.data).digest()[:16]
                assert found.state.size_bytes == len(found.data)
    finally:
        is_over.set()
        thread.join()
    assert len(content(tmp_path, "a.py").data) == 50_000
