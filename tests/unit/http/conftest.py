"""What all tests of the HTTP client share."""

from __future__ import annotations

import pytest

from lcursor.http.client import Limits


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers of the test's own time to answer; a test that is about time sets its own."""
    limits = Limits(connect_s=30.0, answer_s=30.0)
    monkeypatch.setattr("lcursor.http.client.DEFAULT_LIMITS", limits)
