"""Turns that are taken back and made again: what they did, and nothing of what was typed since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcursor.changes import diff, text, undo
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange, FileKind, digest
from lcursor.changes.turn import Action
from lcursor.changes.write import write
from lcursor.errors import EditMissing, EditRejected, EditUnsaved
from lcursor.protocol.edit import EditBuffer
from tests.unit.edit.desk import Project, decision, hunk_at

CODE = """\
import os

def first(a):
    return a + 1

def second(a):
    x = a
    return x + 2

def third(a):
    return a + 3
"""


class EditedProject(Project):
    """A project, its history, and buffers of the editor."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.history = History(self.root, self.data)
        self.buffers: dict[str, list[str]] = {}

    def load(self, name: str) -> None:
        self.buffers[self.path(name)] = list(text.read(self.path(name)).lines)

    def change(self, name: str, old: str, new: str, **more: str) -> FileChange:
        """Have a text in a file become another."""
        lines = self.buffers.get(self.path(name)) or text.read(self.path(name)).lines
        after = "\n".join(lines).replace(old, new, 1).split("\n")
        kind: FileKind = "rename" if "to" in more else "edit"
        to = self.path(more["to"]) if more else ""
        return FileChange(self.path(name), kind, to, digest(lines), diff.changes(lines, after))

    def do(self, *files: FileChange) -> str:
        """Have a turn written to disk."""
        key = self.history.begin("t", files)
        write(files, self.history, key)
        return key

    def take(self, *files: FileChange) -> str:
        """Have a turn taken in buffers, hunk by hunk from above, as the editor tells it."""
        key = self.history.begin("t", files, bases=self.buffers)
        for file in files:
            lines, moved = self.buffers[file.path], 0
            for number, change in enumerate(file.changes, 1):
                row = change.first_row + moved
                lines[row : row + len(change.old)] = change.new
                moved += len(change.new) - len(change.old)
                hunk = hunk_at(lines, row, change.old, change.new)
                left = len(file.changes) - number
                self.history.decided(decision(key, file.path, hunk, still_open=left))
        return key

    def type(self, name: str, old: str, new: str) -> None:
        """Have the user change something, in the buffer or on disk."""
        path = self.path(name)
        if path in self.buffers:
            body = "\n".join(self.buffers[path])
            assert old in body
            self.buffers[path] = body.replace(old, new, 1).split("\n")
        else:
            body = (self.root / name).read_text()
            assert old in body
            (self.root / name).write_text(body.replace(old, new, 1))

    def revert(self, do: Action, key: str = "") -> undo.Reverted:
        """Take back or make again, also in the buffers."""
        buffers: list[EditBuffer] = [
            {"path": path, "tick": 1, "text": "\n".join(lines)}
            for path, lines in self.buffers.items()
        ]
        done = undo.revert(self.history, key, do, buffers)
        for file in done.files:
            lines = self.buffers.pop(file.path)
            assert digest(lines) == file.base
            made = list(diff.apply(lines, file.changes))
            if file.kind != "delete":
                self.buffers[file.to or file.path] = made
        return done

    def buffer(self, name: str) -> str:
        return "\n".join(self.buffers[self.path(name)])


@pytest.fixture
def project(tmp_path: Path) -> EditedProject:
    return EditedProject(tmp_path)


def test_files_that_are_not_open_are_undone_on_disk(project: EditedProject) -> None:
    project.put("a.py", CODE)
    project.put("sub/b.py", CODE)
    key = project.do(
        project.change("a.py", "a + 1", "a - 1"), project.change("sub/b.py", "import os\n", "")
    )
    after = [project.get("a.py"), project.get("sub/b.py")]
    assert CODE not in after
    done = project.revert("undo")
    assert (done.key, done.problems, done.files) == (key, (), ())
    assert done.paths == (project.path("a.py"), project.path("sub/b.py"))
    assert [project.get("a.py"), project.get("sub/b.py")] == [CODE, CODE]
    assert project.revert("redo").problems == ()
    assert [project.get("a.py"), project.get("sub/b.py")] == after
    assert project.revert("undo", key).problems == ()
    assert [project.get("a.py"), project.get("sub/b.py")] == [CODE, CODE]


@pytest.mark.parametrize("is_open", [True, False])
def test_undo_keeps_text_that_was_typed_since(project: EditedProject, is_open: bool) -> None:
    project.put("a.py", CODE)
    if is_open:
        project.load("a.py")
    change = project.change("a.py", "    return a + 1", "    # one\n    return 1 + a")
    second = project.change("a.py", "return a + 3", "return 3 + a").changes
    change = FileChange(change.path, base=change.base, changes=(*change.changes, *second))
    project.take(change) if is_open else project.do(change)
    project.type("a.py", "import os", "import os\nimport sys")
    project.type("a.py", "    x = a", "    x = a * 2  # mine")
    project.type("a.py", "return 3 + a", "return 3 + a\n    # right below")
    done = project.revert("undo")
    assert done.problems == ()
    assert (len(done.files), len(done.paths)) == ((1, 0) if is_open else (0, 1))
    found = project.buffer("a.py") + "\n" if is_open else project.get("a.py")
    assert found == CODE.replace("import os", "import os\nimport sys").replace(
        "    x = a", "    x = a * 2  # mine"
    ).replace("return a + 3", "return a + 3\n    # right below")
    project.type("a.py", "import sys", "import sys  # more")
    assert project.revert("redo").problems == ()
    found = project.buffer("a.py") if is_open else project.get("a.py")
    assert found is not None
    assert "    # one\n    return 1 + a" in found
    assert "import sys  # more" in found
    assert "return 3 + a\n    # right below" in found


def test_a_hunk_is_found_at_other_rows_than_recorded(project: EditedProject) -> None:
    path = project.path("a.py")
    project.put("a.py", CODE)
    project.load("a.py")
    change = project.change("a.py", "def second", "# two\ndef second")
    key = project.history.begin("t", [change], bases=project.buffers)
    lines = project.buffers[path]
    lines[:0] = ["# typed before it was taken"] * 3
    row = change.changes[0].first_row + 3
    lines.insert(row, "# two")
    project.history.decided(decision(key, path, hunk_at(lines, row, (), ("# two",))))
    assert project.revert("undo").problems == ()
    del project.buffers[path][:3]
    assert (
        project.buffer("a.py") + "\n" == CODE
    )  # the base again, and the row is one of another text
    assert project.revert("redo").problems == ()
    assert project.buffer("a.py") + "\n" == CODE.replace("def second", "# two\ndef second")


def test_a_file_whose_hunk_was_changed_is_not_undone(project: EditedProject) -> None:
    for name in ("a.py", "b.py"):
        project.put(name, CODE)
    key = project.do(
        project.change("a.py", "    x = a", "    x = a\n    y = x\n    z = y"),
        project.change("b.py", "a + 1", "a - 1"),
    )
    project.type("a.py", "y = x", "y = x  # mine")
    mine = project.get("a.py")
    done = project.revert("undo")
    assert done.problems == (f"{project.path('a.py')} was changed since, and stays as it is",)
    assert (project.get("a.py"), project.get("b.py")) == (mine, CODE)
    assert project.history.undo_key() == project.history.redo_key() == key
    project.type("a.py", "  # mine", "")  # now it can be
    assert project.revert("undo").problems == ()
    assert project.history.undo_key() == ""
    assert project.get("a.py") == CODE


def test_a_hunk_with_several_possible_places_is_not_undone(project: EditedProject) -> None:
    same = "begin\n  step\nend\n"
    project.put("a", same * 6)
    lines = (same * 6).split("\n")[:-1]
    change = Change(10, 10, (), ("  step",))
    project.do(FileChange(project.path("a"), base=digest(lines), changes=(change,)))
    after = project.get("a")
    project.type("a", "begin\n  step\n  step\nend\n", "begin\n  step\n  step\nend\n" * 2)
    mine = project.get("a")
    assert mine != after
    done = project.revert("undo")
    assert len(done.problems) == 1
    assert project.get("a") == mine


def test_the_creation_of_a_file_is_undone(project: EditedProject) -> None:
    change = FileChange(project.path("new/a.py"), "create", changes=(Change(0, 0, (), ("a", "b")),))
    project.do(change)
    assert project.get("new/a.py") == "a\nb\n"
    assert project.revert("undo").paths == (project.path("new/a.py"),)
    assert project.get("new/a.py") is None
    project.revert("redo")
    assert project.get("new/a.py") == "a\nb\n"
    project.type("new/a.py", "b", "b\nmine")
    assert "changed since" in project.revert("undo").problems[0]
    assert project.get("new/a.py") == "a\nb\nmine\n"


def test_the_creation_of_an_open_file_is_undone(project: EditedProject) -> None:
    project.do(FileChange(project.path("a.py"), "create", changes=(Change(0, 0, (), ("a", "b")),)))
    project.load("a.py")
    (file,) = project.revert("undo").files
    assert (file.kind, file.changes) == ("delete", (Change(0, 2, ("a", "b"), ()),))
    assert project.get("a.py") is None
    project.revert("redo")
    project.load("a.py")
    project.type("a.py", "b", "typed, not saved")
    assert project.revert("undo").problems
    assert (project.get("a.py"), project.buffer("a.py")) == ("a\nb\n", "a\ntyped, not saved")


def test_the_creation_of_a_file_in_a_buffer_is_undone(project: EditedProject) -> None:
    path = project.path("a.py")
    change = FileChange(path, "create", changes=(Change(0, 0, (), ("a", "b")),))
    project.buffers[path] = []
    project.take(change)
    project.put("a.py", "a\nb\n")
    project.buffers.clear()
    assert project.revert("undo").problems == ()
    assert project.get("a.py") is None
    assert project.revert("redo").problems == ()
    assert project.get("a.py") == "a\nb\n"


def test_the_deletion_of_a_file_is_undone(project: EditedProject) -> None:
    (project.root / "a.py").write_bytes(b"\xef\xbb\xbfa\r\nb")
    (project.root / "a.py").chmod(0o700)
    gone = FileChange(project.path("a.py"), "delete", base=text.read(project.path("a.py")).digest)
    project.do(gone)
    assert project.get("a.py") is None
    project.revert("undo")
    assert (project.root / "a.py").read_bytes() == b"\xef\xbb\xbfa\r\nb"
    assert (project.root / "a.py").stat().st_mode & 0o777 == 0o700
    project.revert("redo")
    assert project.get("a.py") is None
    project.put("a.py", "mine\n")
    assert "a different text" in project.revert("undo").problems[0]
    assert project.get("a.py") == "mine\n"


def test_the_renaming_of_a_file_is_undone(project: EditedProject) -> None:
    project.put("old.py", CODE)
    project.do(project.change("old.py", "first", "FIRST", to="sub/new.py"))
    assert project.get("old.py") is None
    project.type("sub/new.py", "import os", "import os  # mine")
    assert project.revert("undo").problems == ()
    assert project.get("old.py") == CODE.replace("import os", "import os  # mine")
    assert project.get("sub/new.py") is None
    assert project.revert("redo").problems == ()
    after = CODE.replace("import os", "import os  # mine").replace("first", "FIRST")
    assert project.get("sub/new.py") == after
    project.put("old.py", "mine\n")
    assert "exists" in project.revert("undo").problems[0]
    assert (project.get("old.py"), project.get("sub/new.py")) == ("mine\n", after)


def test_the_renaming_of_an_open_file_is_undone(project: EditedProject) -> None:
    project.put("old.py", CODE)
    project.do(project.change("old.py", "first", "FIRST", to="new.py"))
    project.load("new.py")
    project.type("new.py", "import os", "import os  # not saved")
    (file,) = project.revert("undo").files
    assert (file.kind, file.path, file.to) == (
        "rename",
        project.path("new.py"),
        project.path("old.py"),
    )
    assert (project.get("old.py"), project.get("new.py")) == (CODE, None)
    assert project.buffer("old.py") == CODE.replace("os", "os  # not saved")[:-1]


def test_a_change_that_the_user_removed_can_be_undone_and_redone(project: EditedProject) -> None:
    project.put("a.py", CODE)
    key = project.do(project.change("a.py", "    x = a\n", ""))
    project.put("a.py", CODE)
    assert project.revert("undo").problems == ()
    assert project.get("a.py") == CODE
    assert project.revert("redo").problems == ()
    assert "x = a" not in (project.get("a.py") or "")
    assert project.history.undo_key() == key


def test_a_missing_file_is_reported(project: EditedProject) -> None:
    project.put("a.py", CODE)
    project.put("b.py", CODE)
    project.do(project.change("a.py", "a + 1", "a"), project.change("b.py", "a + 1", "a"))
    (project.root / "a.py").unlink()
    assert project.revert("undo").problems == (f"the file {project.path('a.py')} no longer exists",)
    assert project.get("b.py") == CODE


def test_without_an_edit_undo_is_an_error(project: EditedProject) -> None:
    wishes: tuple[Action, ...] = ("undo", "redo")
    for do in wishes:
        with pytest.raises(EditMissing):
            project.revert(do)
    project.put("a.py", CODE)
    key = project.do(project.change("a.py", "a + 1", "a"))
    with pytest.raises(EditMissing, match="nothing of this edit is undone"):
        project.revert("redo", key)


def test_all_files_are_undone_or_none(
    project: EditedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.py", "b.py"):
        project.put(name, CODE)
    key = project.do(project.change("a.py", "a + 1", "a"), project.change("b.py", "a + 1", "a"))
    after = project.get("a.py")
    (project.root / "b.py").chmod(0o444)
    with pytest.raises(EditRejected, match="read-only"):
        project.revert("undo")
    (project.root / "b.py").chmod(0o644)
    real, count = os.replace, 0

    def full(*args: str) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(28, "No space left on device")
        real(*args)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EditUnsaved, match="No space"):
        project.revert("undo")
    assert [project.get("a.py"), project.get("b.py")] == [after, after]
    assert project.history.undo_key() == key
    project.revert("undo")
    assert [project.get("a.py"), project.get("b.py")] == [CODE, CODE]


def test_a_turn_is_undone_in_buffers_and_on_disk(project: EditedProject) -> None:
    project.put("a.py", CODE)
    project.load("a.py")
    project.put("b.py", CODE)
    in_buffer = project.change("a.py", "import os\n", "import os\nimport re\n")
    on_disk = project.change("b.py", "a + 1", "a")
    key = project.history.begin("t", [in_buffer, on_disk], bases=project.buffers)
    write([on_disk], project.history, key)
    (change,) = in_buffer.changes
    lines = project.buffers[project.path("a.py")]
    lines[change.first_row : change.last_row] = change.new
    hunk = hunk_at(lines, change.first_row, change.old, change.new)
    project.history.decided(decision(key, project.path("a.py"), hunk))
    done = project.revert("undo")
    assert ([file.path for file in done.files], done.paths) == (
        [project.path("a.py")],
        (project.path("b.py"),),
    )
    assert project.buffer("a.py") + "\n" == project.get("b.py") == CODE


@pytest.mark.parametrize("data", [b"\n", b"", b"\r\n", b"\xef\xbb\xbf\n"])
def test_a_file_without_text_is_restored_byte_by_byte(project: EditedProject, data: bytes) -> None:
    path = project.put("a.py", data)
    lines = text.read(path).lines
    change = Change(0, len(lines), lines, ("NEW", "more"))
    key = project.do(FileChange(str(path), "edit", base=digest(lines), changes=(change,)))
    written = path.read_bytes()
    assert b"NEW" in written
    for _ in range(2):
        undo.revert(project.history, key, "undo", [])
        assert path.read_bytes() == data
        undo.revert(project.history, key, "redo", [])
        assert path.read_bytes() == written
