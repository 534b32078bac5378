"""Fixtures of the tests of edits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lcursor.process import sandbox
from lcursor.process.sandbox import open_sandbox


@pytest.fixture
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no sandbox work, as on an old kernel."""
    monkeypatch.setattr(sandbox, "LEVELS", ())
    open_sandbox.cache_clear()
    yield
    open_sandbox.cache_clear()
