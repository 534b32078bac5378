"""Find work in a project for agents that work while nobody does: failing tests, marked comments.

Blocks; on a thread of its own, because the user's tests run.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lcursor.catalog.hardware import LOAD_S, Load, Power
from lcursor.config import Config
from lcursor.process.run import Cancel
from lcursor.process.sandbox import open_sandbox
from lcursor.project.names import has_controls
from lcursor.project.reading import open_regular
from lcursor.protocol.agent import AgentTask
from lcursor.stop import Stop
from lcursor.workspace.commands import Commands, with_path
from lcursor.workspace.copy_folder import CopyFolder
from lcursor.workspace.outputs import failed_tests, printable
from lcursor.workspace.shell import DEFAULT_S, NO_SANDBOX, Shell
from lcursor.workspace.tree import Tree

MARK: Final = re.compile(r"\bTODO\(agent\):?\s*(\S.*)")
"""Matches a comment that is work for an agent."""
MAX_TASKS: Final = 20
"""Of each kind."""
MAX_BYTES: Final = 1 << 20
"""Size of a file in which comments are looked for."""
WAIT_S: Final = 5.0
"""Interval of checks whether the machine is idle."""


def find(
    root: Path, config: Config, secrets: Sequence[str], cancel: Cancel
) -> tuple[list[AgentTask], str]:
    """Return the tasks of a project, and why failing tests may be missing.

    The tests run on a copy, in the sandbox.

    Raises:
        AgentFailed: it cannot be copied.
        Cancelled: `cancel` returned true.
    """
    copy = CopyFolder()
    try:
        tree = Tree.create(root, copy.path / "run", unsaved={}, secrets=secrets, cancel=cancel)
        marks = [*_marks(tree)][:MAX_TASKS]
        tests, note = _failing(tree, config, cancel)
        return [_fix(name) for name in tests[:MAX_TASKS]] + marks, note
    finally:
        copy.delete()


def _failing(tree: Tree, config: Config, cancel: Cancel) -> tuple[list[str], str]:
    """Return the names of failing tests; else why there are none although tests fail."""
    command = with_path(config.edit.test, ".")
    shell = Shell(tree, open_sandbox(), config.agent, (command,))
    if not command or not shell.is_confined:
        return [], NO_SANDBOX if command else ""
    max_s = max(config.edit.check_seconds, DEFAULT_S)
    with Commands(tree, shell, config.edit, max_s) as commands:
        result = commands.test(".", cancel).result
    tests = sorted(failed_tests("\n".join(result.lines)))
    if result.is_ok or tests:
        return tests, ""
    return [], f"the tests ({command}) ended with {result.brief}, and name no failed test"


def _fix(name: str) -> AgentTask:
    return {"task": f"Fix the failing test {name}.", "context": "", "test": name}


def _marks(tree: Tree) -> Iterator[AgentTask]:
    for folder, names, files in os.walk(tree.path):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            path = Path(folder, name)
            shown = os.path.relpath(path, tree.path)
            if has_controls(shown):
                continue
            with contextlib.suppress(OSError), open_regular(path, follows_links=False) as file:
                text = file.read(MAX_BYTES).decode("utf-8", "replace")
                for number, line in enumerate(text.splitlines(), 1):
                    if match := MARK.search(line):
                        yield {
                            "task": f"{printable(match[1].strip())} ({shown}:{number})",
                            "context": f"{shown}:{number}: {printable(line.strip())}\n"
                            "Remove this comment when it is done.",
                            "test": "",
                        }


def wait_until_idle(stopped: Stop, power: Power | None = None, load: Load | None = None) -> None:
    """Wait until the machine is on mains power and other programs leave processors free.

    Raises:
        Cancelled: it was stopped.
    """
    power, load = power or Power(), load or Load()
    stopped.wait(LOAD_S)
    while power.is_on_battery() or load.is_busy():
        stopped.check()
        stopped.wait(WAIT_S)
    stopped.check()
