"""Watching a whole tree through watchdog's observer, as on macOS; here with Linux's observer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from lcursor.index import fs_events
from tests.unit.index.watching.conftest import Start
from tests.unit.project.trees import git, repository, write
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.timeout(300),
    # Watchdog's inotify observer, which no platform uses here, may watch a new directory twice.
    pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def _not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs_events, "IS_LINUX", False)


def test_files_are_saved_created_moved_and_deleted(root: Path, watched: Start) -> None:
    seen = watched(root)
    assert isinstance(seen.watcher._watches, fs_events.TreeWatches)
    write(root, "sub/deep/b.py", text="y = 2\n")
    seen.wait("sub/deep/b.py")
    (root / "a.py").rename(root / "sub/c.py")
    seen.wait("a.py", "sub/c.py")
    (root / "sub/c.py").unlink()
    seen.wait("sub/c.py")


def test_new_and_renamed_directories_are_watched(plain: Path, watched: Start) -> None:
    seen = watched(plain)
    write(plain, "x/y/one.py", "x/node_modules/m.js")
    seen.wait("x/y/one.py")
    assert seen.watcher.watched == {"", "sub", "sub/deep", "x", "x/y"}
    (plain / "sub").rename(plain / "other")
    seen.wait("sub/deep/b.py", "other/deep/b.py")
    assert seen.watcher.watched == {"", "other", "other/deep", "x", "x/y"}
    write(plain, "other/deep/b.py", text="again")
    seen.wait("other/deep/b.py")


def test_ignored_directories_are_not_reported(root: Path, watched: Start) -> None:
    write(root, "node_modules/m/x.js", "gen/g.py")
    seen = watched(root)
    write(root, "new.py", "node_modules/m/x.js", "node_modules/n/y.js", "gen/g.py", "noise.log")
    seen.wait("new.py")
    assert seen.watcher.watched == {"", "sub", "sub/deep"}


def test_reading_is_not_a_change(plain: Path, watched: Start) -> None:
    seen = watched(plain)
    (plain / "a.py").read_text()
    list((plain / "sub").iterdir())
    seen.wait()


def test_a_checkout_requests_a_survey(tmp_path: Path, watched: Start) -> None:
    main = repository(tmp_path / "main", "a.py")
    git(main, "worktree", "add", "-q", str(tmp_path / "feature"), "-b", "feature")
    for project in (main, tmp_path / "feature"):
        seen = watched(project)
        git(project, "checkout", "-qb", f"another-{project.name}")
        wait_for(partial(getattr, seen, "surveys"))


def test_a_project_that_cannot_be_watched_is_polled(tmp_path: Path, watched: Start) -> None:
    write(tmp_path / "project", "a.py")
    with pytest.MonkeyPatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise OSError("no more watches")

        patch.setattr("watchdog.observers.api.BaseObserver.schedule", fail)
        seen = watched(tmp_path / "project")
    wait_for(lambda: seen.watcher.mode == "polling")
    assert "no more watches" in seen.said[0]
