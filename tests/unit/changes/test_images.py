"""The stored old contents of files, which may be the only copies of what was deleted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from lcursor import system
from lcursor.changes import text, undo
from lcursor.changes.history import History
from lcursor.changes.images import Images
from lcursor.changes.records import FileChange
from lcursor.changes.write import write

DATA = b"precious\n" * 3
KEY = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "data/edits/images")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and folders that were flushed to the disk."""
    found, real = list[str](), os.fsync

    def fsync(fd: int) -> None:
        found.append(system.path_of(fd))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, DATA, b"x\x9c"])
def test_a_damaged_content_is_replaced_when_it_is_stored_again(
    images: Images, damage: bytes
) -> None:
    images.put(DATA)
    (images.folder / KEY).write_bytes(damage)
    assert images.get(KEY) is None
    assert images.put(DATA, fsync=True) == KEY
    assert images.get(KEY) == DATA


def test_the_content_of_another_file_does_not_count(images: Images) -> None:
    other = images.put(b"something else")
    os.rename(images.folder / other, images.folder / KEY)
    images.put(DATA, fsync=True)
    assert images.get(KEY) == DATA


@pytest.mark.linux
def test_a_content_that_is_stored_already_is_flushed(images: Images, synced: list[str]) -> None:
    images.put(DATA)
    path = images.folder / KEY
    written = path.stat().st_ino
    synced.clear()
    images.put(DATA, fsync=True)
    assert synced == [str(path)]
    assert path.stat().st_ino == written
    images.sync_names()
    assert synced == [str(path), str(images.folder)]


def test_a_deletion_is_undone_although_its_content_was_damaged_before(tmp_path: Path) -> None:
    path = tmp_path / "project/a.py"
    path.parent.mkdir()
    path.write_bytes(DATA)
    history = History(path.parent, tmp_path / "data")
    found = text.read(path)
    change = FileChange(str(path), "delete", base=found.digest)
    key = history.begin("t", [change], bases={str(path): found.lines})
    (history.images.folder / KEY).write_bytes(b"")  # as after a power failure
    write([change], history, key)
    assert not path.exists()
    assert undo.revert(history, key, "undo", []).problems == ()
    assert path.read_bytes() == DATA
