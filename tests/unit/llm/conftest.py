"""What all tests of the models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.llm.serving import Machine, machine_of


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers of the test's own time to answer; a test that is about time sets its own."""
    monkeypatch.setattr("lcursor.llm.client.NEAR_CONNECT_S", 30.0)
    monkeypatch.setattr("lcursor.llm.client.NEAR_ANSWER_S", 30.0)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with a program that says it is llama-server."""
    with machine_of(monkeypatch) as made:
        made.install()
        yield made
