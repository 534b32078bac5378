"""A watcher over a real directory, and what it told."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcursor.index.watch import Watcher
from lcursor.project import listing
from tests.unit.project.trees import repository, write
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcursor.index.watch.QUIET_S", 0.12)
    monkeypatch.setattr("lcursor.index.watch.JOIN_S", 30.0)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


class Watched:
    """A watcher, and what it told."""

    def __init__(self, root: Path, survey: listing.Survey | None = None) -> None:
        self.root = root
        self.told: list[frozenset[str]] = []
        self.surveys: list[listing.Survey] = []
        self.said: list[str] = []
        self.watcher = Watcher(root, self.told.append, self._survey, self.said.append)
        self.watcher.use(survey or listing.survey(root))
        assert self.watcher.wait_ready(30)

    def _survey(self) -> None:
        wait_for(self.root.is_dir)
        self.surveys.append(listing.survey(self.root))
        self.watcher.use(self.surveys[-1])

    @property
    def paths(self) -> set[str]:
        return {path for paths in list(self.told) for path in paths}

    def wait(self, *paths: str) -> None:
        """Wait until these and only these were told since the last time."""
        wait_for(lambda: self.paths >= set(paths), what=f"told: {self.told}")
        self.settle()
        assert self.paths == set(paths)
        self.told.clear()

    def settle(self) -> None:
        """Wait until all that happened so far was handled: a change that comes after it was."""
        end_s = time.monotonic() + 120

        def is_told() -> bool:
            return "settled.py" in self.paths

        while not is_told():  # a survey may have it instead
            write(self.root, "settled.py", text=str(time.monotonic()))
            with contextlib.suppress(pytest.fail.Exception):
                wait_for(is_told, timeout_s=1)
            assert time.monotonic() < end_s, self.told
        while "settled.py" in self.paths:
            self.told[:] = [paths - {"settled.py"} for paths in self.told]

    def wait_survey(self, *paths: str) -> set[str]:
        """Wait for a requested survey that has these files; return all that it has."""

        def found() -> set[str]:
            for survey in self.surveys:
                there = {file.path for file in survey.files}
                if there.issuperset(paths):
                    return there
            return set()

        there: set[str] = wait_for(found, what="no such survey was requested")
        self.told.clear()
        self.surveys.clear()
        return there


@pytest.fixture
def watched() -> Iterator[Callable[..., Watched]]:
    """Start watchers that end with the test."""
    started: list[Watched] = []

    def start(root: Path, survey: listing.Survey | None = None) -> Watched:
        started.append(Watched(root, survey))
        return started[-1]

    yield start
    for each in started:
        each.watcher.stop()
        assert each.watcher._thread
        assert not each.watcher._thread.is_alive()


@pytest.fixture(params=["git", "no git"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project that is a repository, and one that is none."""
    top = tmp_path / "project"
    if request.param == "git":
        repository(top, "a.py", "settled.py", "sub/deep/b.py", ignore="*.log\n/gen/\n")
    else:
        write(top, "a.py", "settled.py", "sub/deep/b.py")
        (top / ".gitignore").write_text("*.log\n/gen/\n")
    return top


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A project that is no repository, for what is the same in one."""
    top = tmp_path / "project"
    write(top, "a.py", "settled.py", "sub/deep/b.py")
    (top / ".gitignore").write_text("*.log\n/gen/\n")
    return top


Start = Callable[..., Watched]
