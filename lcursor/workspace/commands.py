"""Run the user's linter and tests on a copy of the project, before and after changes.

One rule decides for edits and agents: a linter fails if it prints a line that it did not print
before the changes, whatever the numbers in it, and tests fail if their command does. Blocks.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.config import EditConfig
from lcursor.errors import AgentFailed
from lcursor.process.run import Cancel
from lcursor.project.git import GitFailed
from lcursor.workspace.outputs import new_lines
from lcursor.workspace.shadow_git import ShadowGit
from lcursor.workspace.shell import CommandResult, Shell, is_missing
from lcursor.workspace.tree import Tree

BASE: Final = "base"
"""Folder of the run with the files of the first checkpoint, while commands run on them."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a command says after some changes."""

    command: str
    result: CommandResult
    lines: list[str]
    """Of the linter those that are new, of tests all."""
    is_ok: bool
    why_not_run: str = ""
    """Why the linter did not run; it is no reason against the changes."""


class Commands:
    """Runs `edit.lint` and `edit.test` on checkpoints of a tree, each once.

    with commands:
        commands.lint("a.py", cancel)  # compared with the first checkpoint

    Args:
        max_s: time limit of a command.
    """

    def __init__(self, tree: Tree, shell: Shell, config: EditConfig, max_s: float) -> None:
        self._tree, self._shell, self._config, self._max_s = tree, shell, config, max_s
        self._results: dict[tuple[str, str], CommandResult] = {}
        """By command and checkpoint."""

    def __enter__(self) -> Commands:
        shutil.rmtree(self._tree.folder / BASE, ignore_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._tree.folder / BASE, ignore_errors=True)

    def lint(self, path: str, cancel: Cancel, *, is_unconfined: bool = False) -> Compared:
        """Return what the linter says of a file in the last checkpoint.

        Raises:
            Cancelled: `cancel` returned true.
        """
        command = with_path(self._config.lint, path)
        result = self._run(command, cancel, is_unconfined=is_unconfined)
        if result.is_ok or result.status is None:
            return Compared(command, result, result.problems(), result.is_ok)
        if is_missing(result, command):
            return Compared(command, result, [], True, result.problems()[-1])
        before = self.before(command, cancel, is_unconfined=is_unconfined)
        lines = new_lines(before.problems(), result.problems())
        return Compared(command, result, lines, not lines)

    def test(self, path: str, cancel: Cancel, *, is_unconfined: bool = False) -> Compared:
        """Return what the tests say of the last checkpoint.

        Args:
            path: stands for `{path}` in the command.

        Raises:
            Cancelled: `cancel` returned true.
        """
        command = with_path(self._config.test, path)
        result = self._run(command, cancel, is_unconfined=is_unconfined)
        return Compared(command, result, result.problems(), result.is_ok)

    def before(self, command: str, cancel: Cancel, *, is_unconfined: bool = False) -> CommandResult:
        """Return the result of a command at the first checkpoint.

        Raises:
            AgentFailed: the files of the first checkpoint cannot be written.
            Cancelled: `cancel` returned true.
        """
        folder = self._tree.folder / BASE
        if (command, self._tree.base) not in self._results and not folder.exists():
            self._export(folder)
        return self._run(command, cancel, is_unconfined=is_unconfined, folder=folder)

    def forget_last(self) -> None:
        """Forget what commands said of the last checkpoint: files that git ignores are in none."""
        for key in [key for key in self._results if key[1] == self._tree.last]:
            del self._results[key]

    def _run(
        self, command: str, cancel: Cancel, *, is_unconfined: bool, folder: Path | None = None
    ) -> CommandResult:
        key = command, self._tree.base if folder else self._tree.last
        if key not in self._results:
            self._results[key] = self._shell.run(
                command, cancel, max_s=self._max_s, is_unconfined=is_unconfined, folder=folder
            )
        return self._results[key]

    def _export(self, folder: Path) -> None:
        git, index = ShadowGit(self._tree.folder), self._tree.folder / f"{BASE}.index"
        try:
            folder.mkdir(mode=0o700)
            git.ask(folder, "read-tree", self._tree.base, index=index)
            git.ask(folder, "checkout-index", "-a", "-q", index=index)
        except (OSError, GitFailed) as error:
            raise AgentFailed(
                f"the first checkpoint cannot be copied: {error}", "Check disk space"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                index.unlink(missing_ok=True)


def with_path(command: str, path: str) -> str:
    """Return a command of the settings for a file."""
    return command.replace("{path}", shlex.quote(path))
