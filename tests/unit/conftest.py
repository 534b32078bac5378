"""Fixtures of the tests that copy projects or ask a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.process import sandbox
from lcursor.process.sandbox import open_sandbox


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let copies of projects be in a folder of the test; return it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/lcursor/checks"


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers of the test's own time to answer; a test that is about time sets its own."""
    monkeypatch.setattr("lcursor.llm.client.CONNECT_S", 30.0)
    monkeypatch.setattr("lcursor.llm.client.ANSWER_S", 30.0)


@pytest.fixture
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no sandbox work, as on an old kernel."""
    monkeypatch.setattr(sandbox, "LEVELS", ())
    open_sandbox.cache_clear()
    yield
    open_sandbox.cache_clear()
