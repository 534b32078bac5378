"""Apply one instruction at many positions, in several files at once, as one turn.

Within a file each rewrite sees the results of earlier ones. A failure at one position is reported,
and the others continue. Blocks; on the run's thread and a pool of workers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

from lcursor.changes import diff
from lcursor.changes.records import Check, FileChange, Lines, Region, digest
from lcursor.edit.rewriting import retry
from lcursor.edit.run import EditOutcome, EditRun, RunListener
from lcursor.edit.session import EditDeps, EditSession, language_of
from lcursor.errors import Cancelled, LcursorError, ServerError
from lcursor.project.redaction import encodable
from lcursor.protocol import edit as wire

MAX_WORKERS = 8
"""Maximum number of files rewritten at once, even if a server has more slots."""


@dataclass(slots=True)
class RegionTarget:
    """One region to rewrite."""

    region: Region
    instruction: str = ""
    """Instruction in addition to the common one."""


@dataclass(slots=True)
class FileJob:
    """The regions to rewrite in one file, and the results so far."""

    path: str
    lines: Lines
    """Lines before the edit."""
    targets: list[RegionTarget]
    now: Lines = ()
    """Lines after the rewrites so far."""
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shifts: list[tuple[int, int]] = field(default_factory=list)
    """Last row of each rewritten region, and the number of rows by which it grew."""

    def __post_init__(self) -> None:
        self.now = self.lines
        self.targets = merge_overlapping(self.targets)

    def current_row(self, row: int) -> int:
        """Return the current position of a row of the original text."""
        return row + sum(by for end, by in self.shifts if end <= row)

    def change(self) -> FileChange | None:
        """Return the change of the file; None for none."""
        changes = tuple(diff.changes(self.lines, self.now))
        if not changes:
            return None
        base = digest(self.lines)
        return FileChange(self.path, base=base, changes=changes, checks=_merged(self.checks))


@dataclass(slots=True)
class EditBatch:
    """The common part of all regions of an edit."""

    session: EditSession
    instruction: str
    context: str

    def add_test_output(self, jobs: Sequence[FileJob]) -> None:
        """Add the current output of the tests to an instruction to fix something."""
        if not self.session.is_whole_edit and jobs:
            run, files = self.session.run, {job.path: job.lines for job in jobs}
            listener = RunListener(run, "", 0)
            self.instruction = retry.with_test_output(
                self.instruction, self.session.commands, files, listener, run.stopped
            )

    def rewrite(self, jobs: Sequence[FileJob]) -> list[str]:
        """Rewrite all regions of all files; return the problems, for the user."""
        run, lock = self.session.run, threading.Lock()
        total, done = sum(len(job.targets) for job in jobs), 0
        problems, failures = list[str](), list[BaseException]()

        def rewrite_file(job: FileJob) -> None:
            nonlocal done
            for target in job.targets:
                if run.stopped.is_set() or failures:
                    return
                with lock:
                    done += 1
                    prefix = f"{done} of {total}" if total > 1 else ""
                try:
                    self._rewrite(job, target, prefix)
                except (Cancelled, ServerError):
                    raise
                except LcursorError as error:
                    name, what = (
                        self.session.sources.name(job.path),
                        target.region.what or "a place",
                    )
                    with lock:
                        problems.append(f"{name}, {what}: {error.message}")

        workers = max(min(self.session.connection.served.slots, len(jobs), MAX_WORKERS), 1)
        with ThreadPoolExecutor(workers, "lcursor-edit") as pool:
            for future in as_completed([pool.submit(rewrite_file, job) for job in jobs]):
                if (error := future.exception()) is not None:
                    failures.append(error)
        run.check()
        if failures:
            raise failures[0]
        return problems

    def _rewrite(self, job: FileJob, target: RegionTarget, prefix: str) -> None:
        """Rewrite one region of a file."""
        region = target.region
        first = job.current_row(region.first_row)
        last = first + region.last_row - region.first_row
        task = self.session.task(
            job.path,
            job.now,
            replace(region, first_row=first, last_row=last),
            _joined(self.instruction, target.instruction),
            context=self.context,
        )
        result = self.session.rewrite(task, prefix)
        before = len(job.now)
        job.now = tuple(diff.apply(job.now, result.file.changes))
        job.shifts.append((region.last_row, len(job.now) - before))
        job.checks += result.file.checks
        job.notes += filter(None, (result.note,))

    def finish(
        self, files: Sequence[FileChange], title: str, problems: Sequence[str], notes: Sequence[str]
    ) -> EditOutcome:
        """Check all changes together, and propose them as one turn."""
        if not files:
            words = "\n".join(dict.fromkeys(problems))
            return EditOutcome("rejected" if problems else "same", words or "Nothing was changed")
        late = ""
        if not self.session.is_whole_edit:
            files, late = self.session.check_together(files)
        self.session.propose(files, title=title, notes=(*problems, *notes, late))
        return EditOutcome("proposed")


def edit_locations(run: EditRun, services: EditDeps, params: wire.EditMany) -> EditOutcome:
    """Rewrite regions at many positions, and propose them as one turn."""
    session = EditSession(run, services, params["path"], params["buffers"])
    not_run = session.allow_commands()
    connection = session.connect(params["model"])
    question = session.question(params["instruction"], (), params["buffers"])
    context, note = question.context(connection)
    jobs, problems = _jobs(session, params["locations"])
    session.is_whole_edit = sum(len(job.targets) for job in jobs) == 1
    with session.commands:
        batch = EditBatch(session, question.text, context)
        batch.add_test_output(jobs)
        problems += batch.rewrite(jobs)
        files = [change for job in jobs if (change := job.change()) is not None]
        notes = [note, not_run, *(each for job in jobs for each in job.notes)]
        return batch.finish(files, params["instruction"], problems, notes)


def _jobs(
    session: EditSession, locations: Sequence[wire.EditLocation]
) -> tuple[list[FileJob], list[str]]:
    """Return the files of a list with the regions around its rows, and the problems."""
    sources = session.sources
    by_file: dict[str, list[wire.EditLocation]] = {}
    for location in locations:
        by_file.setdefault(os.path.realpath(sources.absolute(location["path"])), []).append(
            location
        )
    jobs, problems = [], []
    for of_file in by_file.values():
        path = sources.absolute(of_file[0]["path"])
        try:
            lines = sources.require(path)
        except LcursorError as error:
            problems.append(error.message)
            continue
        language, targets = language_of(path, lines), list[RegionTarget]()
        for location in of_file:
            row = location["row"]
            if not 0 <= row < max(len(lines), 1):
                problems.append(f"{sources.name(path)} no longer has a line {row + 1}")
                continue
            region = session.region(lines, language, row, row)
            text = encodable(location["text"].strip())
            line = lines[row].strip() if lines else ""
            about = f"About the line `{line}`: {text}" if text and text != line else ""
            targets.append(RegionTarget(region, about))
        if targets:
            jobs.append(FileJob(path, lines, targets))
    return jobs, problems


def merge_overlapping(targets: Sequence[RegionTarget]) -> list[RegionTarget]:
    """Return targets in the order of their rows, with overlapping ones merged."""
    merged: list[RegionTarget] = []
    for target in sorted(targets, key=lambda each: (each.region.first_row, each.region.last_row)):
        region, before = target.region, merged[-1] if merged else None
        rows = region.first_row, region.last_row
        if before is None or (
            rows[0] >= before.region.last_row
            and rows != (before.region.first_row, before.region.last_row)
        ):
            merged.append(replace(target))
            continue
        end = max(rows[1], before.region.last_row)
        what = before.region.what if end == before.region.last_row else "several places"
        before.region = replace(before.region, last_row=end, what=what)
        before.instruction = _joined(before.instruction, target.instruction)
    return merged


def _merged(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return each check once: failed if it failed anywhere, else with a remark if any."""
    by_name: dict[str, Check] = {}
    for check in checks:
        before = by_name.get(check.name)
        if before is None or (before.is_ok and (not check.is_ok or not before.text)):
            by_name[check.name] = check
    return tuple(by_name.values())


def _joined(one: str, other: str) -> str:
    return "\n".join(dict.fromkeys(filter(None, (one, other))))
