"""How the attempts at one task are compared."""

from __future__ import annotations

from typing import Any

from lcursor.agent import attempts
from lcursor.agent.run_log import RunState
from lcursor.changes.records import Change, FileChange


def state(attempt: int, **other: Any) -> RunState:
    known: dict[str, Any] = {
        "key": f"r{attempt}",
        "root": "/p",
        "state": "done",
        "attempt": attempt,
        "turn": f"t{attempt}",
        "paths": ["/p/a.py"],
        "digest": f"d{attempt}",
        "added": 3,
        "removed": 1,
    }
    return RunState(**{**known, **other})


def order(*states: RunState) -> list[int]:
    return [row["attempt"] for row in attempts.compared(states)]


def test_tests_come_first_then_size_then_agreement() -> None:
    assert order(
        state(1, added=1),
        state(2, is_checked=True, added=9),
        state(3, is_checked=True, added=8),
        state(4, turn="", paths=[], digest="", added=0, removed=0),
        state(5, state="running", added=0),
    ) == [3, 2, 1, 4, 5]
    assert order(
        state(1, is_checked=True, changes_tests=True, removed=0), state(2, is_checked=True)
    ) == [2, 1]  # fmt: skip
    assert order(
        state(1), state(2, digest="same"), state(3, digest="same")
    ) == [2, 3, 1]  # fmt: skip


def test_equal_changes_and_files_that_no_other_attempt_changes() -> None:
    rows = attempts.compared([state(1, digest="d"), state(2, digest="d", is_checked=True)])
    assert [(row["attempt"], row["same_as"]) for row in rows] == [(2, 0), (1, 2)]
    both = ["/p/a.py", "/p/sub/b.py"]
    rows = attempts.compared([state(2, digest="d1"), state(1), state(3, paths=both)])
    found = {row["attempt"]: row for row in rows}
    assert [found[number]["same_as"] for number in (1, 2, 3)] == [0, 1, 0]
    assert (found[3]["names"], found[3]["only"]) == (["a.py", "sub/b.py"], ["sub/b.py"])
    assert found[1]["only"] == []


def test_what_counts_as_the_same_change() -> None:
    def digest(*new: str, path: str = "/p/a.py", row: int = 1) -> str:
        return attempts.digest([FileChange(path, changes=(Change(row, row + 1, ("x",), new),))])

    assert digest("a = 1", "", "b") == digest("a = 1", "b  ")
    assert digest("a = 1") != digest("a = 2")
    assert digest("a") != digest("  a")  # which means something in Python
    assert digest("a") != digest("a", path="/p/b.py")
    assert digest("a") != digest("a", row=2)
    assert attempts.digest([]) == ""


def test_only_the_first_attempt_is_greedy() -> None:
    assert [attempts.temperature(each) for each in (0, 1, 2)] == [0.0, 0.0, attempts.TEMPERATURE]
