"""The folders of all runs: `DATA/agents/PROJECT/KEY`. Any thread.

A process that executes a run holds the lock in its folder. A run that has neither an end nor a
process was interrupted, and can be continued.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from lcursor.agent import run_log
from lcursor.agent.records import State
from lcursor.agent.run_log import RunLog, RunState
from lcursor.changes import history
from lcursor.errors import AgentBusy, AgentFailed, AgentMissing
from lcursor.protocol.agent import AgentRow
from lcursor.storage import file_lock, folders

KEY = re.compile(r"[0-9]{8}-[0-9]{6}-(?:[0-9]{9}-[0-9a-f]{4}|[0-9a-f]{8})", re.ASCII)
"""Date, time of day, nanoseconds and a random number; in earlier versions without nanoseconds."""
LOCK = "lock"
LOCK_S = 1.0
"""How long to wait for the lock of a run."""
MAX_UNBEGUN_AGE_S = 86_400.0
MAX_AGE_S = 7 * 86_400.0
MAX_UNRECORDED_AGE_S = 90 * 86_400.0
"""The same for runs that have not ended, whose changes are not in the edit history, or that cannot
be read, for example because a newer lcursor wrote them."""


def home() -> Path:
    """Return the folder of all runs; it need not exist."""
    return folders.data_home() / "agents"


def project_folder(root: Path, folder: Path | None = None) -> Path:
    """Return the folder of a project's runs; it need not exist."""
    real = os.path.realpath(root)
    word = re.sub(r"[^\w.-]+", "-", Path(real).name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return (folder or home()) / f"{word}-{digest}"


def create(root: Path, folder: Path | None = None) -> Path:
    """Create the folder of a new run; its name is the run's key. Names are in order of time.

    Raises:
        LcursorError: it cannot be created.
    """
    project = project_folder(root, folder)
    for each in (project.parent, project):
        folders.make_private(each)
    second, part = divmod(time.time_ns(), 1_000_000_000)
    began = time.strftime("%Y%m%d-%H%M%S", time.localtime(second))
    return folders.make_private(project / f"{began}-{part:09d}-{secrets.token_hex(2)}")


def delete_old(folder: Path | None = None, edits: Path | None = None) -> None:
    """Delete the runs that ended over a week ago, if their changes are in the edit history.

    Others are deleted after three months; folders of runs that never began after a day.

    Args:
        edits: folder of all edit histories; None for the default.
    """
    for run_folder in (folder or home()).glob("*/*"):
        with contextlib.suppress(AgentFailed, OSError):
            if not KEY.fullmatch(run_folder.name):
                continue
            has_begun = (run_folder / run_log.NAME).exists()
            age_s = (
                time.time()
                - (run_folder / run_log.NAME if has_begun else run_folder).stat().st_mtime
            )
            if age_s < (MAX_AGE_S if has_begun else MAX_UNBEGUN_AGE_S):
                continue
            with lock(run_folder, wait_s=0.0):
                if not has_begun:  # its host was killed while it copied the project
                    folders.remove(run_folder)
                    continue
                if age_s > MAX_UNRECORDED_AGE_S or _is_recorded(run_folder, edits):
                    folders.remove(run_folder)


def find(root: Path, key: str, folder: Path | None = None) -> Path:
    """Return the folder of a run.

    Args:
        key: "last" for the newest run of the project.

    Raises:
        AgentMissing: there is none.
    """
    for each in _folders(root, folder):
        if key in ("last", each.name) and (each / run_log.NAME).is_file():
            return each
    name = f"run {key}" if key != "last" else "run of this project"
    raise AgentMissing(f"there is no {name}", "See: python -m lcursor agent --list")


def rows(root: Path, folder: Path | None = None) -> list[AgentRow]:
    """Return the runs of a project, newest first; of an unreadable one, why it is."""
    agent_rows = list[AgentRow]()
    for run_folder in _folders(root, folder):
        try:
            agent_rows.append(_row(run_folder))
        except AgentFailed as error:
            with contextlib.suppress(OSError):  # it has not begun
                agent_rows.append(_unreadable_row(run_folder, error.message))
    return agent_rows


def of_group(root: Path, group: str, folder: Path | None = None) -> list[RunState]:
    """Return the states of the runs that attempt the same task."""
    states = list[RunState]()
    for run_folder in _folders(root, folder):
        with contextlib.suppress(AgentFailed):
            state = RunLog.open(run_folder).state
            if state.group == group:
                state.state = _state_of(state, run_folder)
                states.append(state)
    return states


def is_interrupted(folder: Path) -> bool:
    """Return whether no process executes a run."""
    with contextlib.suppress(OSError):
        return not file_lock.is_held(folder / LOCK)
    return True


@contextlib.contextmanager
def lock(folder: Path, wait_s: float = LOCK_S) -> Iterator[None]:
    """Hold the lock of a run; wait a moment for it.

    A process that was killed while it started a child may leave its lock to the child, until that
    becomes another program.

    Raises:
        AgentBusy: another process or thread executes it.
        AgentFailed: the lock cannot be created.
    """
    end_s = time.monotonic() + wait_s
    try:
        while (fd := file_lock.try_lock(folder / LOCK)) is None and time.monotonic() < end_s:
            time.sleep(LOCK_S / 50)
    except OSError as error:
        raise AgentFailed(
            f"{folder} cannot be written: {error.strerror or error}", "Check disk and permissions"
        ) from error
    if fd is None:
        raise AgentBusy(f"the run {folder.name} is already running", "Stop it there first")
    try:
        yield
    finally:
        os.close(fd)


def _folders(root: Path, folder: Path | None) -> list[Path]:
    """Return the folders of a project's runs, newest first."""
    project = project_folder(root, folder)
    with contextlib.suppress(OSError):
        return sorted(
            (each for each in project.iterdir() if KEY.fullmatch(each.name)), reverse=True
        )
    return []


def _is_recorded(folder: Path, edits: Path | None) -> bool:
    """Return whether a run has ended, and its changes are in the edit history.

    Raises:
        AgentFailed: it cannot be read.
    """
    state = RunLog.open(folder).state
    turns = history.project_folder(Path(state.root), edits) / "turns"
    return state.is_over and (not state.turn or (turns / f"{state.turn}.json").is_file())


def _row(folder: Path) -> AgentRow:
    state = RunLog.open(folder).state
    return {
        "run": folder.name,
        "task": state.task,
        "state": _state_of(state, folder),
        "at_s": state.at_s,
        "steps": len(state.steps),
        "turn": state.turn,
        "group": state.group,
        "attempt": state.attempt,
    }


def _state_of(state: RunState, folder: Path) -> State:
    """Return the state of a run, which its log does not tell if its process was killed."""
    return "stopped" if not state.is_over and is_interrupted(folder) else state.state


def _unreadable_row(folder: Path, why: str) -> AgentRow:
    """Return a run that cannot be read.

    Raises:
        OSError: it has not begun.
    """
    at_s = (folder / run_log.NAME).stat().st_mtime
    return {
        "run": folder.name,
        "task": why,
        "state": "failed",
        "at_s": at_s,
        "steps": 0,
        "turn": "",
        "group": "",
        "attempt": 0,
    }
