"""Projects with a copy for an agent, for the tests of trees and results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from lcursor.workspace.tree import Tree, TreeChange
from tests.unit.project.trees import git


class Project:
    """A project, and the folder of a run."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home = place / "home"
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        self.home, self.root, self.run = home, place / "project", place / "run"

    def repository(self, files: Mapping[str, str | bytes], ignore: str = "") -> Path:
        """Make the project a repository with some files committed."""
        self.root.mkdir(exist_ok=True)
        git(self.root, "init", "-q", "-b", "main")
        self.write({**files, ".gitignore": ignore} if ignore else files)
        if files or ignore:
            git(self.root, "add", "-f", ".")
            git(self.root, "commit", "-qm", "one")
        return self.root

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of the user."""
        write(self.root, files)

    def tree(self, folder: str = "", **unsaved: str) -> Tree:
        """Copy the project."""
        run = self.run.with_name(folder) if folder else self.run
        texts = {str(self.root / name): body for name, body in unsaved.items()}
        return Tree.create(self.root, run, unsaved=texts)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return Project(tmp_path, monkeypatch)


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, with their folders."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files, and the targets of links, outside of `.git`."""
    found = {}
    for here, folders, names in os.walk(folder):
        if here == str(folder) and ".git" in folders:
            folders.remove(".git")
        links = [each for each in folders if os.path.islink(os.path.join(here, each))]
        for name in (*names, *links):
            path = Path(here, name)
            key = os.path.relpath(path, folder)
            is_link = path.is_symlink()
            found[key] = os.fsencode(os.readlink(path)) if is_link else path.read_bytes()
    return found


def everything_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and content of every file, to see later whether something was written."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def kinds(found: list[TreeChange]) -> dict[str, str]:
    """Return the kind of each change by its path."""
    return {each.path: each.kind for each in found}
