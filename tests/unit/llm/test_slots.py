"""The states of chats that a server keeps on disk do not fill it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lcursor.llm import launch
from tests.unit.llm.serving import Machine, folder_of, machine_of


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with a program that says it is llama-server."""
    with machine_of(monkeypatch) as made:
        made.install()
        yield made


def test_old_states_of_chats_are_forgotten(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(machine)
    folder.make()
    for number in range(3):
        path = folder.slots_path / f"{number}"
        path.write_bytes(bytes(100))
        os.utime(path, (number, number))
    monkeypatch.setattr(launch, "MOST_SLOT_BYTES", 250)
    machine.server().ensure()
    assert sorted(path.name for path in folder.slots_path.iterdir()) == ["1", "2"]
