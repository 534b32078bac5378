"""Which files a folder has, and which are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.context import listing
from lcursor.errors import Cancelled
from tests.unit.project.trees import git, write


def test_git_says_what_is_ignored(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nout/\n")
    (root / ".lcursorignore").write_text("README.md\n")
    write(root, "a.log", "out/x.py", "new.py", "node_modules/m/i.js")
    found = listing.files(root)
    assert found.files == (".gitignore", ".lcursorignore", "new.py", "src/a.py", "src/net/url.py")
    assert found.note == ""


def test_a_folder_below_has_its_rules_from_above(root: Path) -> None:
    (root / ".lcursorignore").write_text("src/net/\n")
    assert listing.files(root / "src", root).files == ("a.py",)


def test_without_git_the_ignore_files_hold(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain, "a.py", "b.log", "build/x.py", "sub/c.py")
    (plain / ".gitignore").write_text("*.log\n")
    assert listing.files(plain).files == (".gitignore", "a.py", "sub/c.py")
    assert listing.files(plain / "sub", plain).files == ("c.py",)


def test_what_is_asked_for_by_name_is_listed_though_it_is_ignored(root: Path) -> None:
    (root / ".gitignore").write_text("build/\n")
    write(root, "build/x.py", "build/sub/y.py")
    assert listing.files(root / "build", root).files == ("sub/y.py", "x.py")


def test_a_file_that_is_staged_and_gone_does_no_harm(root: Path) -> None:
    (root / "src/a.py").unlink()
    assert "src/a.py" in listing.files(root).files  # who reads it says so
    git(root, "rm", "-q", "--cached", "src/a.py")
    assert "src/a.py" not in listing.files(root).files


def test_there_is_an_end(root: Path, tmp_path: Path) -> None:
    assert listing.files(root, most=1).note == "there are more than 1"
    assert len(listing.files(root, most=1).files) == 1
    plain = tmp_path / "plain"
    write(plain, "a", "b", "c")
    assert listing.files(plain, most=2).note == "there are more than 2"
    with pytest.raises(Cancelled):
        listing.files(plain, cancel=lambda: True)


def test_names_are_kept_for_a_moment(root: Path) -> None:
    before = listing.known(root)
    write(root, "later.py")
    assert listing.known(root) is before
    assert "later.py" in listing.files(root).files


NAMES = ["src/chat/turn.py", "src/turn.py", "docs/Turn.md", "src/return.py", "tests/test_turn.py"]


def test_ends_of_paths() -> None:
    assert listing.ending_in(NAMES, "chat/turn.py") == ["src/chat/turn.py"]
    assert listing.ending_in(NAMES, "turn.py") == ["src/chat/turn.py", "src/turn.py"]
    assert listing.ending_in(NAMES, "turn.md") == ["docs/Turn.md"]
    assert listing.ending_in(NAMES, "urn.py") == []
    assert listing.ending_in(NAMES, "") == []


RANKED = [
    ("turn", ["src/turn.py", "docs/Turn.md", "src/chat/turn.py", "src/return.py"]),
    ("src/t", ["src/turn.py"]),
    ("chat/", ["src/chat/turn.py"]),
    ("sct", ["src/chat/turn.py", "src/turn.py"]),
    ("zzz", []),
    ("", ["docs/Turn.md", "src/return.py", "src/turn.py"]),
]


@pytest.mark.parametrize(("typed", "first"), RANKED)
def test_what_is_typed_of_a_name(typed: str, first: list[str]) -> None:
    found = listing.ranked(NAMES, typed, 10)
    assert found[: len(first)] == first
    assert bool(found) == bool(first)


def test_folders_of_files() -> None:
    assert listing.folders(NAMES) == ["docs", "src", "src/chat", "tests"]
