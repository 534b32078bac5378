"""Runs over a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.runs_over_http import Make, Session


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function that starts a service with a script; requests are repeated quickly."""
    monkeypatch.setattr("lcursor.agent.loop.RETRY_S", (0.01, 0.05, 0.1))
    made: list[Session] = []

    def make(script: Any, **options: Any) -> Session:
        made.append(Session(tmp_path, script, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
