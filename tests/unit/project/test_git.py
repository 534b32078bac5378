"""What git is asked, and how."""

from __future__ import annotations

from pathlib import Path

from lcursor.project import git
from tests.unit.project.trees import repository


def test_a_rule_that_ignores_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "project", "a.py", ignore="*.log\n!keep.log\nbuild/\n")
    (root / "build").mkdir()
    asked = ["a.py", "b.log", "keep.log", "build", "build/x/y.py"]
    assert git.ignored(root, asked) == {
        "b.log": ".gitignore:1: *.log",
        "build": ".gitignore:3: build/",
        "build/x/y.py": ".gitignore:3: build/",
    }
