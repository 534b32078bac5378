"""How runs are stored, and for how long."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent import run_log, runs
from lcursor.agent.run_log import RunLog
from lcursor.edit.checkpoints.history import History

DAY_S = 86_400.0


def run_of(root: Path, folder: Path, turn: str, *, days: float, is_over: bool = True) -> Path:
    """Store a run of some days ago."""
    path = runs.create(root, folder)
    log = RunLog(path)
    names = ("root", "task", "context", "policy", "model", "dialect", "sandbox", "note")
    log.start(key=path.name, **dict.fromkeys(names, ""))
    if is_over:
        log.write("done", state="done", message="", is_checked=True, turn=turn, paths=[])
    then = time.time() - days * DAY_S
    os.utime(path / run_log.NAME, (then, then))
    return path


@pytest.mark.parametrize(
    ("old", "new", "stored"),
    [
        ({"ids": [1, 2]}, {"ids": [1, 2, 3]}, {"ids": [2, [3]]}),
        ({"ids": [1, 2]}, {"ids": [1]}, {"ids": [1, []]}),
        ({"ids": [1, 2]}, {"ids": [1, 3]}, {"ids": [1, [3]]}),
        ({"text": "ab"}, {"text": "abc"}, {"text": [2, "c"]}),
        ({"ids": [1], "n": 1}, {"ids": [1], "n": 1}, {}),
        ({"n": 1}, {"n": 2, "more": None}, {"n": {"value": 2}, "more": {"value": None}}),
        ({"n": [1]}, {"n": "1"}, {"n": {"value": "1"}}),
        ({"n": 1}, {}, {"n": None}),
    ],
)
def test_a_conversation_is_stored_as_what_is_new(old: Any, new: Any, stored: Any) -> None:
    assert run_log.difference(old, new) == stored
    assert run_log.patch(old, stored) == new


@pytest.mark.parametrize(
    ("days", "turn", "is_over", "is_deleted"),
    [
        (6, "known", True, False),
        (8, "known", True, True),
        (8, "", True, True),
        (8, "missing", True, False),
        (8, "", False, False),
        (91, "missing", True, True),
        (91, "", False, True),
    ],
)
def test_old_runs_are_deleted(
    tmp_path: Path, days: float, turn: str, is_over: bool, is_deleted: bool
) -> None:
    root, folder, edits = (tmp_path / name for name in ("project", "agents", "edits"))
    root.mkdir()
    key = History(root, edits).begin("task", [])
    path = run_of(root, folder, key if turn == "known" else turn, days=days, is_over=is_over)
    (path / "tree/closed").mkdir(parents=True)
    (path / "tree/link").symlink_to(root)
    with runs.lock(path):
        runs.delete_old(root, folder, edits)
    assert path.exists()  # it was executed
    runs.delete_old(root, folder, edits)
    assert path.exists() != is_deleted
    assert root.exists()


def test_a_run_that_was_killed_before_it_began_is_not_listed_and_deleted(tmp_path: Path) -> None:
    key = run_of(tmp_path, tmp_path / "agents", "", days=1, is_over=False).name
    path = runs.create(tmp_path, tmp_path / "agents")
    (path / "tree").mkdir()
    assert [row["run"] for row in runs.rows(tmp_path, tmp_path / "agents")] == [key]
    assert runs.find(tmp_path, "last", tmp_path / "agents").name == key
    for days in (0, 2):
        os.utime(path, (time.time() - days * DAY_S,) * 2)
        runs.delete_old(tmp_path, tmp_path / "agents")
        assert path.exists() == (days == 0)
