"""How runs are stored, and for how long."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any, Final

import pytest

from lcursor.agent import run_log, runs
from lcursor.agent.run_log import RunLog
from lcursor.changes.history import History
from lcursor.errors import AgentBusy, AgentFailed
from lcursor.storage import file_lock, stored

DAY_S = 86_400.0


def run_of(root: Path, folder: Path, turn: str, *, days: float, is_over: bool = True) -> Path:
    """Store a run of some days ago."""
    path = runs.create(root, folder)
    log = RunLog(path)
    names = ("task", "context", "model", "dialect", "sandbox", "note")
    log.start(key=path.name, root=str(root), policy="auto", **dict.fromkeys(names, ""))
    if is_over:
        log.write("done", state="done", message="", is_checked=True, turn=turn, paths=[])
    then = time.time() - days * DAY_S
    os.utime(path / run_log.NAME, (then, then))
    return path


def test_the_lock_of_a_run_is_waited_for_a_moment(tmp_path: Path) -> None:
    """A child of a killed process may hold it until it becomes another program."""
    fd = file_lock.try_lock(tmp_path / runs.LOCK)
    assert fd is not None
    threading.Timer(0.2, os.close, [fd]).start()
    with (
        runs.lock(tmp_path),
        pytest.raises(AgentBusy, match="already running"),
        runs.lock(tmp_path, wait_s=0.1),
    ):
        pass


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
        runs.delete_old(folder, edits)
    assert path.exists()  # it was executed
    runs.delete_old(folder, edits)
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
        runs.delete_old(tmp_path / "agents")
        assert path.exists() == (days == 0)


ANSWER: Final = {
    "op": "answer", "text": "", "calls": [], "problem": "", "finish": "stop", "seconds": 1.0,
    "usage": {"read_tokens": 5}, "cached_share": 0.5, "talk": {"ids": {"value": [1]}},
}  # fmt: skip
END: Final = {
    "op": "end", "step": 1, "tree": "t", "digest": "d", "seconds": 1.0,
    "observation": {"text": "x"},
}  # fmt: skip
NEWER: Final = {"op": "start", "version": 2, "at_s": 0.0, "policy": "auto"} | dict.fromkeys(
    ("key", "root", "task", "context", "model", "dialect", "sandbox", "note"), "x"
)


def append(path: Path, *rows: Any) -> None:
    """Add lines to the record of a run, as an older version wrote them, that is without sums."""
    with (path / run_log.NAME).open("a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


@pytest.mark.parametrize(
    "row",
    [
        {**ANSWER, "usage": {"read_tokens": "5"}},
        {**ANSWER, "usage": None},
        {**ANSWER, "calls": [{"tool": "bash", "arguments": 3}]},
        {**ANSWER, "calls": {}},
        {**ANSWER, "talk": {"ids": [3, [1]]}},
        {**ANSWER, "talk": {"ids": [0]}},
        {**ANSWER, "seconds": "1"},
        END,
        {"op": "call", "tool": "finish", "arguments": {}},
        {"op": "decided", "step": True},
        {"op": "done", "state": "over", "message": "", "turn": "", "is_checked": 1, "paths": []},
        {"op": "said", "text": None},
        {"op": "_row"},
        {"op": ["start"]},
        {"op": "apply"},
        {},
        [],
        None,
        "start",
        [[]] * 3,
    ],
    ids=str,
)
def test_a_damaged_line_is_skipped_and_reported(tmp_path: Path, row: Any) -> None:
    path = run_of(tmp_path, tmp_path / "agents", "", days=0, is_over=False)
    append(path, row, ANSWER)
    log = RunLog.open(path)
    assert log.damaged == 1
    assert "1 damaged lines of its record were skipped" in log.state.note
    assert (log.state.answers, log.state.tokens, log.state.talk) == (1, 5, {"ids": [1]})
    assert log.state.steps == []


def test_a_changed_line_is_found_by_its_checksum(tmp_path: Path) -> None:
    path = run_of(tmp_path, tmp_path / "agents", "", days=0, is_over=False)
    log = RunLog(path)
    for text in ("first", "second", "third"):
        log.write("said", text=text)
    file = path / run_log.NAME
    file.write_bytes(file.read_bytes().replace(b"second", b"sevond"))
    again = RunLog.open(path)
    assert (again.state.said, again.damaged) == (["first", "third"], 1)


def test_only_the_numbers_of_tokens_are_added_to(tmp_path: Path) -> None:
    path = run_of(tmp_path, tmp_path / "agents", "", days=0, is_over=False)
    append(path, {**ANSWER, "usage": {"read_tokens": 5, "failed_gates": 9, "unknown": 1}})
    log = RunLog.open(path)
    assert (log.damaged, log.state.failed_gates, log.state.tokens) == (0, 0, 5)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([NEWER], "a newer lcursor wrote this run"),
        ([{**NEWER, "version": "2"}], "it has no valid first line"),
        ([], "it has no valid first line"),
        (["\0" * 100], "it has no valid first line"),
    ],
    ids=["newer", "damaged", "empty", "zeros"],
)
def test_an_unreadable_run_prevents_nothing_and_is_listed(
    tmp_path: Path, rows: list[Any], why: str
) -> None:
    root, folder = tmp_path / "project", tmp_path / "agents"
    older = run_of(root, folder, "", days=0)
    path = runs.create(root, folder)
    append(path, *rows)
    with pytest.raises(AgentFailed, match=why):
        RunLog.open(path)
    listed = {row["run"]: row for row in runs.rows(root, folder)}
    assert listed.keys() == {older.name, path.name}
    assert why in listed[path.name]["task"]
    assert (listed[path.name]["state"], listed[older.name]["state"]) == ("failed", "done")
    for days in (8, 80, 91):
        then = time.time() - days * DAY_S
        os.utime(path / run_log.NAME, (then, then))
        runs.delete_old(folder)
        assert path.exists() == (days < 90)


def test_lines_have_a_checksum_that_older_ones_lack() -> None:
    row = {"op": "said", "text": 'a","crc":1}', "more": {"crc": 1}}
    line = stored.encode_line(row)
    assert stored.decode_line(line.rstrip(b"\n")) == row
    assert stored.decode_line(json.dumps(row).encode()) == row
    for at in range(len(line) - 1):
        damaged = line[:at] + bytes([line[at] ^ 1]) + line[at + 1 : -1]
        try:
            found = stored.decode_line(damaged)
            assert {name: found[name] for name in row} == row, "only the sum is lost"
        except ValueError:
            continue


def test_the_last_of_runs_that_began_at_the_same_time(tmp_path: Path) -> None:
    made = [runs.create(tmp_path, tmp_path / "agents") for _ in range(20)]
    for each in made:
        (each / run_log.NAME).touch()
    assert runs.find(tmp_path, "last", tmp_path / "agents") == made[-1]
