"""Edit a project: make a plan for the user's approval, then rewrite each region. Blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import cast

from lcursor.changes.records import Change, FileChange, Region, digest
from lcursor.changes.sources import DISK, Sources
from lcursor.edit import plan
from lcursor.edit.multi_edit import Batch, FileJob, Target
from lcursor.edit.plan import Plan, Step
from lcursor.edit.run import EditRun, Outcome
from lcursor.edit.workspace import EditServices, Workspace
from lcursor.errors import LcursorError
from lcursor.llm.pool import Connection
from lcursor.protocol import edit as wire

NEW_FILE = "a new file"


def edit_project(run: EditRun, services: EditServices, params: wire.EditAsk) -> Outcome:
    """Plan a change of several files; after its approval rewrite each region, and propose all."""
    own: list[wire.EditBuffer] = []
    if params["tick"] != DISK:
        own = [{"path": params["path"], "tick": params["tick"], "text": params["text"]}]
    buffers = [*own, *(each for each in params["buffers"] if each["path"] != params["path"])]
    work = Workspace(run, services, params["path"], buffers, params["path"] if own else "")
    sources, config = work.sources, work.config
    not_run = work.allow_commands()
    planner = work.connect(params["model"], config.plan_model)
    question = work.question(params["instruction"], params["attachments"], buffers)
    context, note = question.context(planner)
    run.progress("planning")

    def make(model: Connection) -> Plan:
        codebase = services.codebase(sources.root)
        return plan.plan(model, config, question.text, context, codebase, run.stopped, sources)

    planned = work.with_retry(make)
    run.add_cost(planned.usage, 0)
    run.check()
    if not planned.steps:
        return Outcome("nothing", planned.summary or "The plan has no steps")
    rejected = run.show_plan(planned.summary, [_to_wire(each, sources) for each in planned.steps])
    steps = [each for each in planned.steps if each.key not in rejected]
    if not steps:
        return Outcome("stopped", "All steps were dropped")
    if config.plan_model:
        context, note = question.context(work.connect(params["model"]))
    work.is_whole_edit = len(steps) == 1 and steps[0].kind in ("edit", "create")
    with work.commands:
        batch = Batch(work, _with_plan(question.text, planned), context)
        files, problems, notes = _run_steps(batch, steps)
        return batch.finish(files, params["instruction"], problems, [note, not_run, *notes])


def _run_steps(
    batch: Batch, steps: Sequence[Step]
) -> tuple[list[FileChange], list[str], list[str]]:
    """Return the changes of some steps, in the order of the plan, the problems, and the notes."""
    sources, problems = batch.work.sources, list[str]()
    targets: dict[str, list[Target]] = {}
    others: dict[str, FileChange] = {}
    paths: dict[str, None] = {}
    for step in steps:
        path = sources.absolute(step.path)
        paths[path] = None
        try:
            if step.kind == "create":
                others[path] = _created(batch, step, path)
            elif step.kind == "edit":
                count = len(sources.require(path, is_own=True))
                region = Region(step.first_row, min(step.last_row, count), step.what)
                targets.setdefault(path, []).append(Target(region, step.do, step.sketch))
            else:
                others[path] = _moved(sources, step, path)
        except LcursorError as error:
            batch.work.run.check()
            problems.append(f"{step.path}: {error.message}")
    jobs = {path: FileJob(path, sources.read(path) or (), each) for path, each in targets.items()}
    batch.add_test_output([*jobs.values()])
    problems += batch.rewrite([*jobs.values()])
    files = []
    for path in paths:
        other, edit = others.get(path), jobs[path].change() if path in jobs else None
        if other is not None and other.kind == "rename" and edit is not None:
            files.append(replace(other, changes=edit.changes, checks=edit.checks))
        elif (found := other or edit) is not None:
            files.append(found)
    return files, problems, [note for job in jobs.values() for note in job.notes]


def _created(batch: Batch, step: Step, path: str) -> FileChange:
    """Return a new file that the model writes."""
    work = batch.work
    work.sources.require_public(path)
    instruction = "\n".join(filter(None, (batch.instruction, step.do)))
    region = Region(0, 0, NEW_FILE)
    task = work.task(path, (), region, instruction, context=batch.context, sketch=step.sketch)
    made = work.rewrite(task, tick=DISK)
    changes = (Change(0, 0, (), tuple(made.lines)),)
    return FileChange(path, "create", changes=changes, checks=made.file.checks)


def _moved(sources: Sources, step: Step, path: str) -> FileChange:
    """Return the deletion or renaming of a file."""
    lines = sources.require(path, is_own=True)
    if step.kind == "rename":
        return FileChange(path, "rename", to=sources.absolute(step.to), base=digest(lines))
    changes = (Change(0, len(lines), lines, ()),) if lines else ()
    return FileChange(path, "delete", base=digest(lines), changes=changes)


def _with_plan(instruction: str, planned: Plan) -> str:
    """Return an instruction with the summary of the plan, for each of the rewrites."""
    if not planned.summary.strip():
        return instruction
    return f"{instruction}\n\nThis is a part of it. The plan for all: {planned.summary.strip()}"


def _to_wire(step: Step, sources: Sources) -> wire.EditStep:
    path, to = sources.absolute(step.path), sources.absolute(step.to) if step.to else ""
    found = {**asdict(step), "path": path, "name": sources.name(path), "to": to}
    del found["sketch"]
    return cast("wire.EditStep", found)
