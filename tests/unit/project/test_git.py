"""What git is asked, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.project import git
from tests.unit.project.trees import repository


def test_git_reads_no_other_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "project", "a.py")
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a commit's editor
    found = git.output(root, "rev-parse", "--show-toplevel", max_bytes=1000)
    assert found.data.decode().strip() == str(root)


def test_a_rule_that_ignores_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py", ignore="*.log\n!keep.log\nbuild/\n")
    (root / "build").mkdir()
    asked = ["a.py", "b.log", "keep.log", "build", "build/x/y.py"]
    assert git.ignored(root, asked) == {
        "b.log": ".gitignore:1: *.log",
        "build": ".gitignore:3: build/",
        "build/x/y.py": ".gitignore:3: build/",
    }
