"""Power fails at each point of a write, an undo and a rollback: no file is damaged, undo works.

More states by chance: `pytest --hypothesis-profile thorough`.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor import system
from lcursor.changes import steps, text, undo
from lcursor.changes import write as writes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange
from lcursor.changes.steps import WriteStep
from lcursor.errors import EditMissing, EditUnsaved
from tests.fakes.power import Disk
from tests.thorough import is_thorough
from tests.unit.edit.desk import decision, hunk_at

pytestmark = pytest.mark.linux
NOTE = {"user.note": b"kept"}

CHANCES, THOROUGH_CHANCES = 2, 60
"""Number of states by chance at each point."""
Files = dict[str, bytes]


def edit(path: Path, to: str = "") -> FileChange:
    found = text.read(path)
    change = Change(0, 1, (found.lines[0],), ("NEW",))
    kind = "rename" if to else "edit"
    return FileChange(str(path), kind, to, found.digest, (change,))  # type: ignore[arg-type]


class ProjectOnDisk:
    """A project and the data of its history, on a disk that loses power."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root, self.data = place / "project", place / "data"
        self.root.mkdir(parents=True)
        # Random bytes: no part of one text is a part of another, and nothing is compressed.
        chance = random.Random(1)
        for name in ("a.py", "b.py", "gone.py", "old.py", "moved.py"):
            lines = [f"{chance.getrandbits(80):x}\n" for _ in range(30)]
            (self.root / name).write_text("".join(lines))
        (self.root / "c.py").write_bytes(b"\n")
        with (self.root / "gone.py").open("rb") as gone:
            system.set_extended_attributes(gone.fileno(), NOTE)
        os.link(self.root / "b.py", self.root / "linked.py")
        self.before = self.files()

    def changes(self) -> list[FileChange]:
        gone, new = self.root / "gone.py", str(self.root / "deep/er/n.py")
        return [
            edit(self.root / "a.py"),
            edit(self.root / "b.py"),
            edit(self.root / "c.py"),
            FileChange(str(gone), "delete", base=text.read(gone).digest),
            edit(self.root / "old.py", str(self.root / "sub/new.py")),
            FileChange(str(self.root / "moved.py"), "rename", str(self.root / "there.py")),
            FileChange(new, "create", changes=(Change(0, 0, (), ("n",)),)),
        ]

    def files(self) -> Files:
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def history(self) -> History:
        return History(self.root, self.data)  # as after a restart

    def begin(self) -> str:
        """Propose the changes, as the editor does."""
        changes = self.changes()
        bases = {each.path: text.read(each.path).lines for each in changes if each.base}
        return self.history().begin("t", changes, bases=bases)

    def fail(self, disk: Disk, check: Callable[[str], None]) -> int:
        """Lose power after each change of the disk; return the number of different states."""
        seen, count = set[str](), THOROUGH_CHANCES if is_thorough() else CHANCES
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)  # for speed
            for at in range(disk.now + 1):
                for number, state in enumerate(disk.states(at, count)):
                    if (shown := repr(sorted(state.files.items()))) not in seen:
                        seen.add(shown)
                        disk.restore(state)
                        check(f"after {at} of {disk.now} changes, state {number}")
        return len(seen)


@pytest.fixture
def project(tmp_path: Path) -> ProjectOnDisk:
    return ProjectOnDisk(tmp_path / "disk")


@pytest.fixture(params=["replaced", "in place"])
def in_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether files have an owner whom new files cannot have."""
    if request.param == "in place":
        monkeypatch.setattr(steps, "_can_be_replaced", lambda _: False)


def undone(project: ProjectOnDisk, key: str, where: str) -> None:
    """Recover and undo what was written: the old bytes are there."""
    history = project.history()
    writes.recover(history)
    try:
        assert undo.revert(history, key, "undo", []).problems == (), where
    except EditMissing:
        assert not any(turn.is_applied for turn in history.turns()), where
    assert project.files() == project.before, where
    assert history.damaged == 0, where


@pytest.mark.usefixtures("in_place")
def test_a_write_that_loses_power_can_be_undone(project: ProjectOnDisk) -> None:
    disk = Disk(project.place)
    with disk.recording():
        key = project.begin()
        writes.write(project.changes(), project.history(), key)
    after = project.files()

    def check(where: str) -> None:
        history = project.history()
        writes.recover(history)
        for name, data in project.files().items():
            assert data in (project.before.get(name), after.get(name)), f"{where}: {name}"
        undone(project, key, where)
        if project.history().redo_key():
            undo.revert(project.history(), key, "redo", [])
            assert project.files() == after, where

    assert project.fail(disk, check) > 100
    disk.restore(disk.state(disk.now, lambda: False, lambda found: found[0]))
    assert project.files() == after, "what was reported as done survives"


@pytest.mark.usefixtures("in_place")
def test_an_undo_that_loses_power_can_be_repeated(project: ProjectOnDisk) -> None:
    key = project.begin()
    writes.write(project.changes(), project.history(), key)
    after, disk = project.files(), Disk(project.place)
    with disk.recording():
        assert undo.revert(project.history(), key, "undo", []).problems == ()
    assert project.files() == project.before

    def check(where: str) -> None:
        writes.recover(project.history())
        for name, data in project.files().items():
            assert data in (project.before.get(name), after.get(name)), f"{where}: {name}"
        undone(project, key, where)

    assert project.fail(disk, check) > 40
    disk.restore(disk.state(disk.now, lambda: False, lambda found: found[0]))
    assert project.files() == project.before, "what was reported as done survives"
    kept = system.extended_attributes(str(project.root / "gone.py"))
    assert kept == NOTE


@pytest.mark.usefixtures("in_place")
def test_a_rollback_that_loses_power_leaves_the_old_bytes(
    project: ProjectOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, real = Disk(project.place), writes._do

    def fail(step: WriteStep) -> None:
        real(step)
        if step.path.endswith("/old.py"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with disk.recording(), monkeypatch.context() as patch:
        patch.setattr(writes, "_do", fail)
        key = project.begin()
        with pytest.raises(EditUnsaved, match="nothing was changed"):
            writes.write(project.changes(), project.history(), key)
    assert project.files() == project.before
    assert project.fail(disk, lambda where: undone(project, key, where)) > 100


def test_files_that_exchange_their_names_both_survive(project: ProjectOnDisk) -> None:
    """No order of the steps leaves each content a name all the time."""
    one, two = project.root / "old.py", project.root / "moved.py"
    changes = [edit(one, str(two)), edit(two, str(one))]
    disk = Disk(project.place)
    with disk.recording():
        writes.write(changes, project.history(), project.history().begin("t", changes))
    after = project.files()
    texts = {project.before[one.name], project.before[two.name], after[one.name], after[two.name]}

    def check(where: str) -> None:
        writes.recover(project.history())
        now = project.files()
        assert now.keys() == project.before.keys(), where
        assert {now[one.name], now[two.name]} <= texts, where
        assert now[one.name].split(b"\n", 1)[1] != now[two.name].split(b"\n", 1)[1], where

    assert project.fail(disk, check) > 20


def test_undoing_a_rename_loses_nothing_that_was_typed_since(project: ProjectOnDisk) -> None:
    old, new = project.root / "old.py", project.root / "sub/new.py"
    change = edit(old, str(new))
    key = project.history().begin("t", [change])
    writes.write([change], project.history(), key)
    new.write_bytes(typed := new.read_bytes() + b"typed since\n")
    disk = Disk(project.place)
    with disk.recording():
        assert undo.revert(project.history(), key, "undo", []).problems == ()
    undone = project.before["old.py"] + b"typed since\n"
    assert old.read_bytes() == undone

    def check(where: str) -> None:
        writes.recover(project.history())
        found = {path: path.read_bytes() for path in (old, new) if path.exists()}
        assert found, where
        assert found.items() <= {old: undone, new: typed}.items(), where

    assert project.fail(disk, check) > 10


def test_a_decision_about_a_hunk_damages_no_turn(project: ProjectOnDisk) -> None:
    """A turn is as before or as after; it is never damaged."""
    change = edit(project.root / "a.py")
    lines, (only,) = text.read(change.path).lines, change.changes
    disk = Disk(project.place)
    with disk.recording():
        key = project.history().begin("t", [change], bases={change.path: lines})
        hunk = hunk_at(("NEW", *lines[1:]), 0, only.old, only.new)
        project.history().decided(decision(key, change.path, hunk))

    def check(where: str) -> None:
        history = project.history()
        assert history.damaged == 0, where
        assert [turn.open for turn in history.turns()] in ([], [1], [0]), where

    assert project.fail(disk, check) > 10
    disk.restore(disk.state(disk.now, lambda: False, lambda found: found[0]))
    assert [turn.open for turn in project.history().turns()] == [0]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_content_is_stored_before_its_file_may_be_deleted(
    project: ProjectOnDisk, is_known: bool
) -> None:
    images, data = project.history().images, b"precious" * 9
    disk = Disk(project.place)
    with disk.recording():
        if is_known:
            images.put(data)
        key = images.put(data, fsync=True)
        images.sync_names()
    for state in disk.states(disk.now, 9):
        disk.restore(state)
        assert project.history().images.get(key) == data
