"""`bench tree`: what the copy of a project for an agent costs, and its checkpoints."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, Report, measuring
from lcursor.agent.result import file_changes
from lcursor.config import AgentConfig
from lcursor.workspace.tree import Tree

CREATED, STEPS, TREES = 5, 60, 8
CREATE_MS, CHECKPOINT_MS = 375.0, (50.0, 200.0)
"""Limits for 5,000 files; eight copies take at most 3 s."""
DISK_MB = 1.0
"""Limit of what a copy takes on disk beyond its files."""
A_FOLDER = 10


def make_project(root: Path, files: int, *, with_git: bool) -> None:
    """Write a project of Python files of 4 kB, and commit it."""
    for number in range(files):
        folder = root / f"package{number // (A_FOLDER * 10)}/part{number // A_FOLDER % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"name_{number}_{row} = {row}" for row in range(200)]
        (folder / f"module{number}.py").write_text("\n".join(lines) + "\n")
    if with_git:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "one")):
            subprocess.run(["git", "-C", root, *words], check=True)
        time.sleep(1.1)  # otherwise git reads all files again
        subprocess.run(["git", "-C", root, "status", "-s"], check=True)


def _timed(samples: list[float], work: Callable[[], object]) -> None:
    began = time.perf_counter()
    work()
    samples.append((time.perf_counter() - began) * 1000)


def _measure(report: Report, root: Path, place: Path, label: str, *, is_judged: bool) -> None:
    created, steps, unchanged, restored, results, shown = (list[float]() for _ in range(6))
    trees = list[Tree]()

    def create() -> None:
        trees.append(Tree.create(root, place / f"run{len(trees)}", unsaved={}))

    measuring(f"{label}: creation")
    for _ in range(TREES if is_judged else CREATED):
        _timed(created, create)
    tree = trees[-1]
    paths = sorted(tree.path.rglob("*.py"))
    measuring(f"{label}: checkpoints")
    for number in range(STEPS):
        path = paths[number * 37 % len(paths)]
        path.write_text(path.read_text().replace("= 7", f"= {number}", 1) + "added = 1\n")
        _timed(steps, tree.checkpoint)
        _timed(unchanged, tree.checkpoint)
    _timed(results, lambda: file_changes(tree))
    for _ in range(CREATED):
        last = tree.last
        _timed(restored, lambda: tree.restore(tree.base))
        tree.restore(last)
    _timed(shown, lambda: tree.confinement(AgentConfig()))
    limits = (CREATE_MS, *CHECKPOINT_MS) if is_judged else (None, None, None)
    report.add(f"{label}: create", created, limit=limits[0], judged="p50")
    report.add(f"{label}: checkpoint, a file changed, p50", steps, limit=limits[1], judged="p50")
    report.add(f"{label}: checkpoint, a file changed, p95", steps, limit=limits[2])
    report.add(f"{label}: checkpoint, nothing changed", unchanged)
    report.add(f"{label}: restore {STEPS} files", restored)
    report.add(f"{label}: what commands see, first time", shown)
    report.add(f"{label}: result with {STEPS} files", results)
    own = trees[0].folder
    disk = sum(_size(path) for path in own.rglob("*") if not path.is_relative_to(own / "tree"))
    report.add(
        f"{label}: disk beyond the files", [disk / 1e6], unit="MB", limit=limits[0] and DISK_MB
    )


def _size(path: Path) -> int:
    return os.lstat(path).st_size


def command(
    files: Annotated[int, typer.Option(help="Number of files; limits hold for 5000.")] = 5000,
    as_json: Json = False,
) -> None:
    """Measure the copies that agents work in; exits with 1 when a limit is not kept."""
    report = Report()
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-") as name:
        for with_git in (True, False):
            place = Path(name) / ("git" if with_git else "plain")
            make_project(place / "project", files, with_git=with_git)
            label = f"{files:,} files, {'git' if with_git else 'no git'}"
            is_judged = with_git and files == 5000
            _measure(report, place / "project", place, label, is_judged=is_judged)
    report.finish(as_json)
