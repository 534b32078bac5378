"""Runs of a fake agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.process.sandbox import open_sandbox
from tests.unit.acp.runs_of_agents import AgentRuns, Make


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function that starts a service whose runs a fake agent carries out."""
    if open_sandbox().level == "none":
        pytest.skip("no sandbox works here")
    made: list[AgentRuns] = []

    def make(**options: Any) -> AgentRuns:
        made.append(AgentRuns(tmp_path, monkeypatch, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()
