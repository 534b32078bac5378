"""Check an agent's changes: syntax and linter after an edit, linter and tests at the end.

Only what is new counts. What a command said before the changes is found out by running it on a copy
of the first checkpoint, once for each command. Blocks.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.agent.observe import Limit, Outputs
from lcursor.agent.records import Observation
from lcursor.agent.tools import shell
from lcursor.agent.tools.shell import DEFAULT_S, Result, Shell
from lcursor.changes.records import Check, Region, digest
from lcursor.code import languages
from lcursor.config import EditConfig
from lcursor.errors import AgentFailed
from lcursor.process.run import Cancel
from lcursor.project.git import GitFailed
from lcursor.workspace import checks
from lcursor.workspace.commands import MAX_SHOWN_CHARS
from lcursor.workspace.outputs import new_lines
from lcursor.workspace.shadow_git import ShadowGit
from lcursor.workspace.tree import Tree

BASE: Final = "base"
"""Folder of the run with the files of the first checkpoint, while commands run on them."""


class Gate:
    """Runs the user's `edit.lint` and `edit.test`."""

    def __init__(
        self, tree: Tree, commands: Shell, config: EditConfig, limit: Limit, outputs: Outputs
    ) -> None:
        self._tree, self._shell, self._config = tree, commands, config
        self._limit, self._outputs = limit, outputs
        self._lint: dict[tuple[str, str], list[str]] = {}
        """Problems by path and digest of the text."""
        self._results: dict[tuple[str, str], Result] = {}
        """Results of commands by checkpoint."""

    def lint(self, path: str, lines: Sequence[str], cancel: Cancel) -> list[str]:
        """Return what the linter says of a file in the tree; nothing if there is none.

        Args:
            lines: of the file, for which the result is cached.
        """
        if not self._config.lint or not self._shell.is_confined:
            return []
        key = path, digest(lines)
        if key not in self._lint:
            max_s = max(self._config.check_seconds, DEFAULT_S)
            command = with_path(self._config.lint, path)
            self._lint[key] = _problems(self._shell.run(command, cancel, max_s=max_s))
        return self._lint[key]

    def test(self, path: str, cancel: Cancel) -> Check | None:
        """Return what the user's tests say of the tree; None without tests.

        Args:
            path: the file that was changed last.
        """
        if not self._config.test or not self._shell.is_confined:
            return None
        max_s = max(self._config.check_seconds, DEFAULT_S)
        result = self._shell.run(with_path(self._config.test, path), cancel, max_s=max_s)
        return Check("test", result.is_ok, "\n".join(result.lines)[-MAX_SHOWN_CHARS:])

    def finish(self, summary: str, cancel: Cancel, *, is_unconfined: bool = False) -> Observation:
        """Return "done", or the problems of the changes; status 0 if the tests passed.

        Raises:
            Cancelled: `cancel` returned true.
        """
        target = summary.strip().partition("\n")[0]
        all_changed, now = self._tree.changed(), self._tree.last
        changed = [each.to or each.path for each in all_changed if each.kind != "delete"]
        if not all_changed:
            return Observation("finished; no file was changed", target=target, result="done")
        lint, test = self._config.lint, self._config.test
        if not self._shell.is_confined and not is_unconfined and (lint or test):
            words = f"finished; linter and tests were not run: {shell.NO_SANDBOX}"
            return Observation(words, target=target, result="done")
        with self._base_folder() as base:
            for path in changed if lint else ():
                command = with_path(lint, path)
                result = self._run(command, now, cancel, is_unconfined=is_unconfined)
                new = self._new_problems(result, path, base, cancel)
                if new:
                    found = shell.observation(
                        replace(result, lines=new), command, self._limit, self._outputs,
                        [f"new problems of {command}; correct them, then call finish again"],
                    )  # fmt: skip
                    return replace(found, is_error=True, target=target, result="linter failed")
            if not test:
                words = "finished; the user has not set a test command"
                return Observation(words, target=target, result="done")
            command = with_path(test, next(iter(changed), ""))
            result = self._run(command, now, cancel, is_unconfined=is_unconfined)
            if result.is_ok:
                return Observation("finished; the tests passed", False, target, "done", status=0)
            reason = shell.obstacle(result, command, self._tree.root)
            if reason and self._before(command, base, cancel).status == result.status:
                return Observation(reason, True, target, result.brief, obstacle=reason)
            notes = [f"the tests ({command}) failed"]
            if not is_unconfined:
                before = self._before(command, base, cancel)
                notes[0] += (
                    ", but not before your changes" if before.is_ok else
                    f", as before your changes ({before.head})"
                )  # fmt: skip
            notes[0] += "; correct them, then call finish again"
            found = shell.observation(result, command, self._limit, self._outputs, notes)
            return replace(found, is_error=True, target=target, result="tests failed")

    def _new_problems(self, result: Result, path: str, base: Path, cancel: Cancel) -> list[str]:
        if result.is_ok:
            return []
        command = with_path(self._config.lint, path)
        return new_lines(_problems(self._before(command, base, cancel)), _problems(result))

    def _before(self, command: str, base: Path, cancel: Cancel) -> Result:
        """Return the result of a command at the first checkpoint."""
        if (command, self._tree.base) not in self._results and not base.exists():
            self._export(base)
        return self._run(command, self._tree.base, cancel, folder=base)

    def _run(
        self,
        command: str,
        tree_id: str,
        cancel: Cancel,
        *,
        is_unconfined: bool = False,
        folder: Path | None = None,
    ) -> Result:
        """Return the result of a command for a checkpoint; it runs once."""
        key = command, tree_id
        if key not in self._results:
            self._results[key] = self._shell.run(
                command,
                cancel,
                max_s=max(self._config.check_seconds, DEFAULT_S),
                is_unconfined=is_unconfined,
                folder=folder,
            )
        return self._results[key]

    @contextlib.contextmanager
    def _base_folder(self) -> Iterator[Path]:
        """Return the path of a folder for the first checkpoint; delete it in the end."""
        folder = self._tree.folder / BASE
        shutil.rmtree(folder, ignore_errors=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

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
            index.unlink(missing_ok=True)


def syntax_problem(
    path: str, before: Sequence[str], after: Sequence[str], first_row: int, last_row: int
) -> str:
    """Return a syntax error that a change of some rows made; "" for none.

    Cost: about 3 MB/s; twice that if there is an error.
    """
    language = languages.detect(path, after[0] if after else "")
    found = checks.parses(before, after, Region(first_row, last_row, ""), language)
    return "" if found is None or found.is_ok else found.text


def _problems(result: Result) -> list[str]:
    return [] if result.is_ok else result.lines or [result.head]


def with_path(command: str, path: str) -> str:
    """Return a command of the settings for a file."""
    return command.replace("{path}", shlex.quote(path))
