"""What all tests of the HTTP client share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers of the test's own time to answer; a test that is about time sets its own."""
    monkeypatch.setattr("lcursor.http.client.CONNECT_S", 30.0)
    monkeypatch.setattr("lcursor.http.client.ANSWER_S", 30.0)
