"""Files that are written while the disk is full, we are killed, or somebody else writes too."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lcursor.changes import steps, text
from lcursor.changes import write as writes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange
from lcursor.changes.write import recover, write
from lcursor.errors import EditUnsaved, LcursorError
from tests.fakes import disk

ROOT = Path(__file__).resolve().parents[3]
BEFORE = {
    "a.py": b"a\r\nkept\r\n",
    "sub/b.py": b"b\nkept",
    "gone.py": b"gone\n",
    "old.py": b"old\n",
}
AFTER = {
    "a.py": b"A\r\nkept\r\n",
    "sub/b.py": b"B\nkept",
    "new/deep/c.py": b"c\n",
    "moved.py": b"OLD\n",
}


def make(root: Path) -> None:
    for name, data in BEFORE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "a.py").chmod(0o755)


def changes(root: Path) -> list[FileChange]:
    def edit(name: str, to: str = "") -> FileChange:
        found = text.read(root / name)
        old = found.lines[0]
        change = Change(0, 1, (old,), (old.upper(),))
        where = str(root / to) if to else ""
        return FileChange(
            str(root / name), "rename" if to else "edit", where, found.digest, (change,)
        )

    gone = str(root / "gone.py")
    return [
        edit("a.py"),
        edit("sub/b.py"),
        FileChange(str(root / "new/deep/c.py"), "create", changes=(Change(0, 0, (), ("c",)),)),
        FileChange(gone, "delete", base=text.read(gone).digest),
        edit("old.py", "moved.py"),
    ]


def files(root: Path) -> dict[str, bytes]:
    """Every file that is there, also hidden ones, and folders without one."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(root))] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{path.relative_to(root)}/"] = b""
    return found


@pytest.fixture(params=["renamed", "in place"])
def in_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether files have an owner whom new files cannot have."""
    if request.param == "in place":
        monkeypatch.setattr(steps, "_can_be_replaced", lambda _: False)
    return bool(request.param == "in place")


def noted(root: Path, data: Path, files: Sequence[FileChange], key: str = "") -> None:
    """Write files as a turn of their own."""
    history = History(root, data)
    write(files, history, key or history.begin("t", files))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, where such a thing can be made."""
    place = tmp_path / "disk"
    place.mkdir()
    with disk.small_disk(place):
        yield place


def test_a_disk_that_becomes_full_changes_nothing(small_disk: Path, tmp_path: Path) -> None:
    root = small_disk / "project"
    make(root)
    big = FileChange(str(root / "big"), "create", changes=(Change(0, 0, (), ("x" * 90_000,)),))
    for at in range(6):
        parts = changes(root)
        parts.insert(at, big)
        with pytest.raises(EditUnsaved, match=r"big cannot be written: No space left.*nothing was"):
            noted(root, tmp_path / "data", parts)
        assert files(root) == BEFORE
    noted(root, tmp_path / "data", changes(root))
    assert files(root) == AFTER


def test_without_space_for_the_history_nothing_is_written(small_disk: Path, tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root)
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(b"x" * 100_000)
    with pytest.raises(EditUnsaved, match="nothing"):
        noted(root, small_disk / "data", changes(root))
    assert files(root) == BEFORE


@pytest.mark.usefixtures("in_place")
def test_a_write_that_fails_at_any_call_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("link", "replace", "unlink", "rename", "mkdir", "write", "fchmod")
    at = 0
    while True:
        at += 1
        root, count = tmp_path / str(at) / "project", 0
        make(root)
        parts = changes(root)
        with monkeypatch.context() as patch:
            for name in names:
                real = getattr(os, name)

                def call(
                    *args: object, real: object = real, at: int = at, **more: object
                ) -> object:
                    nonlocal count
                    count += 1
                    if count == at:
                        raise OSError(28, "No space left on device")
                    return real(*args, **more)  # type: ignore[operator]

                patch.setattr(os, name, call)
            try:
                noted(root, tmp_path / "data", parts)
            except EditUnsaved as error:
                failed = str(error)
            else:
                failed = ""
        if failed:
            assert "No space left" in failed
            assert files(root) == BEFORE, f"call {at}"
        else:
            assert files(root) == AFTER
        assert recover(History(root, tmp_path / "data")) == ()
        if count < at:
            break
    assert at > 20


def test_a_file_system_without_hard_links_is_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    root, data = tmp_path / "project", tmp_path / "data"
    make(root)
    parts, real = changes(root), os.unlink
    with monkeypatch.context() as patch:

        def fail(path: str) -> None:
            if str(path) == str(root / "old.py"):
                raise OSError(5, "Input/output error")
            real(path)

        patch.setattr(os, "unlink", fail)
        with pytest.raises(EditUnsaved, match="Input/output"):
            noted(root, data, parts)
    assert files(root) == BEFORE
    assert (root / "a.py").stat().st_mode & 0o777 == 0o755
    noted(root, data, parts)
    assert files(root) == AFTER
    assert (root / "a.py").stat().st_mode & 0o777 == 0o755


def test_a_file_that_is_written_in_place_is_the_same_file(tmp_path: Path, in_place: bool) -> None:
    root, data = tmp_path / "project", tmp_path / "data"
    make(root)
    before = (root / "a.py").stat()
    noted(root, data, changes(root))
    after = (root / "a.py").stat()
    assert (after.st_ino == before.st_ino) is in_place
    assert after.st_mode == before.st_mode
    assert files(root) == AFTER


@pytest.mark.parametrize("typed", [b"", b"and mine\n"])
def test_a_failed_write_in_place_keeps_text_that_was_typed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: bytes
) -> None:
    monkeypatch.setattr(steps, "_can_be_replaced", lambda _: False)
    root, data = tmp_path / "project", tmp_path / "data"
    make(root)
    path = root / "a.py"

    def fail(_: object) -> None:
        patch.undo()
        assert path.read_bytes() == AFTER["a.py"]
        path.write_bytes(AFTER["a.py"] + typed)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(writes, "_sync", fail)
        with pytest.raises(EditUnsaved, match="Input/output"):
            noted(root, data, changes(root)[:1])
    assert path.read_bytes() == (AFTER["a.py"] + typed if typed else BEFORE["a.py"])


@pytest.mark.process
@pytest.mark.skipif(os.getuid() != 0, reason="takes root to be another user")
def test_a_file_of_another_user_is_written_in_place(tmp_path: Path) -> None:
    root, data = tmp_path / "project", tmp_path / "data"
    make(root)
    data.mkdir()
    for path in (root, *root.rglob("*"), data):
        os.chown(path, 65534, 65534)
    path = root / "a.py"
    os.chown(path, 0, 100)
    path.chmod(0o664)
    open_to_all(tmp_path)
    said = as_nobody(lambda: noted(root, data / "edits", changes(root)), groups=[100])
    assert said == ""
    assert files(root) == AFTER
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, 100, 0o664)


def open_to_all(place: Path) -> None:
    """Let other users reach a folder of the test."""
    for path in (place, *place.parents):
        if path.stat().st_mode & 0o777 == 0o700:  # of pytest's, as many as there are
            path.chmod(0o755)


def as_nobody(work: Callable[[], object], groups: Sequence[int] = ()) -> str:
    """Do something as another user, in a process of its own; return what it raised."""
    ours, its = os.pipe()
    child = os.fork()
    if not child:
        said = "it did not end"
        try:
            os.setgroups(groups)
            os.setgid(65534)
            os.setuid(65534)
            work()
            said = ""
        except (LcursorError, OSError) as error:
            said = f"{type(error).__name__} {error}"
        finally:
            os.write(its, said.encode())
            os._exit(0)
    os.close(its)
    with open(ours) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.process
@pytest.mark.skipif(os.getuid() != 0, reason="takes root to be another user")
def test_a_file_without_permission_to_write_is_reported(tmp_path: Path) -> None:
    root, data = tmp_path / "project", tmp_path / "data"
    make(root)
    data.mkdir()
    for path in (root, *root.rglob("*"), data):
        os.chown(path, 65534, 65534)
    open_to_all(tmp_path)
    (root / "sub").chmod(0o555)
    said = as_nobody(lambda: noted(root, data / "edits", changes(root)))
    assert said.startswith("EditUnsaved"), said
    assert "sub/b.py cannot be written: Permission denied; nothing was changed" in said
    assert files(root) == BEFORE


TWO = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    from pathlib import Path
    from lcursor.changes import text
    from lcursor.changes.history import History
    from lcursor.changes.records import Change, FileChange
    from lcursor.changes.write import write
    from lcursor.errors import EditStale
    root, data, name = Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    history, done = History(root, data), 0
    while done < 15:
        files = []
        for path in (root / "one", root / "two"):
            found = text.read(path)
            new = f"{name} {done}"
            change = Change(len(found.lines), len(found.lines), (), (new,))
            files.append(FileChange(str(path), base=found.digest, changes=(change,)))
        key = history.begin("t", files)
        try:
            write(files, history, key)
            done += 1
        except EditStale:
            pass
"""


@pytest.mark.process
def test_two_editors_at_once_lose_nothing(tmp_path: Path) -> None:
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    for name in ("one", "two"):
        (root / name).write_text("first\n")
    command = [sys.executable, "-c", textwrap.dedent(TWO), str(ROOT), str(root), str(data)]
    running = [subprocess.Popen([*command, name]) for name in ("x", "y", "z")]
    assert [each.wait(50) for each in running] == [0, 0, 0]
    one, two = ((root / name).read_text().splitlines() for name in ("one", "two"))
    assert one == two
    assert sorted(one[1:]) == sorted(f"{name} {number}" for name in "xyz" for number in range(15))
    history = History(root, data)
    written = [row for row in history.rows() if history.turn(row["turn"]).is_applied]
    assert len(written) == 45
    assert not history.damaged
    assert not [path for path in root.iterdir() if path.name.startswith(".lcursor")]
