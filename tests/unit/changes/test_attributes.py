"""What a file has besides its bytes outlives edits, failed edits, and the undo of a deletion."""

from __future__ import annotations

import errno
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from lcursor.changes import text, undo
from lcursor.changes import write as writes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange
from lcursor.changes.steps import WriteStep
from lcursor.changes.write import write
from lcursor.errors import EditUnsaved

if sys.platform != "linux":
    pytest.skip("needs Linux", allow_module_level=True)

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(user: int) -> bytes:
    """Return an ACL that lets a user read and write, as the kernel stores it."""
    none = 0xFFFFFFFF
    entries = [(1, 6, none), (2, 6, user), (4, 4, none), (16, 6, none), (32, 0, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)


def edit(path: Path, to: str = "") -> FileChange:
    found = text.read(path)
    change = Change(0, 1, (found.lines[0],), ("NEW",))
    kind: Any = "rename" if to else "edit"
    return FileChange(str(path), kind, to, found.digest, (change,))


def deletion(path: Path) -> FileChange:
    return FileChange(str(path), "delete", base=text.read(path).digest)


def facts(path: Path) -> dict[str, Any]:
    """Everything about a file that a user can set."""
    seen = path.stat()
    extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return {"mode": seen.st_mode, "owner": (seen.st_uid, seen.st_gid), "extended": extended}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def history(root: Path, tmp_path: Path) -> History:
    return History(root, tmp_path / "data")


@pytest.fixture
def path(root: Path) -> Path:
    """A file with an ACL, other extended attributes, and permissions of its own."""
    path = root / "a.py"
    path.write_bytes(b"old\nline\n")
    path.chmod(0o640)
    os.setxattr(path, "user.note", b"n\0")
    os.setxattr(path, ACCESS, acl(user=12345))
    if os.getuid() == 0:
        os.chown(path, 1234, 1235)
        os.setxattr(path, "trusted.mark", b"by root")
    return path


def do(history: History, *changes: FileChange) -> str:
    key = history.begin("t", changes)
    write(changes, history, key)
    return key


def test_an_edit_that_fails_at_another_file_keeps_the_attributes(
    history: History, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, time_ns = facts(path), path.stat().st_mtime_ns
    other = path.with_name("b.py")
    other.write_text("x\n")
    real = writes._do

    def fail(step: WriteStep) -> None:
        if step.path == str(other):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(step)

    monkeypatch.setattr(writes, "_do", fail)
    with pytest.raises(EditUnsaved, match="nothing was changed"):
        do(history, edit(path), edit(other))
    assert path.read_bytes() == b"old\nline\n"
    assert facts(path) == before
    assert path.stat().st_mtime_ns == time_ns


def test_a_restored_file_has_its_attributes_again(
    history: History, path: Path, tmp_path: Path
) -> None:
    before, time_ns = facts(path), path.stat().st_mtime_ns
    key = do(history, deletion(path))
    assert not path.exists()
    again = History(history.root, tmp_path / "data")  # after a restart
    assert undo.revert(again, key, "undo", []).problems == ()
    assert facts(path) == before
    assert path.stat().st_mtime_ns == time_ns


def test_a_file_that_is_renamed_and_changed_keeps_its_attributes(
    history: History, path: Path
) -> None:
    before, to = facts(path), path.with_name("b.py")
    key = do(history, edit(path, str(to)))
    assert facts(to) == before
    undo.revert(history, key, "undo", [])
    assert facts(path) == before


def test_a_new_file_inherits_no_acl_that_the_old_one_did_not_have(
    history: History, path: Path
) -> None:
    os.removexattr(path, ACCESS)
    before = facts(path)
    os.setxattr(path.parent, DEFAULT, acl(user=54321))
    path.with_name("other").touch()
    assert os.getxattr(path.with_name("other"), ACCESS), "it is inherited"
    do(history, edit(path))
    assert facts(path) == before


def test_an_attribute_that_may_not_be_set_prevents_no_other(
    history: History, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.setxattr(path, "user.aaa", b"first")
    before, real = facts(path), os.setxattr

    def refuse(target: Any, name: str, value: bytes) -> None:
        if name == "user.aaa":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        real(target, name, value)

    monkeypatch.setattr(os, "setxattr", refuse)
    do(history, edit(path))
    del before["extended"]["user.aaa"]
    assert facts(path) == before


def test_a_deletion_of_version_4_can_be_undone(history: History, path: Path) -> None:
    key = do(history, deletion(path))
    stored = history.path / f"{key}.json"
    row = json.loads(stored.read_text())
    del row["digest"]
    row["v"] = 4
    for file in row["files"]:
        del file["attributes"], file["was_empty"]
        file["mode"] = 0o604
    stored.write_text(json.dumps(row))
    undo.revert(history, key, "undo", [])
    assert path.read_bytes() == b"old\nline\n"
    assert path.stat().st_mode & 0o777 == 0o604
