"""Files that are the user's alone, written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lcursor.storage import folders
from tests.fakes.disk import full_disk
from tests.unit.project.trees import anybody


def test_a_file_is_written_whole_and_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o644)
    folders.write_file(path, b"ne", b"w", fsync=True)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_where_its_new_content_has_no_room(tmp_path: Path) -> None:
    path = tmp_path / "x"
    folders.write_file(path, b"old")
    with full_disk(100), pytest.raises(OSError, match="large"):
        folders.write_file(path, b"x" * 200)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_where_it_cannot_be_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    folders.write_file(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        folders.write_file(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_deleted_with_folders_that_cannot_be_listed() -> None:
    with anybody() as place:
        (place / "outside").mkdir(mode=0o500)
        (place / "x/closed/deep").mkdir(parents=True)
        (place / "x/closed/deep/file").touch()
        (place / "x/link").symlink_to("../outside")
        (place / "x/closed").chmod(0)
        folders.remove(place / "x")
        folders.remove(place / "missing")
        assert [each.name for each in place.iterdir()] == ["outside"]
        assert stat.S_IMODE((place / "outside").stat().st_mode) == 0o500
        folders.remove(place / "outside")
