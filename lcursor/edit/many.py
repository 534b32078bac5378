"""The same instruction at many places: one turn, written file by file, several at once.

Owns which rows of which file are written anew, and that what was written in a file before is what
the next rewrite of it reads. A place where it fails is told; the others go on. Blocks; on the
edit's thread and on helpers of its own.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lcursor import protocol_edit as wire
from lcursor.edit import diff
from lcursor.edit import tools as common
from lcursor.edit.job import End, Job, Teller
from lcursor.edit.records import Check, FileChange, Lines, Region, digest
from lcursor.edit.rewriting import attempts
from lcursor.edit.rewriting.task import Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.edit.sources import Sources
from lcursor.edit.tools import Tools
from lcursor.errors import Cancelled, LcursorError, ServerError
from lcursor.llm.pool import Connection

MAX_HELPERS = 8
"""Files that are written at once, however many slots a server has."""


@dataclass(slots=True)
class Spot:
    """One region of a file, and why it is written anew."""

    region: Region
    do: str = ""
    """Said besides the instruction: what a list says about the place."""
    sketch: str = ""


@dataclass(slots=True)
class Work:
    """One file, and what was done in it up to now."""

    path: str
    lines: Lines
    """As they were."""
    spots: list[Spot]
    now: Lines = ()
    """As they are after what was written."""
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shifts: list[tuple[int, int]] = field(default_factory=list)
    """Where a region ended that was written, and by how many rows it grew."""

    def __post_init__(self) -> None:
        self.now = self.lines

    def moved(self, row: int) -> int:
        """Return where a row of the base is now."""
        return row + sum(by for end, by in self.shifts if end <= row)


@dataclass(frozen=True, slots=True)
class Orders:
    """What is the same for all places."""

    instruction: str
    context: str
    root_texts: Sources
    tools: Tools
    reached: Connection
    trial: Trial
    is_whole_edit: bool = False
    """Whether there is one place, and nothing else changes."""


def many(job: Job, tools: Tools, params: wire.EditMany) -> End:
    """Have regions at many places written anew, and propose them as one turn.

    Raises:
        LcursorError: it cannot be done anywhere.
    """
    texts = common.sources(tools, params["path"], params["buffers"])
    commands, not_run = tools.permissions.allowed(job, texts.root, tools.config)
    reached = common.reach(job, tools, params["model"])
    limit = common.room(reached)
    question = common.asked(job, tools, texts, params["instruction"], (), params["buffers"], limit)
    context, note = question.context(limit, common.counter(reached))
    works, problems = _works(tools, reached, texts, params["places"])
    with Trial(texts.root, commands, texts.unsaved()) as trial:
        is_one = sum(len(work.spots) for work in works) == 1
        orders = Orders(question.text, context, texts, tools, reached, trial, is_one)
        if not is_one:
            orders = with_test_output(job, orders, works)
        problems += carry_out(job, orders, works)
        files = [found for work in works if (found := change_of(work)) is not None]
        late = ""
        if not is_one:
            files, late = common.checked_together(job, texts, trial, files)
    told = [*problems, *(each for work in works for each in work.notes)]
    note = "\n".join(filter(None, (note, *dict.fromkeys(told), late, not_run)))
    if not files:
        if problems:
            return End("refused", "\n".join(dict.fromkeys(problems)))
        return End("same", "Nothing was changed at any of the places")
    common.propose(job, tools, texts, files, title=params["instruction"], note=note)
    return End("proposed")


def with_test_output(job: Job, orders: Orders, works: Sequence[Work]) -> Orders:
    """Return orders to fix something with what the tests say now, if they fail.

    Raises:
        Cancelled: the job was stopped meanwhile.
    """
    if not works:
        return orders
    teller = Teller(job, works[0].path, orders.root_texts.tick(works[0].path))
    files: dict[str, Lines | None] = {work.path: work.lines for work in works}
    words = attempts.with_test_output(orders.instruction, orders.trial, files, teller, job.cancel)
    return replace(orders, instruction=words)


def carry_out(job: Job, orders: Orders, works: Sequence[Work]) -> list[str]:
    """Have all regions of all files written anew; return what went wrong, for people.

    Files are written side by side where the server can; within a file one region after the other.

    Raises:
        Cancelled: the job was stopped.
        LcursorError: the server went away.
    """
    total = sum(len(work.spots) for work in works)
    waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
    for work in works:
        waiting.put(work)
    problems, failures, lock, done = list[str](), list[Exception](), threading.Lock(), [0]

    def step(work: Work, spot: Spot) -> None:
        with lock:
            done[0] += 1
            before = f"{done[0]} of {total}" if total > 1 else ""
        try:
            write(job, orders, work, spot, before)
        except (Cancelled, ServerError):
            raise
        except LcursorError as error:
            name = orders.root_texts.name(work.path)
            with lock:
                problems.append(f"{name}, {spot.region.what or 'a place'}: {error.message}")

    def run() -> None:
        try:
            while not job.cancel.is_set() and not failures:
                try:
                    work = waiting.get_nowait()
                except queue.Empty:
                    return
                for spot in work.spots:
                    step(work, spot)
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            failures.append(error)

    helpers = min(orders.reached.served.slots, len(works), MAX_HELPERS)
    if helpers <= 1:
        run()
    else:
        threads = [job.help(run, f"lcursor-edit-{number}") for number in range(helpers)]
        for thread in threads:
            thread.join()
    job.check()
    if failures:
        raise failures[0]
    return problems


def write(job: Job, orders: Orders, work: Work, spot: Spot, before: str = "") -> None:
    """Have one region of a file written anew, in the text that was written up to now.

    Raises:
        LcursorError: it did not work.
    """
    texts, tools = orders.root_texts, orders.tools
    instruction = "\n".join(filter(None, (orders.instruction, spot.do)))
    first = work.moved(spot.region.first_row)
    last = first + spot.region.last_row - spot.region.first_row
    task = Task(
        path=work.path,
        name=texts.name(work.path),
        language=common.language_of(work.path, work.now),
        lines=work.now,
        region=replace(spot.region, first_row=first, last_row=last),
        instruction=instruction,
        context=orders.context,
        format=common.format_of(tools, work.now[first:last]),
        sketch=spot.sketch,
    )
    teller = Teller(job, work.path, texts.tick(work.path), before)
    made = common.written(
        job,
        tools,
        orders.reached,
        texts,
        task,
        teller,
        orders.trial,
        is_whole_edit=orders.is_whole_edit,
    )
    before_rows = len(work.now)
    work.now = tuple(diff.apply(work.now, made.file.changes))
    work.shifts.append((spot.region.last_row, len(work.now) - before_rows))
    work.checks += made.file.checks
    if made.note:
        work.notes.append(made.note)


def change_of(work: Work) -> FileChange | None:
    """Return what was done to a file; None for nothing."""
    found = tuple(diff.changes(work.lines, work.now))
    if not found:
        return None
    return FileChange(work.path, base=digest(work.lines), changes=found, checks=_worst(work.checks))


def apart(spots: Sequence[Spot]) -> list[Spot]:
    """Return regions in their order, those that overlap as one: nothing is written twice."""
    found: list[Spot] = []
    for spot in sorted(spots, key=lambda each: (each.region.first_row, each.region.last_row)):
        first, last = spot.region.first_row, spot.region.last_row
        before = found[-1] if found else None
        if before is None or (
            first >= before.region.last_row and (first, last) != _rows(before.region)
        ):
            found.append(replace(spot))
            continue
        end = max(last, before.region.last_row)
        what = before.region.what if end == before.region.last_row else "several places"
        before.region = replace(before.region, last_row=end, what=what)
        before.do = _joined(before.do, spot.do)
        before.sketch = _joined(before.sketch, spot.sketch)
    return found


def _works(
    tools: Tools, reached: Connection, texts: Sources, places: Sequence[wire.EditPlace]
) -> tuple[list[Work], list[str]]:
    """Return the files of a list with the regions around its rows, and which cannot be read."""
    rows: dict[str, list[wire.EditPlace]] = {}
    for place in places:
        rows.setdefault(os.path.realpath(texts.absolute(place["path"])), []).append(place)
    works, problems = [], []
    for found in rows.values():
        path = texts.absolute(found[0]["path"])
        try:
            lines = texts.demand(path)
        except LcursorError as error:
            problems.append(error.message)
            continue
        language = common.language_of(path, lines)
        spots = []
        for place in found:
            row = place["row"]
            if not 0 <= row < max(len(lines), 1):
                problems.append(f"{texts.name(path)} has no line {row + 1} any more")
                continue
            region = common.region_of(tools, reached, lines, language, row, row)
            said = common.clean(place["text"].strip())
            line = lines[row].strip() if lines else ""
            about = f"About the line `{line}`: {said}" if said and said != line else ""
            spots.append(Spot(region, about))
        if spots:
            works.append(Work(path, lines, apart(spots)))
    return works, problems


def _worst(found: Sequence[Check]) -> tuple[Check, ...]:
    """Return each check once: as a failure where it failed anywhere, else with a remark."""
    kept: dict[str, Check] = {}
    for each in found:
        before = kept.get(each.name)
        if before is None or (before.is_ok and (not each.is_ok or not before.text)):
            kept[each.name] = each
    return tuple(kept.values())


def _rows(region: Region) -> tuple[int, int]:
    return region.first_row, region.last_row


def _joined(one: str, other: str) -> str:
    return "\n".join(dict.fromkeys(filter(None, (one, other))))
