"""Files that are the user's alone, written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from lcursor.errors import LcursorError
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


def test_a_new_folder_survives_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[Path]()
    monkeypatch.setattr(folders, "fsync_folder", synced.append)
    folders.make_private(tmp_path / "a/b")
    assert set(synced) == {tmp_path, tmp_path / "a"}
    synced.clear()
    folders.make_private(tmp_path / "a/b")
    assert synced == []


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The folders for a socket, in the order in which they are tried."""
    names = {"XDG_RUNTIME_DIR": "r", "TMPDIR": "t", "LCURSOR_DATA": "d"}
    made = {name: tmp_path / short for name, short in names.items()}
    for name, path in made.items():
        path.mkdir()
        monkeypatch.setenv(name, str(path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(folders, "MAX_SOCKET_BYTES", 1000)
    own = f"lcursor-{os.getuid()}"
    temporary = {"temporary": made["TMPDIR"] / own, "/tmp": Path("/tmp") / own}
    return {"runtime": made["XDG_RUNTIME_DIR"] / "lcursor", **temporary, "data": tmp_path / "d/run"}


def test_where_a_folder_belongs_to_someone_else_the_next_is_used(
    tmp_path: Path, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, foreign = folders.make_private, set[Path]()

    def make_private(folder: Path) -> Path:
        if folder in foreign:
            raise LcursorError(f"{folder} is not owned by you", "")
        return real(folder)

    monkeypatch.setattr(folders, "make_private", make_private)
    for path in places.values():
        assert folders.socket_path(tmp_path).parent == path
        foreign.add(path)
    with pytest.raises(LcursorError, match=f"{places['runtime']} is not owned by you"):
        folders.socket_path(tmp_path)


def test_a_folder_whose_path_is_too_long_for_a_socket_is_left_out(
    tmp_path: Path, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest_chars = len("/0123456789abcdef.sock")
    limit = len(str(places["/tmp"])) + digest_chars
    assert limit < len(str(places["temporary"]))
    monkeypatch.setattr(folders, "MAX_SOCKET_BYTES", limit)
    assert folders.socket_path(tmp_path).parent == places["/tmp"]
