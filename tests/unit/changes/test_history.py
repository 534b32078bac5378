"""Turns on disk: what can be undone, several editors, kills, full disks, damage."""

from __future__ import annotations

import os
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.changes import history as histories
from lcursor.changes.attributes import Attributes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange, digest
from lcursor.changes.turn import Action, Turn, Writing
from lcursor.changes.write import recover
from lcursor.errors import EditMissing, EditUnsaved, LcursorError
from lcursor.protocol.edit import EditDecided
from tests.fakes.disk import full_disk
from tests.unit.edit.desk import decision, hunk_at

A, B = Change(0, 1, ("a",), ("A",)), Change(2, 3, ("c",), ("C",))
BASE = ("a", "b", "c")


class ProjectWithHistory:
    """A project with a history, and what was complained about."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "project", place / "data" / "edits"
        self.root.mkdir()
        self.errors: list[LcursorError] = []
        self.path = str(self.root / "a.py")

    def open(self) -> History:
        return History(self.root, self.data, self.errors.append)

    def change(self, *changes: Change, name: str = "a.py", **more: Any) -> FileChange:
        path = str(self.root / name)
        return FileChange(path, base=digest(BASE), changes=changes or (A, B), **more)

    def begin(self, history: History, title: str, *files: FileChange, **more: Any) -> str:
        found = files or (self.change(),)
        return history.begin(title, found, bases={each.path: BASE for each in found}, **more)

    def do(self, history: History, key: str, action: Action, **more: Any) -> None:
        """Have something done to the file of a turn on disk."""
        self.begin_writing(history, key, action, **more)
        history.end_writing(key, is_done=True)

    def begin_writing(self, history: History, key: str, action: Action, **more: Any) -> None:
        def begin(turn: Turn, _: int) -> None:
            more["is_undone"] = action == "undo"
            turn.writing = Writing("name", action, [replace(turn.files[0], **more)], {})

        history.update(key, begin, must_store=True)

    def decided(self, key: str, *changes: Change, **more: Any) -> EditDecided:
        hunks = [hunk_at((), change.first_row, change.old, change.new) for change in changes]
        return decision(key, more.pop("path", self.path), *hunks, **more)


@pytest.fixture
def project(tmp_path: Path) -> ProjectWithHistory:
    return ProjectWithHistory(tmp_path)


def test_a_turn_is_there_after_a_restart(project: ProjectWithHistory) -> None:
    history = project.open()
    key = project.begin(history, "rename  x\nto y", chat="c1")
    history.decided(project.decided(key, A, still_open=1))
    again = project.open()
    (row,) = again.rows()
    assert row == history.rows()[0]
    assert (row["title"], row["state"], row["open"]) == ("rename x to y", "open", 1)
    assert row["paths"] == [project.path]
    assert abs(row["at_s"] - time.time()) < 60
    assert again.turn(key).chat == "c1"
    (file,) = again.open_files(key)
    assert file.changes == (B,)
    assert file.base == digest(BASE)


def test_a_turn_goes_through_its_states(project: ProjectWithHistory) -> None:
    history = project.open()
    key = project.begin(history, "t")

    def state() -> str:
        return history.rows()[0]["state"]

    assert (state(), history.undo_key()) == ("open", "")
    history.decided(project.decided(key, A, still_open=1))
    assert (state(), history.undo_key()) == ("open", key)
    history.decided(project.decided(key, A, still_open=2, is_undone=True))
    assert (state(), history.undo_key()) == ("open", "")
    history.decided(project.decided(key, rejected=[A, B]))
    assert (state(), history.undo_key()) == ("done", "")
    history.decided(project.decided(key, A, B))
    assert (state(), history.undo_key(), history.redo_key()) == ("done", key, "")
    project.do(history, key, "undo")
    assert (state(), history.undo_key(), history.redo_key()) == ("undone", "", key)
    project.do(history, key, "redo")
    assert (state(), history.undo_key(), history.redo_key()) == ("done", key, "")


def test_the_last_turn_is_undone_first(project: ProjectWithHistory) -> None:
    history = project.open()
    one, two, three = (project.begin(history, name) for name in ("1", "2", "3"))
    for key in (two, one, three):
        history.decided(project.decided(key, A, still_open=1))
    undone = []
    while key := history.undo_key():
        project.do(history, key, "undo")
        undone.append(key)
    assert undone == [three, one, two]
    redone = []
    while key := history.redo_key():
        project.do(history, key, "redo")
        redone.append(key)
    assert redone == undone[::-1]
    assert history.undo_key() == three
    project.do(history, three, "undo")
    history.decided(project.decided(two, B))
    assert history.redo_key() == ""  # something new was done since
    assert history.undo_key() == two


def test_a_renamed_file_is_listed_by_both_names(project: ProjectWithHistory) -> None:
    history = project.open()
    project.begin(history, "t", project.change(kind="rename", to=str(project.root / "b.py")))
    assert history.rows()[0]["paths"] == [project.path, str(project.root / "b.py")]


def test_the_log_means_the_same_when_a_link_is_gone(
    project: ProjectWithHistory, tmp_path: Path
) -> None:
    history = project.open()
    key = project.begin(history, "t")
    link = tmp_path / "link"
    link.symlink_to(project.root)
    history.decided(project.decided(key, A, path=str(link / "a.py")))
    assert history.turn(key).is_applied
    link.unlink()
    again = project.open()
    assert again.turn(key).is_applied
    assert not again.damaged


def test_a_written_turn_counts_until_it_is_undone(project: ProjectWithHistory) -> None:
    history = project.open()
    gone = FileChange(project.path, "delete", base=digest(BASE))
    key = project.begin(history, "t", gone)
    image = history.images.put(b"\xef\xbb\xbfa\r\n")
    seen = Attributes(0o600, (1, 2), {"user.a": "eA=="}, 123)
    project.do(history, key, "write", removed=image, attributes=seen, is_made=True, open=0)
    again = project.open()
    (file,) = again.turn(key).files
    assert (file.is_made, file.removed, file.open) == (True, image, 0)
    assert file.attributes == seen
    assert again.images.get(image) == b"\xef\xbb\xbfa\r\n"
    assert again.undo_key() == key
    project.do(again, key, "undo")
    assert (history.undo_key(), history.redo_key()) == ("", key)


def test_an_interrupted_write_can_be_undone(project: ProjectWithHistory) -> None:
    history = project.open()
    key = project.begin(history, "t")
    project.begin_writing(history, key, "write", pieces=[A.new, B.new])
    assert history.undo_key() == ""
    again = project.open()
    (note,) = recover(again)
    assert "while it was writing a.py" in note
    assert (history.undo_key(), recover(again)) == (key, ())
    project.begin_writing(history, key, "undo")
    assert len(recover(again)) == 1
    assert history.undo_key() == key
    project.begin_writing(history, key, "undo")
    history.end_writing(key, is_done=False)
    assert (recover(again), again.undo_key()) == ((), key)


def test_images_are_kept_as_long_as_their_turn(
    project: ProjectWithHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = project.open()
    old = project.begin(history, "old")
    image = history.turn(old).files[0].base
    assert history.images.get_lines(image) == BASE
    assert stat.S_IMODE((history.folder / "images" / image).stat().st_mode) == 0o600
    monkeypatch.setattr(histories, "MAX_BYTES", 3000)
    os.utime(history.folder / "images" / image, (1.0, 1.0))
    os.utime(history.path / f"{old}.json", (1.0, 1.0))
    again = project.open()
    new = again.begin(
        "new", [FileChange(project.path, changes=(A,))], bases={project.path: ("other",)}
    )
    assert again.images.get_lines(image) is None
    found = again.turn(new).files[0].base
    assert again.images.get_lines(found) == ("other",)
    (history.folder / "images" / found).write_bytes(b"damaged")
    assert again.images.get(found) is None


def test_only_the_user_can_read_it(project: ProjectWithHistory) -> None:
    history = project.open()
    project.begin(history, "t")
    (file,) = history.path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in (history.path, history.folder, project.data):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_reading_the_history_creates_no_files(project: ProjectWithHistory) -> None:
    history = project.open()
    assert (history.rows(), history.undo_key(), history.redo_key()) == ([], "", "")
    with pytest.raises(EditMissing):
        history.turn("20260101-000000-00000000")
    with pytest.raises(EditMissing):
        history.decided(project.decided("none", A))
    assert not project.data.exists()
    key = project.begin(history, "t")
    with pytest.raises(EditMissing, match="did not change"):
        history.decided(project.decided(key, A, path="/other"))
    assert not project.open().damaged


def test_many_writers_lose_nothing(project: ProjectWithHistory) -> None:
    found: list[str] = []

    def write(name: int) -> None:
        history = project.open()
        for number in range(10):
            key = project.begin(history, f"{name}.{number}")
            history.decided(project.decided(key, A, still_open=1))
            found.append(key)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    rows = project.open().rows()
    assert sorted(row["turn"] for row in rows) == sorted(found)
    assert sorted(row["title"] for row in rows) == sorted(
        f"{a}.{b}" for a in range(4) for b in range(10)
    )
    assert all(row["open"] == 1 for row in rows)


@pytest.mark.parametrize("damage", [b"", b'{"v":3,"key', b"\xff\xfe\0\0", b"[]", b'{"v":99}'])
def test_a_damaged_turn_and_one_of_a_newer_version_are_left(
    project: ProjectWithHistory, damage: bytes
) -> None:
    history = project.open()
    key = project.begin(history, "before")
    other = history.path / "20260101-120000-00000000.json"
    other.write_bytes(damage)
    again = project.open()
    after = project.begin(again, "after")
    third = project.open()
    assert [row["turn"] for row in third.rows()] == [after, key]
    assert third.damaged == 1
    assert other.read_bytes() == damage
    assert not project.errors


def test_a_full_disk_is_reported_once_and_made_good_later(project: ProjectWithHistory) -> None:
    history = project.open()
    first = project.begin(history, "first")
    with full_disk(20):
        second = project.begin(history, "second")
        history.decided(project.decided(second, A, still_open=1))
        assert history.undo_key() == second  # in memory
        with pytest.raises(EditUnsaved, match="cannot be written"):
            project.begin_writing(history, second, "write")
    assert len(project.errors) == 1
    assert isinstance(project.errors[0], EditUnsaved)
    assert [path.stem for path in history.path.iterdir()] == [first]
    history.decided(project.decided(first))
    assert [row["turn"] for row in project.open().rows()] == [second, first]
    assert project.open().undo_key() == second


def test_no_folder_is_reported_and_turns_go_on(project: ProjectWithHistory) -> None:
    project.data.parent.mkdir()
    project.data.write_text("a file in the way")
    history = project.open()
    key = project.begin(history, "t")
    history.decided(project.decided(key, A, B))
    assert (history.undo_key(), len(project.errors)) == (key, 1)
    with pytest.raises(EditUnsaved):
        project.begin_writing(history, key, "undo")
    assert history.undo_key() == key


def test_the_oldest_are_deleted(
    project: ProjectWithHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = Change(0, 1, ("a",), ("x" * 20_000,))
    monkeypatch.setattr(histories, "MAX_AGE_S", 1e10)
    watching, keys = project.open(), []
    for number in range(15):
        history = project.open()
        keys.append(project.begin(history, f"turn {number}", project.change(big)))
        os.utime(history.path / f"{keys[-1]}.json", (1e9 + number, 1e9 + number))
        watching.rows()
    monkeypatch.setattr(histories, "MAX_AGE_S", time.time() - 1e9 - 2.5)
    monkeypatch.setattr(histories, "MAX_BYTES", 200_000)
    keys.append(project.begin(project.open(), "new"))
    kept = [row["turn"] for row in watching.rows()]
    assert kept == keys[::-1][: len(kept)]
    assert 8 <= len(kept) < 13
    monkeypatch.setattr(histories, "MAX_AGE_S", time.time() - 1e9 - 12.5)
    keys.append(project.begin(project.open(), "newer"))
    assert [row["turn"] for row in watching.rows()] == [keys[-1], keys[-2], *keys[14:12:-1]]


def test_projects_have_separate_histories(project: ProjectWithHistory, tmp_path: Path) -> None:
    (tmp_path / "other" / "project").mkdir(parents=True)
    project.begin(project.open(), "t")
    assert History(tmp_path / "other" / "project", project.data).rows() == []
    (tmp_path / "link").symlink_to(project.root)
    assert len(History(tmp_path / "link", project.data).rows()) == 1
