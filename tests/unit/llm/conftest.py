"""What all tests of the models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.llm.serving import Machine, machine_of


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with a program that says it is llama-server."""
    with machine_of(monkeypatch) as made:
        made.install()
        yield made
