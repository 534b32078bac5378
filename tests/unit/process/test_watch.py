"""The limits of a command on a machine where other programs run, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcursor import system
from lcursor.process import watch

MIB = 1 << 20


@pytest.mark.linux
def test_memory_that_another_program_gives_back_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = iter([300 * MIB, 0, 200 * MIB])  # at the start it belongs to another program
    monkeypatch.setattr(watch, "_shared_memory", lambda: next(used))
    monkeypatch.setattr(system, "shared_bytes", lambda pids: 200 * MIB)
    it = watch.Watch(
        [tmp_path],
        max_bytes=MIB << 20,
        max_files=1 << 30,
        max_processes=1 << 20,
        max_shared_bytes=128 * MIB,
    )
    assert it.exceeded(os.getpid()) == ""
    assert "shared more than 128 MiB" in it.exceeded(os.getpid())
