"""Files that are written: all of them or none, and each as it was but for the change."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.changes import text
from lcursor.changes import write as writes
from lcursor.changes.attributes import Attributes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange
from lcursor.changes.write import write
from lcursor.errors import EditMissing, EditOutside, EditRejected, EditStale, EditUnsaved
from lcursor.storage import folders
from tests.unit.edit.desk import Project, decision


class Writer(Project):
    """Writes changes of its files as turns."""

    def edit(self, name: str, old: str, new: str, **more: str) -> FileChange:
        """Have one line become another, or be deleted."""
        path = str(self.root / name)
        found = text.read(path)
        row = found.lines.index(old)
        change = Change(row, row + 1, (old,), (new,) if new else ())
        to = str(self.root / more["to"]) if "to" in more else ""
        return FileChange(path, "rename" if to else "edit", to, found.digest, (change,))

    def create(self, name: str, *lines: str) -> FileChange:
        return FileChange(str(self.root / name), "create", changes=(Change(0, 0, (), lines),))

    def delete(self, name: str) -> FileChange:
        path = str(self.root / name)
        return FileChange(path, "delete", base=text.read(path).digest)

    def rename(self, name: str, to: str, *, is_text: bool = True) -> FileChange:
        path = str(self.root / name)
        base = text.read(path).digest if is_text else ""
        return FileChange(path, "rename", str(self.root / to), base)

    def write(self, *files: FileChange, outside: bool = False) -> tuple[str, ...]:
        history = History(self.root, self.data)
        return write(files, history, history.begin("t", files), outside=outside)

    def files(self) -> dict[str, bytes]:
        """All files, also hidden ones, that are there."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def project(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def test_all_kinds_of_changes_are_written_at_once(project: Writer) -> None:
    project.put("a.py", "one\ntwo\n")
    project.put("gone.py", "x\n")
    project.put("old.py", "was\nkept\n")
    project.put("picture.png", b"\x89PNG\0\0")
    paths = project.write(
        project.edit("a.py", "two", "2"),
        project.create("new/deep/b.py", "b", ""),
        project.delete("gone.py"),
        project.edit("old.py", "was", "is", to="moved/new.py"),
        project.rename("picture.png", "moved/picture.png", is_text=False),
    )
    assert project.files() == {
        "a.py": b"one\n2\n",
        "moved/new.py": b"is\nkept\n",
        "moved/picture.png": b"\x89PNG\0\0",
        "new/deep/b.py": b"b\n\n",
    }
    names = ["a.py", "new/deep/b.py", "gone.py", "old.py", "moved/new.py"]
    names += ["picture.png", "moved/picture.png"]
    assert paths == tuple(str(project.root / name) for name in names)


def test_a_name_that_becomes_free_can_be_given_again(project: Writer) -> None:
    project.put("a", "a\n")
    project.put("b", "b\n")
    project.write(project.delete("b"), project.rename("a", "b"))
    assert project.files() == {"b": b"a\n"}
    project.put("a", "new\n")
    with pytest.raises(EditStale, match="was just created"):
        project.write(project.rename("a", "b"), project.rename("b", "a"))
    assert project.files() == {"a": b"new\n", "b": b"a\n"}


def test_a_new_file_has_the_permissions_of_any(project: Writer) -> None:
    old = os.umask(0o027)
    try:
        project.write(project.create("a", "a"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((project.root / "a").stat().st_mode) == 0o640


def test_a_link_stays_one(project: Writer) -> None:
    project.put("real/a.py", "a\nb\n")
    (project.root / "link.py").symlink_to("real/a.py")
    project.write(project.edit("link.py", "a", "A"))
    assert (project.root / "link.py").is_symlink()
    assert project.files()["real/a.py"] == b"A\nb\n"
    for change in (project.delete("link.py"), project.rename("link.py", "other.py")):
        with pytest.raises(EditRejected, match="is a link"):
            project.write(change)
    assert (project.root / "link.py").is_symlink()


def test_a_file_with_several_names_keeps_them(project: Writer) -> None:
    path = project.put("a.py", "a\nb\n")
    os.link(path, project.root / "b.py")
    project.write(project.edit("a.py", "a", "A"))
    assert project.files() == {"a.py": b"A\nb\n", "b.py": b"A\nb\n"}


def test_one_file_by_two_names_is_rejected(project: Writer) -> None:
    project.put("a.py", "a\nb\n")
    (project.root / "link.py").symlink_to("a.py")
    with pytest.raises(EditRejected, match="twice"):
        project.write(project.edit("a.py", "a", "A"), project.edit("link.py", "b", "B"))
    assert project.files()["a.py"] == b"a\nb\n"


def test_files_outside_of_the_project_need_approval(project: Writer, tmp_path: Path) -> None:
    far = tmp_path / "far.py"
    far.write_text("a\n")
    (project.root / "link.py").symlink_to(far)
    (project.root / "folder").symlink_to(tmp_path)
    project.put("near.py", "a\n")
    changes = [
        project.edit("link.py", "a", "A"),
        project.edit("../far.py", "a", "A"),
        project.edit("folder/far.py", "a", "A"),
        project.create("folder/new.py", "x"),
        project.rename("near.py", "../near.py"),
    ]
    for change in changes:
        with pytest.raises(EditOutside, match=r"far\.py|new\.py|near\.py"):
            project.write(project.edit("near.py", "a", "A"), change)
    assert far.read_text() == "a\n"
    assert project.files()["near.py"] == b"a\n"
    project.write(project.edit("near.py", "a", "A"), changes[0], outside=True)
    assert (far.read_text(), project.files()["near.py"]) == ("A\n", b"A\n")


def test_a_file_that_has_changed_is_not_written(project: Writer) -> None:
    project.put("a", "a\n")
    project.put("b", "b\n")
    first = project.edit("a", "a", "A")
    stale = [project.edit("b", "b", "B"), project.delete("b"), project.rename("b", "c")]
    project.put("b", "b\nmine\n")
    for change in stale:
        with pytest.raises(EditStale, match="has changed since the edit was made"):
            project.write(first, change)
    gone = project.edit("b", "b", "B")
    (project.root / "b").unlink()
    with pytest.raises(EditMissing):
        project.write(first, gone)
    project.put("new", "mine\n")
    with pytest.raises(EditStale, match="already"):
        project.write(first, project.create("new", "x"))
    with pytest.raises(EditStale, match="already"):
        project.write(project.rename("a", "new"))
    (project.root / "hanging").symlink_to("nowhere")
    with pytest.raises(EditStale, match="already"):
        project.write(first, project.create("hanging", "x"))
    assert project.files() == {"a": b"a\n", "new": b"mine\n"}


def test_protected_files_are_not_written(project: Writer) -> None:
    project.put("a", "a\n")
    project.put("locked", "x\n").chmod(0o444)
    project.put("binary", b"a\0")
    (project.root / "folder").mkdir()
    project.put(".git/config", "x\n")
    first = project.edit("a", "a", "A")
    wrong = [
        (project.edit("locked", "x", "y"), "read-only"),
        (project.delete("locked"), "read-only"),
        (project.rename("locked", "open"), "read-only"),
        (FileChange(str(project.root / "binary"), base="x"), "binary"),
        (FileChange(str(project.root / "folder"), base="x"), "regular"),
        (project.create(".git/hooks/pre-commit", "evil"), "version control"),
        (project.edit(".git/config", "x", "y"), "version control"),
        (project.create("sub/.GIT/hooks/pre-commit", "evil"), "version control"),
        (project.rename("a", "sub/.git/x"), "version control"),
    ]
    before = project.files()
    for change, word in wrong:
        files = [change] if change.path == first.path else [first, change]
        with pytest.raises(EditRejected, match=word):
            project.write(*files, outside=True)
    assert project.files() == before
    for change in (project.create("..", "x"), project.create("a/below", "x")):
        with pytest.raises((EditStale, EditUnsaved), match=r"already|Not a directory"):
            project.write(first, change, outside=True)
    below = [project.create("new", "x"), project.create("new/below", "x")]
    for files in (below, below[::-1]):
        with pytest.raises(
            (EditStale, EditUnsaved), match=r"Not a directory|just (changed|created)"
        ):
            project.write(first, *files)
    with pytest.raises(EditRejected, match="twice"):
        project.write(first, project.delete("a"))
    assert project.files() == before


def test_an_edit_without_a_change_does_not_touch_the_file(project: Writer) -> None:
    path = project.put("a", "a\n")
    found = path.stat()
    change = project.edit("a", "a", "a")
    project.write(change)
    assert path.stat() == found


def while_writing(monkeypatch: pytest.MonkeyPatch, name: str, work: Callable[[], object]) -> None:
    """Have something happen when the new bytes of a file are there, and not yet in its place."""
    real = writes._write_new

    def call(temp: str, data: bytes, like: Attributes | None, **more: bool) -> None:
        real(temp, data, like, **more)
        if f"/.{name}.lcursor-" in temp:
            work()

    monkeypatch.setattr(writes, "_write_new", call)


def test_a_change_just_before_the_writing_is_seen(
    project: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("a", "b"):
        project.put(each, f"{each}\n")
    changes = [project.edit("a", "a", "A"), project.edit("b", "b", "B"), project.create("c", "c")]
    while_writing(monkeypatch, "b", lambda: project.put("b", "what I typed\n"))
    with pytest.raises(EditStale, match="just changed"):
        project.write(*changes)
    assert project.files() == {"a": b"a\n", "b": b"what I typed\n"}


def test_a_failed_write_keeps_text_that_was_typed_since(
    project: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("a", "b"):
        project.put(each, f"{each}\n")
    changes = [project.edit("a", "a", "A"), project.edit("b", "b", "B")]

    def fail() -> None:
        project.put("a", "what I typed\n")
        raise OSError(28, "No space left on device")

    while_writing(monkeypatch, "b", fail)
    with pytest.raises(EditUnsaved, match="a was changed since, and stays as it is"):
        project.write(*changes)
    assert project.files() == {"a": b"what I typed\n", "b": b"b\n"}


def test_a_rejected_hunk_is_not_written(project: Writer) -> None:
    project.put("a", "a\nkept\nb\n")
    found = text.read(project.root / "a")
    both = (Change(0, 1, ("a",), ("A",)), Change(2, 3, ("b",), ("B",)))
    change = FileChange(str(project.root / "a"), base=found.digest, changes=both)
    history = History(project.root, project.data)
    key = history.begin("t", [change])
    history.decided(decision(key, change.path, rejected=both[:1], still_open=1))
    with pytest.raises(EditRejected, match="were rejected"):
        write((change,), history, key)
    assert project.files()["a"] == b"a\nkept\nb\n"
    write(history.open_files(key), history, key)
    assert project.files()["a"] == b"a\nkept\nB\n"


def test_a_turn_that_cannot_be_noted_is_not_written(
    project: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.put("a", "a\n")
    history = History(project.root, project.data)
    changes = [project.edit("a", "a", "A"), project.create("sub/b", "b"), project.delete("a")][:2]
    key = history.begin("t", changes)

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write_file", fails)
        with pytest.raises(EditUnsaved, match="No space left"):
            write(changes, history, key)
        assert project.files() == {"a": b"a\n"}
        assert not (project.root / "sub").exists()
    write(changes, history, key)
    assert project.files() == {"a": b"A\n", "sub/b": b"b\n"}
    assert history.undo_key() == key
