"""Every test has a project of its own, and nothing of the person who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.project.trees import repository


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home directory without rules, prompts, index or settings of git."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.setenv("LCURSOR_DATA", str(folder / "data"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with some files committed."""
    root = repository(tmp_path / "project", "src/a.py", "src/net/url.py", "README.md")
    return root.resolve()
