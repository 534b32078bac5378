"""The tasks of `eval agent`: small projects with a bug, or that lack something.

Each has a check that no agent sees. `evals/data/agent` has two sets of tasks: the default one, and
one that is held out, which nobody reads who works on the agent.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError
from lcursor.process.sandbox import Confinement, open_sandbox

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = ROOT / "evals/data/agent"
TASKS = DATA / "tasks.toml"
HELD_OUT = DATA / "held-out/tasks.toml"
CHECK_S = 30.0


@dataclass(frozen=True, slots=True)
class Language:
    """How a project in a language is tested; its tests are in the folder `tests`."""

    test: str
    """The command that runs them."""
    runs: Sequence[str]
    """A program and its options that run the code of a check, which follows."""

    @property
    def is_here(self) -> bool:
        """Whether its program is installed."""
        return shutil.which(self.runs[0]) is not None


LANGUAGES = {
    "python": Language("python3 -m unittest -q", ("python3", "-c")),
    "lua": Language("lua tests/run.lua", ("lua", "-e")),
    "javascript": Language("node --test", ("node", "--input-type=module", "-e")),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A text in a file, and the text that replaces it."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Task:
    """A task for an agent."""

    name: str
    project: Path
    """Its folder, before `bug`."""
    language: Language
    text: str
    check: str
    """Code that raises unless the task is done."""
    tests: str
    """What the tests of the project do before the task: "fail" or "pass". If not empty, they must
    pass after it, and their files be as before."""
    bug: Sequence[Change]
    """What is changed in the project before the task."""
    solution: Sequence[Change]


def load(path: Path = TASKS) -> list[Task]:
    """Read the tasks of a file, whose projects are in the folder `projects` of its folder.

    Raises:
        LcursorError: the file is missing or malformed.
    """
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["task"]
        return [_task(row, path.parent / "projects") for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{path} is not a file of tasks ({error})", "Restore it: git checkout evals/data"
        ) from error


def _task(row: Mapping[str, Any], projects: Path) -> Task:
    bug = [Change(each["file"], each["right"], each["wrong"]) for each in row.get("bug", ())]
    solution = [Change(**each) for each in row.get("solution", ())]
    solution += [Change(each.file, each.new, each.old) for each in bug]
    return Task(
        row["name"],
        projects / row["project"],
        LANGUAGES[row.get("language", "python")],
        row["text"],
        row["check"],
        row.get("tests", ""),
        bug,
        solution,
    )


def make_project(task: Task, folder: Path) -> None:
    """Create the project of a task as a repository with one commit.

    Raises:
        ValueError: a change does not fit its file.
    """
    shutil.copytree(task.project, folder)
    change(folder, task.bug)
    who = ("-c", "user.name=eval", "-c", "user.email=eval@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "Start")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def change(folder: Path, changes: Sequence[Change]) -> None:
    """Change files.

    Raises:
        ValueError: an old text does not occur exactly once.
    """
    for each in changes:
        path = folder / each.file
        text = path.read_text(encoding="utf-8")
        if text.count(each.old) != 1:
            raise ValueError(f"{each.file} does not have this once: {each.old!r}")
        path.write_text(text.replace(each.old, each.new), encoding="utf-8")


def is_done(task: Task, folder: Path) -> bool:
    """Return whether the check of a task passes, and its tests do if they count."""
    if task.tests and not (_has_tests(task, folder) and passes_tests(task, folder)):
        return False
    return passes_check(task, folder)


def _has_tests(task: Task, folder: Path) -> bool:
    """Return whether the files of the project's tests are as before the task."""
    paths = [each.relative_to(task.project) for each in task.project.glob("tests/*.*")]
    return all(
        (folder / each).is_file()
        and (folder / each).read_bytes() == (task.project / each).read_bytes()
        for each in paths
    )


def passes_tests(task: Task, folder: Path) -> bool:
    """Return whether the project's tests pass in the sandbox."""
    return _succeeds(shlex.split(task.language.test), folder)


def passes_check(task: Task, folder: Path) -> bool:
    """Return whether the check of a task passes in the sandbox."""
    return _succeeds([*task.language.runs, task.check], folder)


def _succeeds(words: Sequence[str], folder: Path) -> bool:
    # Files of compiled Python would hide a change of the same second and size.
    confinement = Confinement(folder, folder, env={"PYTHONDONTWRITEBYTECODE": "1"})
    output = open_sandbox().run(words, confinement, max_s=CHECK_S, max_bytes=1 << 20)
    return output.status == 0 and not output.is_cut


def is_sound(task: Task) -> bool:
    """Return whether the check fails before the solution and passes after it.

    The tests, if they count, must do before it what the task says, and pass after it.
    """
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as name:
        folder = Path(os.path.realpath(name)) / task.project.name
        make_project(task, folder)
        if passes_check(task, folder):
            return False
        if task.tests and passes_tests(task, folder) != (task.tests == "pass"):
            return False
        change(folder, task.solution)
        return is_done(task, folder)
