"""Runs that are killed at each line of their log, before and after it is written."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent.loop import Loop
from lcursor.agent.records import Policy
from lcursor.agent.run_log import NAME, RunLog
from lcursor.errors import ServerFailed
from lcursor.stop import Stop
from tests.fakes.agent import (
    Scripted,
    Watcher,
    bash,
    create,
    finish,
    parts,
    replace,
    view,
)
from tests.unit.agent.test_loop import start

JOURNAL = "journal"


def append(number: int) -> str:
    return bash(f"echo {number} >> {JOURNAL}")


CASES: dict[str, tuple[list[Scripted], Policy, str]] = {
    "edits and commands": (
        [
            view("a.py"), append(1), replace("a.py", "x = 1", "x = 2"), append(2),
            create("new.py", "new\n"), replace("a.py", "x = 2", "x = 3"), append(3), finish(),
        ], "auto", "",
    ),
    "several calls": (
        [
            "\n".join([view("a.py"), replace("a.py", "x = 1", "x = 2"), append(1), append(2)]),
            "\n".join([replace("a.py", "no", "match"), append(3)]),
            "\n".join([create("b.py", "b\n"), finish()]),
        ], "auto", "",
    ),
    "malformed answers": (
        ["{broken", append(1), "{broken", "{broken", append(2), "I have done it.", "Really."],
        "auto", "",
    ),
    "questions": ([append(1), bash(f"echo 2 >> {JOURNAL} # curl"), finish()], "auto", "curl"),
    "a plan": ([view("a.py"), finish("the plan"), append(1), finish()], "plan", ""),
    "failures": (
        [append(1), ServerFailed("once"), replace("a.py", "x = 1", "x = 2"), finish(), finish()],
        "auto", "",
    ),
}  # fmt: skip


class Killed(BaseException):
    """The process ends here."""


class KilledLog(RunLog):
    """A log whose process is killed before or after it writes a line."""

    left, is_written = 1 << 30, False

    def write(self, op: str, *, fsync: bool = False, **fields: Any) -> None:
        self.left -= 1
        if not self.left and not self.is_written:
            raise Killed
        super().write(op, fsync=fsync, **fields)
        if not self.left:
            raise Killed


class ApprovingUser(Watcher):
    """A user who approves everything."""

    def ask(self, step: Any, asked: Any) -> Any:
        return "once", ""

    def plan(self, text: str, *, is_question: bool = False) -> str:
        return text


def execute(
    folder: Path, case: tuple[list[Scripted], Policy, str], **killed: Any
) -> tuple[dict[str, str], RunLog]:
    """Execute a run from where it is, as the service does; return its files and its log."""
    script, policy, asks = case
    is_new = not folder.exists()
    if is_new:
        folder.mkdir()
        start(folder, policy)
    log = KilledLog.open(folder)
    vars(log).update(killed)
    if not is_new:
        log.write("resume", sandbox="")
    gate = [False, True] if ServerFailed in map(type, script) else [True]
    made, _, tree, _ = parts(folder, script, asks=asks, gate=gate)
    end = Loop(log, made, ApprovingUser(), Stop()).run()
    log.write("done", state=end.state, message="", is_checked=False, turn="", paths=[])
    return tree.files(), log


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_line_changes_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.agent.loop.RETRY_S", (0.0, 0.0, 0.0))
    case = CASES[name]
    expected, calm = execute(tmp_path / "calm", case)
    wanted = expected.pop(JOURNAL).split()
    lines = len((calm.folder / NAME).read_bytes().splitlines())
    for number, is_written in itertools.product(range(1, lines), (False, True)):
        folder = tmp_path / f"{number}-{is_written}"
        with pytest.raises(Killed):
            execute(folder, case, left=number, is_written=is_written)
        before = (folder / NAME).read_bytes()
        files, log = execute(folder, case)
        assert (folder / NAME).read_bytes().startswith(before)
        assert log.state.state == "done"
        was_over = b'"op":"done"' in before  # then the user continues it on purpose
        assert sum(step.is_finished for step in log.state.steps) == 1 + was_over
        results = [each.observation.result for each in log.state.steps if each.observation]
        # A command that was interrupted is reported, and the calls after it are not run.
        assert results.count("interrupted") <= 1
        unknown = results.count("interrupted") and 1 + results.count("not run")
        ran = files.pop(JOURNAL, "").split()
        assert len(ran) == len(set(ran))
        assert len(wanted) - len(ran) <= unknown
        assert files == expected
