"""`python -m lcursor eval unneeded`: are the changes found that no test needs?

The changes are commits of public repositories, whose tests fail without their code. Before the
first measurement, the author of this evaluation read each commit and marked the changes that its
purpose does not need: comments, documentation and layout.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import Annotated

import typer

from lcursor.agent.minimal import marked
from lcursor.agent.result import file_changes
from lcursor.agent.tools.toolbox import checks_of
from lcursor.changes import diff
from lcursor.changes.records import FileChange, Lines
from lcursor.config import AgentConfig, EditConfig
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace.tree import Tree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMMITS = Path(__file__).with_name("data") / "agent/commits.toml"


@dataclass(frozen=True, slots=True)
class Commit:
    """A change of code with its tests."""

    repository: str
    """Owner and name on GitHub."""
    commit: str
    code: list[str]
    tests: list[str]
    source: str
    """Folder that tests import from."""
    unneeded: list[int]
    """Numbers of the changes that were marked by hand, counted over all files of `code`."""


@dataclass(slots=True)
class Outcome:
    """What was found of the changes of a commit."""

    changes: int
    marked: int
    """By hand."""
    found: int
    """Of those."""
    others: int
    """Changes that no test needs, and that were not marked by hand."""
    is_broken: bool
    """Whether the tests fail without what was found."""
    seconds: float


class Project:
    """The files before a commit, with its tests."""

    def __init__(self, repository: Path, commit: Commit, folder: Path, python: str) -> None:
        self._repository, self._commit = repository, commit
        self.root = folder / "project"
        self._extract(f"{commit.commit}^", [])
        self._extract(commit.commit, commit.tests)
        self.tree = Tree.create(self.root, folder / "run", unsaved={})
        words = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *commit.tests]
        test = f"PYTHONPATH={commit.source} PYTHONDONTWRITEBYTECODE=1 {join(words)}"
        agent = AgentConfig(readable=(str(Path(python).parents[1]),))
        self.checks = checks_of(self.tree, open_sandbox(), agent, EditConfig(test=test))

    def write(self, name: str, lines: Lines) -> None:
        """Write a file of the run."""
        (self.tree.path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def write_code(self) -> None:
        """Make the changes of the commit."""
        for name in self._commit.code:
            (self.tree.path / name).write_bytes(self._git("show", f"{self._commit.commit}:{name}"))

    def passes(self) -> bool:
        """Return whether the tests pass."""
        found = self.checks.test(self._commit.code[0], bool)
        return found is not None and found.is_ok

    def _extract(self, revision: str, paths: list[str]) -> None:
        data = self._git("archive", revision, "--", *paths)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(self.root, filter="data")

    def _git(self, *words: str) -> bytes:
        command = ["git", "-C", os.fspath(self._repository), *words]
        return subprocess.run(command, check=True, capture_output=True).stdout


def measure(repository: Path, commit: Commit, folder: Path, python: str) -> Outcome | None:
    """Return what is found in a commit; None if its tests do not decide here."""
    project = Project(repository, commit, folder, python)
    if project.passes():
        return None
    project.write_code()
    if not project.passes():
        return None
    changes = file_changes(project.tree)
    began_s = time.monotonic()
    files = marked(project.root, changes.files, changes.bases, project.write, project.checks, bool)
    seconds = time.monotonic() - began_s
    by_path = {os.path.relpath(file.path, project.root): file for file in files}
    all_changes = [(name, change) for name in commit.code for change in by_path[name].changes]
    found = {
        number
        for number, (name, change) in enumerate(all_changes)
        if change.key in by_path[name].unneeded
    }
    _write_without(project, files, changes.bases)
    wanted = {*commit.unneeded}
    return Outcome(
        len(all_changes),
        len(wanted),
        len(found & wanted),
        len(found - wanted),
        not project.passes(),
        round(seconds, 1),
    )


def _write_without(
    project: Project, files: tuple[FileChange, ...], bases: Mapping[str, Lines]
) -> None:
    for file in files:
        needed = tuple(each for each in file.changes if each.key not in file.unneeded)
        lines = diff.apply(bases[file.path], replace(file, changes=needed).changes)
        project.write(os.path.relpath(file.path, project.root), lines)


def command(
    repositories: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Folder with the clones, by name.")
    ],
    python: Annotated[
        str, typer.Option(metavar="path", help="A Python with pytest and their packages.")
    ] = sys.executable,
    data: Annotated[Path, typer.Option(metavar="file", help="A file of commits.")] = COMMITS,
) -> None:
    """Mark what no test needs in commits, and compare with marks made by hand.

    Exits with 1 if the tests of a commit fail without what was marked.
    """
    commits = [Commit(**row) for row in tomllib.loads(data.read_text("utf-8"))["commit"]]
    outcomes = list[Outcome]()
    for commit in commits:
        name = commit.repository.partition("/")[2]
        with tempfile.TemporaryDirectory(prefix="lcursor-unneeded-") as folder:
            outcome = measure(repositories / name, commit, Path(folder), python)
        if outcome is None:
            typer.echo(f"{name:16} {commit.commit[:10]}  its tests do not decide here")
            continue
        outcomes.append(outcome)
        typer.echo(
            f"{name:16} {commit.commit[:10]} {outcome.changes:3} changes, found {outcome.found} of"
            f" {outcome.marked} marked, {outcome.others} others, {outcome.seconds:.1f} s"
            + ("; BROKEN" if outcome.is_broken else "")
        )
    found, wanted = (sum(getattr(each, key) for each in outcomes) for key in ("found", "marked"))
    typer.echo(
        f"{len(outcomes)} commits, {sum(each.changes for each in outcomes)} changes: found {found}"
        f" of {wanted} marked, and {sum(each.others for each in outcomes)} others"
    )
    if any(each.is_broken for each in outcomes):
        raise typer.Exit(1)
