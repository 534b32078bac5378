"""KV data on disk: kept, found again, and never trusted when anything about them is odd."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.fim.kv import KVShadow
from lcursor.fim.kv_disk import MAGIC, PART_BYTES, KVDiskCache, SavedSlot
from lcursor.fim.prompt import File

ROOT, NAME = "/home/anna/project", "src/a.py"


def saved(state: bytes = b"\x00\x01cells") -> SavedSlot:
    """Return cells with this state."""
    shadow = KVShadow()
    shadow.prefix, shadow.suffix, shadow.suffix_at = [1, 2, 3], (4, 5), 28
    shadow.has_marker, shadow.stale, shadow.tail = True, 2, [9]
    return SavedSlot(shadow, (File("b.py", "def b(): ...\n"),), memoryview(state))


@pytest.fixture
def disk(tmp_path: Path) -> KVDiskCache:
    return KVDiskCache(tmp_path / "kv", "model 1")


def test_a_saved_slot_is_found_in_another_run(disk: KVDiskCache) -> None:
    assert disk.save(ROOT, NAME, saved())
    found = KVDiskCache(disk.folder, "model 1").load(ROOT, NAME)
    assert found is not None
    assert (found.state, found.files) == (saved().state, saved().files)
    shadow = found.shadow
    assert (shadow.prefix, shadow.suffix, shadow.suffix_at) == ([1, 2, 3], (4, 5), 28)
    assert (shadow.has_marker, shadow.stale, shadow.tail) == (True, 2, [])


def test_a_slot_of_another_file_or_project_is_not_found(disk: KVDiskCache) -> None:
    disk.save(ROOT, NAME, saved())
    assert disk.load(ROOT, "src/b.py") is None
    assert disk.load("/home/anna/other", NAME) is None


@pytest.mark.parametrize("at", [0, 5, 14, 40, -33, -1])
def test_a_file_with_a_changed_byte_is_deleted(disk: KVDiskCache, at: int) -> None:
    disk.save(ROOT, NAME, saved())
    path = disk.path(ROOT, NAME)
    data = bytearray(path.read_bytes())
    data[at] ^= 0x20
    path.write_bytes(data)
    assert disk.load(ROOT, NAME) is None
    assert not path.exists()


def test_only_the_user_may_read_a_saved_slot(disk: KVDiskCache) -> None:
    disk.save(ROOT, NAME, saved())
    path = disk.path(ROOT, NAME)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_oldest_files_are_deleted_above_the_limit(tmp_path: Path) -> None:
    disk = KVDiskCache(tmp_path, "model 1", max_bytes=30_000)
    for number in range(4):
        name = f"{number}.py"
        disk.save(ROOT, name, saved(bytes(9000)))
        os.utime(disk.path(ROOT, name), (number, number))
    there = [disk.load(ROOT, f"{number}.py") is not None for number in range(4)]
    assert there == [False, True, True, True]


def test_a_file_that_was_never_finished_counts_and_is_deleted_like_others(tmp_path: Path) -> None:
    disk = KVDiskCache(tmp_path, "model 1", max_bytes=30_000)
    disk.save(ROOT, "a.py", saved(bytes(9000)))
    part = disk.path(ROOT, "b.py").with_suffix(".kv.k3j2x1")
    part.write_bytes(bytes(15_000))
    os.utime(part, (1, 1))
    disk.save(ROOT, "c.py", saved(bytes(9000)))
    assert not part.exists()
    assert disk.load(ROOT, "a.py")


def test_without_a_folder_nothing_is_saved_and_nothing_raised(tmp_path: Path) -> None:
    (tmp_path / "kv").write_text("a file")
    disk = KVDiskCache(tmp_path / "kv", "model 1")
    assert not disk.save(ROOT, NAME, saved())
    assert not disk.save(ROOT, NAME, saved())
    assert disk.load(ROOT, NAME) is None


def test_a_failed_write_leaves_the_old_one_and_nothing_else(
    disk: KVDiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.save(ROOT, NAME, saved(b"old"))

    def fail(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.replace", fail)
    assert not disk.save(ROOT, NAME, saved(b"new"))
    found = disk.load(ROOT, NAME)
    assert found is not None
    assert bytes(found.state) == b"old"
    assert [path.suffix for path in disk.folder.glob("*/*")] == [".kv"]


@pytest.mark.parametrize("head", [{}, {"made_by": "model 1", "name": NAME}, [1], None, "{"])
def test_a_file_with_another_head_is_deleted(disk: KVDiskCache, head: object) -> None:
    path = disk.path(ROOT, NAME)
    path.parent.mkdir(parents=True)
    text = head.encode() if isinstance(head, str) else json.dumps(head).encode()
    data = MAGIC + struct.pack("<Q", len(text)) + text + b"cells"
    path.write_bytes(data + hashlib.blake2b(data, digest_size=32).digest())
    assert disk.load(ROOT, NAME) is None
    assert not path.exists()


@pytest.mark.parametrize("act", ["stat", "unlink"])
def test_a_file_that_another_editor_removes_causes_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    disk = KVDiskCache(tmp_path, "model 1", max_bytes=20_000)
    for number in range(2):
        assert disk.save(ROOT, f"{number}.py", saved(bytes(9000)))
    victim, plain = disk.path(ROOT, "0.py"), getattr(Path, act)

    def vanish(path: Path, *args: object, **options: object) -> object:
        if path == victim and os.path.lexists(victim):
            os.unlink(victim)
        found: object = plain(path, *args, **options)
        return found

    monkeypatch.setattr(Path, act, vanish)
    assert disk.save(ROOT, "2.py", saved(bytes(9000)))
    assert disk.load(ROOT, "2.py") is not None


def test_saving_stops_between_two_parts_when_a_request_comes(disk: KVDiskCache) -> None:
    disk.save(ROOT, NAME, saved(b"old"))
    asked: list[int] = []

    def is_aborted() -> bool:
        asked.append(len(asked))
        return len(asked) == 3

    with pytest.raises(Cancelled):
        disk.save(ROOT, NAME, saved(bytes(5 * PART_BYTES)), is_aborted)
    assert len(asked) == 3
    found = disk.load(ROOT, NAME)
    assert found is not None
    assert bytes(found.state) == b"old"
    assert [path.suffix for path in disk.folder.glob("*/*")] == [".kv"]
    assert disk.save(ROOT, NAME, saved(b"new"))
