"""Fork a run: another run that begins with its first steps, in a copy of its files. Blocks.

The conversation is the same up to there, so a server that still has it evaluates nothing again.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.agent import run_log, runs
from lcursor.agent.run_log import RunLog, RunState
from lcursor.agent.tools.toolbox import OUTPUTS
from lcursor.errors import AgentFailed
from lcursor.storage import folders, stored
from lcursor.workspace.tree import RECORD, Tree

COPIED: Final = (RECORD, "index", "git", OUTPUTS)
"""Of a run's folder: its checkpoints, from which the files are restored, and full outputs."""


def fork(root: Path, key: str, step: int, folder: Path | None = None) -> Path:
    """Create a run that continues after a step of another one, which must not be running.

    Args:
        step: its number.

    Returns:
        The folder of the new run.

    Raises:
        AgentMissing: there is no such run.
        AgentBusy: it is running.
        AgentFailed: it has no such step, or cannot be copied.
    """
    source = runs.find(root, key, folder)
    with runs.lock(source):
        rows = _first_rows(source, step)
        target = runs.create(root, folder)
        try:
            _copy(source, target)
            state = RunState()
            for row in rows:
                state.apply(row)
            tree = Tree.open(root, target)
            trees = [each.after for each in state.steps if each.after]
            tree.restore(trees[-1] if trees else tree.base)
            log = RunLog(target)  # last: a run without a log has not begun, and is deleted
            start = {"key": target.name, "at_s": time.time(), "group": "", "attempt": 0}
            for row in [{**rows[0], **start}, *rows[1:]]:
                log.write(**row)
        except OSError as error:
            folders.remove(target)
            raise AgentFailed(
                f"the run {source.name} cannot be copied: {error.strerror or error}",
                "Check disk space",
            ) from error
        except BaseException:
            folders.remove(target)
            raise
    return target


def _copy(source: Path, target: Path) -> None:
    for name in COPIED:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, target / name, symlinks=True)
        elif path.exists():
            shutil.copy2(path, target / name)


def _first_rows(source: Path, step: int) -> Sequence[Mapping[str, Any]]:
    """Return the operations up to the one with which the model has read the result of a step.

    Raises:
        AgentFailed: there is no such step, or it has not ended.
    """
    state, rows, end = RunState(), list[Mapping[str, Any]](), 0
    for row in run_log.rows_of(source):
        with contextlib.suppress(*stored.DAMAGE):
            state.apply(row)
            rows.append(row)
        if len(state.steps) >= step > 0 and state.steps[step - 1].observation is not None:
            if not end or row.get("op") == "end":  # agents of others may end a step twice
                end = len(rows)
            if state.answer is None:
                return rows
            if row.get("op") in ("answer", "done", "resume"):
                break
    if not end:
        raise AgentFailed(f"the run {source.name} has no step {step} that has ended", "")
    return rows[:end]
