"""An edit of a whole project: a plan that the user sees first, then one rewrite for each region.

Owns how steps become changes of files, and that all of them are proposed as one turn. Blocks; on
the edit's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcursor import protocol_edit as wire
from lcursor.edit import many, plan
from lcursor.edit import tools as common
from lcursor.edit.job import End, Job, Teller
from lcursor.edit.many import Orders, Spot, Work
from lcursor.edit.plan import Plan, Step
from lcursor.edit.records import Change, FileChange, Region, digest
from lcursor.edit.rewriting.task import Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.edit.sources import DISK, Sources
from lcursor.edit.tools import Tools
from lcursor.errors import LcursorError
from lcursor.llm.pool import Connection

NEW_FILE = "a new file"


def ask(job: Job, tools: Tools, params: wire.EditAsk) -> End:
    """Have a change of several files planned, shown, written and proposed.

    Raises:
        LcursorError: it cannot be done.
    """
    here: list[wire.EditBuffer] = []
    if params["tick"] != DISK:
        here = [{"path": params["path"], "tick": params["tick"], "text": params["text"]}]
    buffers = [*here, *(each for each in params["buffers"] if each["path"] != params["path"])]
    current = params["path"] if here else ""
    texts = common.sources(tools, params["path"], buffers, current)
    commands, not_run = tools.permissions.allowed(job, texts.root, tools.config)
    planner = common.reach(job, tools, params["model"], tools.config.planner)
    limit = common.room(planner)
    question = common.asked(
        job, tools, texts, params["instruction"], params["attachments"], buffers, limit
    )
    context, note = question.context(limit, common.counter(planner))
    job.progress("planning")

    def make(model: Connection) -> Plan:
        return plan.plan(
            model,
            tools.config,
            question.text,
            texts.root,
            context,
            tools.codebase(texts.root),
            job.cancel,
            files=texts,
        )

    planned = common.surely(job, tools, planner, make)
    job.cost.add(planned.usage, 0, planned.usage.passes)
    job.check()
    if not planned.steps:
        return End("nothing", planned.summary or "The plan has no steps")
    dropped = job.show(planned.summary, [_step(each, texts) for each in planned.steps])
    steps = [each for each in planned.steps if each.key not in dropped]
    if not steps:
        return End("stopped", "All steps were struck out")
    writer = planner
    if tools.config.planner:
        writer = common.reach(job, tools, params["model"])
        context, note = question.context(common.room(writer), common.counter(writer))
    with Trial(texts.root, commands, texts.unsaved()) as trial:
        words = _told(question.text, planned)
        is_one = len(steps) == 1 and steps[0].kind in ("edit", "create")
        orders = Orders(words, context, texts, tools, writer, trial, is_one)
        files, problems = _carried_out(job, orders, steps)
        late = ""
        if not is_one:
            files, late = common.checked_together(job, texts, trial, files)
    note = "\n".join(filter(None, (note, *dict.fromkeys(problems), late, not_run)))
    if not files:
        return End("refused" if problems else "same", note or "Nothing was changed by any step")
    common.propose(job, tools, texts, files, title=params["instruction"], note=note)
    return End("proposed")


def _carried_out(
    job: Job, orders: Orders, steps: Sequence[Step]
) -> tuple[list[FileChange], list[str]]:
    """Return the changes that steps ask for, in the order of the plan, and what did not work."""
    texts, problems = orders.root_texts, list[str]()
    works: dict[str, Work] = {}
    others: dict[str, FileChange] = {}
    order: list[str] = []
    for step in steps:
        path = texts.absolute(step.path)
        if path not in order:
            order.append(path)
        try:
            if step.kind == "create":
                others[path] = _created(job, orders, step, path)
            elif step.kind == "edit":
                lines = texts.demand(path, is_own=True)
                rows = Region(step.first_row, min(step.last_row, len(lines)), step.what)
                work = works.setdefault(path, Work(path, lines, []))
                work.spots.append(Spot(rows, step.do, step.sketch))
            else:
                others[path] = _moved(texts, step, path)
        except LcursorError as error:
            job.check()
            problems.append(f"{step.path}: {error.message}")
    for work in works.values():
        work.spots = many.apart(work.spots)
    if not orders.is_whole_edit:
        orders = many.with_test_output(job, orders, list(works.values()))
    problems += many.carry_out(job, orders, list(works.values()))
    files = []
    for path in order:
        found = _of_file(works.get(path), others.get(path))
        if found is not None:
            files.append(found)
    notes = [note for work in works.values() for note in work.notes]
    return files, [*problems, *notes]


def _of_file(work: Work | None, other: FileChange | None) -> FileChange | None:
    """Return what is done to one file: rows of it, the file itself, or both where it is renamed."""
    edit = many.change_of(work) if work is not None else None
    if other is None or other.kind != "rename" or edit is None:
        return other or edit
    return replace(other, changes=edit.changes, checks=edit.checks)


def _created(job: Job, orders: Orders, step: Step, path: str) -> FileChange:
    """Return a file that is written as a whole.

    Raises:
        LcursorError: it is there already, or nothing was written.
    """
    texts, tools = orders.root_texts, orders.tools
    texts.refuse(path)
    task = Task(
        path=path,
        name=texts.name(path),
        language=common.language_of(path, ()),
        lines=(),
        region=Region(0, 0, NEW_FILE),
        instruction="\n".join(filter(None, (orders.instruction, step.do))),
        context=orders.context,
        sketch=step.sketch,
    )
    made = common.written(
        job,
        tools,
        orders.reached,
        texts,
        task,
        Teller(job, path, -1),
        orders.trial,
        is_whole_edit=orders.is_whole_edit,
    )
    changes = (Change(0, 0, (), tuple(made.lines)),)
    return FileChange(path, "create", changes=changes, checks=made.file.checks)


def _moved(texts: Sources, step: Step, path: str) -> FileChange:
    """Return a file that is deleted or renamed.

    Raises:
        LcursorError: there is none.
    """
    lines = texts.demand(path, is_own=True)
    if step.kind == "rename":
        return FileChange(path, "rename", to=texts.absolute(step.to), base=digest(lines))
    changes = (Change(0, len(lines), lines, ()),) if lines else ()
    return FileChange(path, "delete", base=digest(lines), changes=changes)


def _told(instruction: str, planned: Plan) -> str:
    """Return an instruction with what the plan makes of it, for each of the rewrites."""
    if not planned.summary.strip():
        return instruction
    return f"{instruction}\n\nThis is a part of it. The plan for all: {planned.summary.strip()}"


def _step(step: Step, texts: Sources) -> wire.EditStep:
    path = texts.absolute(step.path)
    return {
        "key": step.key,
        "kind": step.kind,
        "path": path,
        "name": texts.name(path),
        "to": texts.absolute(step.to) if step.to else "",
        "first_row": step.first_row,
        "last_row": step.last_row,
        "what": step.what,
        "do": step.do,
    }
