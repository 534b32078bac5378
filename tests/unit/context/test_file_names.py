"""Which files a folder has, and which are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.context import file_names
from lcursor.project import listing
from tests.unit.project.trees import write


def test_names_are_kept_for_a_moment(root: Path) -> None:
    before = file_names.cached(root)
    write(root, "later.py")
    assert file_names.cached(root) is before
    assert "later.py" in listing.names(root).files


NAMES = ["src/chat/turn.py", "src/turn.py", "docs/Turn.md", "src/return.py", "tests/test_turn.py"]


def test_files_are_found_by_the_end_of_their_path() -> None:
    assert file_names.ending_in(NAMES, "chat/turn.py") == ["src/chat/turn.py"]
    assert file_names.ending_in(NAMES, "turn.py") == ["src/chat/turn.py", "src/turn.py"]
    assert file_names.ending_in(NAMES, "turn.md") == ["docs/Turn.md"]
    assert file_names.ending_in(NAMES, "urn.py") == []
    assert file_names.ending_in(NAMES, "") == []


RANKED = [
    ("turn", ["src/turn.py", "docs/Turn.md", "src/chat/turn.py", "src/return.py"]),
    ("src/t", ["src/turn.py"]),
    ("chat/", ["src/chat/turn.py"]),
    ("sct", ["src/chat/turn.py", "src/turn.py"]),
    ("zzz", []),
    ("", ["docs/Turn.md", "src/return.py", "src/turn.py"]),
]


@pytest.mark.parametrize(("typed", "first"), RANKED)
def test_files_are_found_by_a_part_of_their_name(typed: str, first: list[str]) -> None:
    found = file_names.ranked(NAMES, typed, 10)
    assert found[: len(first)] == first
    assert bool(found) == bool(first)


def test_the_folders_of_files() -> None:
    assert file_names.folders(NAMES) == ["docs", "src", "src/chat", "tests"]
