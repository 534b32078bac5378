"""The names of the files below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.project import listing
from tests.unit.project.trees import git, write


def test_git_decides_what_is_ignored(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nout/\n")
    (root / ".lcursorignore").write_text("README.md\n")
    write(root, "a.log", "out/x.py", "new.py", "node_modules/m/i.js")
    found = listing.names(root)
    assert found.files == (".gitignore", ".lcursorignore", "new.py", "src/a.py", "src/net/url.py")
    assert found.note == ""


def test_a_folder_below_has_its_rules_from_above(root: Path) -> None:
    (root / ".lcursorignore").write_text("src/net/\n")
    assert listing.names(root / "src", root).files == ("a.py",)


def test_without_git_the_ignore_files_hold(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain, "a.py", "b.log", "build/x.py", "sub/c.py")
    (plain / ".gitignore").write_text("*.log\n")
    assert listing.names(plain).files == (".gitignore", "a.py", "sub/c.py")
    assert listing.names(plain / "sub", plain).files == ("c.py",)


def test_what_is_asked_for_by_name_is_listed_though_it_is_ignored(root: Path) -> None:
    (root / ".gitignore").write_text("build/\n")
    write(root, "build/x.py", "build/sub/y.py")
    assert listing.names(root / "build", root).files == ("sub/y.py", "x.py")


def test_a_file_that_is_staged_and_gone_does_no_harm(root: Path) -> None:
    (root / "src/a.py").unlink()
    assert "src/a.py" in listing.names(root).files  # who reads it says so
    git(root, "rm", "-q", "--cached", "src/a.py")
    assert "src/a.py" not in listing.names(root).files


def test_there_is_an_end(root: Path, tmp_path: Path) -> None:
    assert listing.names(root, max_files=1).note == "there are more than 1"
    assert len(listing.names(root, max_files=1).files) == 1
    plain = tmp_path / "plain"
    write(plain, "a", "b", "c")
    assert listing.names(plain, max_files=2).note == "there are more than 2"
    with pytest.raises(Cancelled):
        listing.names(plain, cancel=lambda: True)
