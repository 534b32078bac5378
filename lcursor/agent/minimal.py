"""Find the changes of a run that no test needs: models change more than they should.

The changes of code are taken back one by one, the last one first, as long as the user's tests pass
and the linter finds nothing new. Those of a file with the same text are taken back together, as
only their text tells them apart once rows have moved. Only changes of files that existed, and not
of tests, are tried.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from lcursor.changes import diff
from lcursor.changes.records import Check, FileChange, Lines
from lcursor.code import languages
from lcursor.process.run import Cancel
from lcursor.workspace.outputs import new_lines

MAX_CHANGES: Final = 16
"""Of a run; more are not tried."""
MAX_S: Final = 60.0
TEXTS: Final = frozenset({languages.TEXT, "markdown"})
"""Languages that tests do not run."""


class Checks(Protocol):
    """The user's linter and tests; see `finish_checks.FinishChecks`."""

    def test(self, path: str, cancel: Cancel) -> Check | None:
        """Return what the tests say; None without tests."""

    def lint(self, path: str, lines: Sequence[str], cancel: Cancel) -> list[str]:
        """Return what the linter says of a file."""


@dataclass
class _Reduction:
    """Changes that are taken back, in the files of the run."""

    root: Path
    bases: Mapping[str, Lines]
    write: Callable[[str, Lines], None]
    checks: Checks
    cancel: Cancel
    taken_back: set[tuple[str, str]] = field(default_factory=set)
    """Paths and keys of changes."""
    linted: dict[str, list[str]] = field(default_factory=dict)
    """What the linter says of files with all changes, by path."""

    def lint(self, file: FileChange) -> None:
        """Run the linter on a file with all changes."""
        whole = diff.apply(self.bases[file.path], file.changes)
        name = os.path.relpath(file.path, self.root)
        self.linted[file.path] = self.checks.lint(name, whole, self.cancel)

    def passes(self, file: FileChange) -> bool:
        """Return whether the checks pass once a file was written without what is taken back."""
        name, lines = self._write(file)
        if new_lines(self.linted[file.path], self.checks.lint(name, lines, self.cancel)):
            return False
        found = self.checks.test(name, self.cancel)
        return found is not None and found.is_ok

    def restore(self, file: FileChange) -> None:
        """Write a file again after a change was put back."""
        self._write(file)

    def _write(self, file: FileChange) -> tuple[str, Lines]:
        rest = [each for each in file.changes if (file.path, each.key) not in self.taken_back]
        lines, name = diff.apply(self.bases[file.path], rest), os.path.relpath(file.path, self.root)
        self.write(name, lines)
        return name, lines


def marked(
    root: Path,
    files: Sequence[FileChange],
    bases: Mapping[str, Lines],
    write: Callable[[str, Lines], None],
    checks: Checks,
    cancel: Cancel,
) -> tuple[FileChange, ...]:
    """Return the files, with what no test needs marked. Blocks for at most `MAX_S` and a test.

    The files on disk are without these changes then.

    Args:
        bases: the lines that the changes refer to, by absolute path.
        write: writes a file of the run's copy, given its name in the project.
        checks: which pass with all changes.
    """
    tried = [file for file in files if _is_code(root, file)]
    candidates = [(file, each.key) for file in tried for each in file.changes]
    if not sum(len(file.changes) for file in files) > 1 or len(candidates) > MAX_CHANGES:
        return tuple(files)
    reduction = _Reduction(root, bases, write, checks, cancel)
    end_s = time.monotonic() + MAX_S
    for file in tried:
        reduction.lint(file)
    needed = 0
    for file, key in dict.fromkeys(reversed(candidates)):
        if time.monotonic() > end_s:
            break
        reduction.taken_back.add((file.path, key))
        if not reduction.passes(file):
            reduction.taken_back.remove((file.path, key))
            reduction.restore(file)
            needed += 1
    if not needed:
        return tuple(files)  # the tests say nothing about the task
    return tuple(_with_marks(file, reduction.taken_back) for file in files)


def count(files: Sequence[FileChange]) -> int:
    """Return how many changes are marked."""
    return sum(each.key in file.unneeded for file in files for each in file.changes)


def _is_code(root: Path, file: FileChange) -> bool:
    name = os.path.relpath(file.path, root)
    is_text = languages.detect(name) in TEXTS
    return file.kind == "edit" and not (is_text or file.is_guarded or languages.is_test(name))


def _with_marks(file: FileChange, taken_back: set[tuple[str, str]]) -> FileChange:
    keys = [each.key for each in file.changes if (file.path, each.key) in taken_back]
    return replace(file, unneeded=tuple(dict.fromkeys(keys)))
