"""The files of what a server had read: half of one is never taken for a whole one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lcursor.llm import slots
from tests.unit.llm.serving import Machine, folder_of
from tests.waiting import wait_for


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_saved_state_gets_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.kv"
    path.write_text("old")
    (tmp_path / slots.part("a.kv")).write_text("new")
    slots.finish(path)
    assert (names(tmp_path), path.read_text()) == (["a.kv"], "new")
    with pytest.raises(FileNotFoundError):
        slots.finish(path)


def test_a_state_that_nobody_waited_for_gets_its_name_once_it_is_written(tmp_path: Path) -> None:
    for name, age_s in (("a.kv", 60.0), ("b.kv", 0.0)):
        path = tmp_path / slots.part(name)
        path.write_text(name)
        then_s = time.time() - age_s
        os.utime(path, (then_s, then_s))
    slots.finish_stale(tmp_path)
    assert names(tmp_path) == ["a.kv", "b.kv.part"]


def test_a_state_goes_with_what_is_written_of_it(tmp_path: Path) -> None:
    for name in ("a.kv", "a.kv.part", "b.kv"):
        (tmp_path / name).touch()
    slots.forget(tmp_path / "a.kv")
    slots.forget(tmp_path / "a.kv")
    assert names(tmp_path) == ["b.kv"]


def test_the_oldest_states_are_deleted_above_the_limit(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"{number}.kv"
        path.write_bytes(bytes(100))
        os.utime(path, (number, number))
    slots.forget_old(tmp_path, 250)
    assert names(tmp_path) == ["2.kv", "3.kv"]
    slots.forget_old(tmp_path, 50)
    assert names(tmp_path) == ["3.kv"]


@pytest.mark.process
def test_a_server_begins_without_old_states_and_without_halves(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(machine)
    folder.create()
    for number in range(3):
        path = folder.slots_path / f"{number}"
        path.write_bytes(bytes(100))
        os.utime(path, (number, number))
    (folder.slots_path / slots.part("3")).touch()
    monkeypatch.setattr(slots, "MAX_BYTES", 250)
    machine.server().ensure()
    assert names(folder.slots_path) == ["1", "2"]


@pytest.mark.process
def test_a_state_is_renamed_by_the_server_process_if_its_caller_has_ended(machine: Machine) -> None:
    folder = folder_of(machine)
    machine.server().ensure()
    path = folder.slots_path / slots.part("a.kv")
    path.write_text("state")
    then_s = time.time() - 2 * slots.STABLE_S
    os.utime(path, (then_s, then_s))
    wait_for(lambda: names(folder.slots_path) == ["a.kv"], what="the keeper looks")
