"""Watching when the kernel, the disk or the receiver fails. What is simulated is marked as such."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcursor import system
from lcursor.index import fs_events
from lcursor.index.watch import Watcher
from lcursor.project import listing
from lcursor.project.git import GitFailed
from tests.unit.index.watching.conftest import Start
from tests.unit.project.trees import write
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(300)  # surveys take long on a busy machine


@pytest.mark.linux
def test_events_that_the_kernel_lost(plain: Path, watched: Start) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    seen = watched(plain)
    folders = seen.watcher._watches
    assert isinstance(folders, fs_events.InotifyWatches)
    with folders._lock:  # the reading thread waits here, and the kernel's queue fills
        # Three events each; the reading thread may have taken many before it waits.
        for _ in range(most // 2):
            (plain / "again.py").touch()
            (plain / "again.py").unlink()
        write(plain, "lost/new.py", text="not seen")
        (plain / "sub").rename(plain / "moved")
    seen.wait_survey("lost/new.py")
    wait_for(lambda: seen.watcher.watched == {"", "lost", "moved", "moved/deep"})
    seen.settle()
    seen.told.clear()
    write(plain, "moved/deep/b.py", text="seen again")
    wait_for(lambda: "moved/deep/b.py" in seen.paths)


def connection(number: int) -> Callable[..., Any]:
    def add_callback(*words: Any) -> int:
        raise OSError(number, os.strerror(number))

    return add_callback


@pytest.mark.parametrize("when", ["at once", "later"])
@pytest.mark.linux
def test_the_limit_of_watches(
    plain: Path, watched: Start, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Simulated: the kernel's refusal is raised in place of watchdog's call."""
    from watchdog.observers.inotify_c import InotifyFD

    if when == "later":
        seen = watched(plain)
        monkeypatch.setattr(InotifyFD, "add_callback", connection(errno.ENOSPC))
        write(plain, "x/new.py")
    else:
        monkeypatch.setattr(InotifyFD, "add_callback", connection(errno.ENOSPC))
        seen = watched(plain)
    wait_for(lambda: seen.surveys)
    assert seen.watcher.mode == "polling"
    assert "limit of inotify watches is reached" in seen.said[0]
    assert seen.watcher.watched == set()


@pytest.mark.linux
def test_the_limit_of_instances(
    plain: Path, watched: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated: `inotify_init` of watchdog is replaced."""
    from watchdog.observers.inotify_c import InotifyFD

    monkeypatch.setattr(InotifyFD, "_create_inotify_fd", connection(errno.EMFILE))
    seen = watched(plain)
    assert seen.watcher.mode == "polling"
    assert "limit of inotify instances is reached" in seen.said[0]


@pytest.mark.linux
def test_a_project_takes_no_more_than_half_of_the_users_watches(
    plain: Path, watched: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "kernel_setting", {fs_events.LIMIT: "6"}.get)
    assert watched(plain).watcher.mode == "watching"  # of three directories
    monkeypatch.setattr(system, "kernel_setting", {fs_events.LIMIT: "5"}.get)
    assert watched(plain).watcher.mode == "polling"


def test_a_missing_root_is_not_an_empty_project(plain: Path, watched: Start) -> None:
    seen = watched(plain)
    away = plain.with_name("away")
    plain.rename(away)
    assert seen.paths == set()
    away.rename(plain)
    seen.wait_survey("a.py")
    seen.settle()
    seen.told.clear()
    write(plain, "a.py", text="back")
    wait_for(lambda: "a.py" in seen.paths)


@pytest.mark.parametrize("error", [GitFailed("git ended with 128"), PermissionError("no access")])
def test_a_project_that_cannot_be_watched_at_first_is_polled(
    plain: Path, watched: Start, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> Any:
        raise error

    monkeypatch.setattr(Watcher, "_watch_tree", fail)
    seen = watched(plain)
    wait_for(lambda: seen.watcher.mode == "polling")
    assert str(error) in seen.said[-1]
    assert (seen.told, len(seen.surveys)) == ([], 1)


def test_a_failing_receiver_gets_the_next_change(plain: Path) -> None:
    told: list[frozenset[str]] = []
    remarks: list[str] = []

    def changed(paths: frozenset[str]) -> None:
        told.append(paths)
        if len(told) == 1:
            raise RuntimeError("broken")

    watcher = Watcher(plain, changed, set, remarks.append)
    watcher.use(listing.survey(plain))
    try:
        assert watcher.wait_ready(30)
        write(plain, "a.py", text="1")
        wait_for(lambda: len(told) == 1)
        wait_for(lambda: remarks)
        assert "broken" in remarks[0]
        write(plain, "a.py", text="2")
        wait_for(lambda: len(told) == 2)
    finally:
        watcher.stop()


@pytest.mark.parametrize("moment", ["at once", "when ready", "while told"])
def test_stopping_ends_all_threads(plain: Path, moment: str) -> None:
    before = set(threading.enumerate())
    told = threading.Event()
    watcher: Watcher

    def changed(paths: frozenset[str]) -> None:
        watcher.stop()
        told.set()

    survey = listing.survey(plain)
    watcher = Watcher(plain, changed, set)
    watcher.use(survey)
    if moment != "at once":
        assert watcher.wait_ready(30)
    if moment == "while told":
        write(plain, "a.py", text="told")
        assert told.wait(30)
    watcher.stop()
    wait_for(lambda: set(threading.enumerate()) <= before, what=str(threading.enumerate()))
