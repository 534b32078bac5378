"""Tries: a region is written, looked at, and written again where something is wrong with it.

Owns how often that is, and which of several tries is shown. Blocks; on the thread of the edit. What
is wrong with a text is said by `checks.py`, `trial.py` and the language servers.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol

from lcursor.config import EditConfig
from lcursor.edit import diff
from lcursor.edit.records import Check, FileChange, Lines, digest
from lcursor.edit.rewriting import checks
from lcursor.edit.rewriting.rewrite import Tell, Written
from lcursor.edit.rewriting.task import Failed, Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.errors import Cancelled, CheckFailed, LcursorError, ReplyUnusable
from lcursor.llm.records import Usage

WEIGHTS: Final = {
    "reply": 100, "parses": 50, "symbols": 20, "size": 10, "test": 6, "indent": 4, "diagnostics": 3,
    "lint": 2, "format": 1,
}  # fmt: skip
"""How bad it is that a check fails, for the choice among tries none of which is clean."""
UNCHANGED: Final = 8
"""A try that leaves all as it was is better than one that does not parse, and worse than others."""
WARMER: Final = 0.5
"""More temperature for a try after one that wrote the same as one before it."""
HEADS: Final = {
    "parses": "It does not parse",
    "symbols": "It loses what others need",
    "indent": "The indentation is wrong",
    "size": "Its size is wrong",
    "test": "The tests fail",
    "diagnostics": "The language server finds new errors",
    "lint": "The linter complains",
    "format": "It cannot be formatted",
}
FIXES: Final = re.compile(
    r"\b(fix|mend|repair|correct|debug|bug|broken|wrong|fail|error|crash|test|exception)", re.I
)
"""Who says so is helped by what the tests say before anything is written."""
NOW: Final = "As it is now, the tests say:"
SAME: Final = "it is the same as before: nothing was changed"


Looks = Callable[[str, Lines, Lines], Check | None]
"""Says what language servers find in a file's new text, by path, old and new lines; None where none
says anything. Raises `Cancelled` where the edit is stopped."""


class Writes(Protocol):
    """What writes a region anew; `rewrite.Rewriter` does."""

    def run(
        self,
        task: Task,
        tell: Tell,
        cancel: threading.Event,
        *,
        attempt: int = 1,
        feedback: Sequence[Failed] = (),
        remark: str = "",
        temperature: float | None = None,
    ) -> Written:
        """Write it; see there."""


@dataclass(frozen=True, slots=True)
class Try:
    """One try, as it was found to be."""

    lines: Lines
    """The region's new text."""
    checks: tuple[Check, ...]
    note: str
    usage: Usage
    is_same: bool = False

    @property
    def badness(self) -> int:
        """0 for a clean one."""
        bad = sum(WEIGHTS.get(each.name, 1) for each in checks.failed(self.checks))
        return bad + (UNCHANGED if self.is_same else 0)


@dataclass(frozen=True, slots=True)
class Made:
    """What came of all tries."""

    file: FileChange
    """Without changes where the model wrote what was there."""
    lines: Lines
    """The region's new text."""
    note: str
    attempts: int
    usage: Usage
    """Of all tries together."""
    passes: int
    seconds: float
    tries: tuple[Try, ...] = ()
    """In their order, those whose reply could be used."""

    @property
    def is_same(self) -> bool:
        """Whether nothing would change."""
        return not self.file.changes


class Attempts:
    """Has a region written until it is clean, or the tries are used up.

    Args:
        rewriter: writes.
        trial: runs the user's commands; None runs none.
        config: how often, and how freely.
        looks: asks language servers; None asks none.
    """

    def __init__(
        self,
        rewriter: Writes,
        trial: Trial | None,
        config: EditConfig,
        looks: Looks | None = None,
    ) -> None:
        self._rewriter, self._trial, self._config = rewriter, trial, config
        self._looks = looks

    def run(
        self,
        task: Task,
        tell: Tell,
        cancel: threading.Event,
        remark: str = "",
        *,
        answer_tokens: int = 0,
        before: Sequence[Failed] = (),
    ) -> Made:
        """Have it written.

        Args:
            task: what.
            tell: told how it goes on.
            cancel: ends it.
            remark: what was wrong with another alternative, in the user's words.
            answer_tokens: most that all tries may write; 0 is no limit. No try begins that would
                need more, by what the last one needed.
            before: what the remark is about.

        Raises:
            ReplyUnusable: no try wrote code that can be used.
            Cancelled: `cancel` was set.
            LcursorError: the model cannot be asked, and no earlier try changed anything.
        """
        began_s = time.monotonic()
        tries: list[Try] = []
        failures: list[Failed] = list(before)
        usage, passes, attempt = Usage(), 0, 0
        warmth = self._config.temperature
        asked = task
        if self._trial is not None:
            files = {task.path: task.lines}
            words = with_test_output(task.instruction, self._trial, files, tell, cancel)
            asked = replace(task, instruction=words)
        unusable: ReplyUnusable | None = None
        later = ""
        while True:
            attempt += 1
            try:
                written = self._rewriter.run(
                    asked,
                    tell,
                    cancel,
                    attempt=attempt,
                    feedback=tuple(failures),
                    remark=remark,
                    temperature=warmth,
                )
            except ReplyUnusable as error:
                unusable, cost = error, cost_of(error)
                failures.append(Failed((error.message,)))
                warmth = min(warmth + WARMER, 1.0)
            except Cancelled:
                raise
            except LcursorError as error:  # the feedback was too long, or the server went away
                if all(each.is_same for each in tries):
                    raise
                later = f"another try failed: {error.message}"
                break
            else:
                cost, passes = written.usage, passes + written.passes
                made = self._judged(task, written, tell, cancel, attempt)
                if made.is_same or any(each.lines == made.lines for each in failures):
                    warmth = min(warmth + WARMER, 1.0)
                tries.append(made)
                # A model that is shown the same code once more is all the likelier to copy it.
                failures.append(Failed(_problems(made), () if made.is_same else made.lines))
            usage = added(usage, cost)
            is_clean = bool(tries) and not tries[-1].badness
            needed = usage.answer_tokens + cost.answer_tokens
            is_dear = 0 < answer_tokens < needed
            if is_clean or is_dear or attempt > self._config.retries:
                break
        if not tries:
            assert unusable is not None
            raise unusable
        best = min(tries, key=lambda each: each.badness)  # the first of several
        return Made(
            file=_file(task, best),
            lines=best.lines,
            note="\n".join(filter(None, (best.note, later))),
            attempts=attempt,
            usage=usage,
            passes=passes,
            seconds=time.monotonic() - began_s,
            tries=tuple(tries),
        )

    def _judged(
        self, task: Task, written: Written, tell: Tell, cancel: threading.Event, attempt: int
    ) -> Try:
        """Look at what was written."""
        lines = tuple(written.lines)
        is_same = lines == tuple(task.old)
        found: list[Check] = []
        if not is_same and self._trial is not None and self._config.formatter:
            lines, check = self._formatted(task, lines, tell, cancel, attempt)
            found.append(check)
        whole = _whole(task, lines)
        if not is_same:
            lines, static = _aligned(task, lines)
            whole = _whole(task, lines)
            found = [*static, *found]
        parses = all(each.is_ok for each in found if each.name == "parses")
        note = written.note
        if self._looks is not None and parses and not is_same:
            tell.progress("checking", "diagnostics", 0, 0, -1.0, attempt)
            looked = self._looks(task.path, task.lines, whole)
            found += [looked] if looked is not None else []
        if self._trial is not None and parses and self._trial.has_commands:
            tell.progress("checking", "", 0, 0, -1.0, attempt)
            tried = self._trial.checks({task.path: whole}, cancel)
            found += tried.checks
            note = "\n".join(filter(None, (note, tried.note)))
        if cancel.is_set():
            raise Cancelled("the edit was stopped")
        return Try(lines, tuple(found), note, written.usage, is_same)

    def _formatted(
        self, task: Task, lines: Lines, tell: Tell, cancel: threading.Event, attempt: int
    ) -> tuple[Lines, Check]:
        """Have the user's formatter at it; what it changes elsewhere stays as it was."""
        assert self._trial is not None
        tell.progress("checking", "format", 0, 0, -1.0, attempt)
        whole = _whole(task, lines)
        try:
            wished = self._trial.formatted(task.path, whole, cancel)
        except CheckFailed as error:
            return lines, Check("format", False, error.message)
        return inside(whole, wished, task.region.first_row, len(lines)), Check("format", True)


def with_test_output(
    instruction: str,
    trial: Trial,
    files: Mapping[str, Lines | None],
    tell: Tell,
    cancel: threading.Event,
) -> str:
    """Return an instruction to fix something with what the tests say now, if they fail.

    Raises:
        Cancelled: `cancel` was set.
    """
    if not trial.has_tests or not FIXES.search(instruction):
        return instruction
    tell.progress("checking", "test", 0, 0, -1.0, 1)
    tried = trial.checks(files, cancel)
    failed = [each.text for each in tried.checks if each.name == "test" and not each.is_ok]
    return f"{instruction.strip()}\n{NOW}\n{failed[0]}" if failed else instruction


def inside(lines: Lines, wished: Lines, first_row: int, count: int) -> Lines:
    """Return some rows with the changes that others want of these rows alone.

    Args:
        lines: of the whole text.
        wished: the whole text as it is wished.
        first_row: of the rows.
        count: how many they are.
    """
    last_row = first_row + count
    changes = [
        each
        for each in diff.changes(lines, wished)
        if first_row <= each.first_row and each.last_row <= last_row
    ]
    made = diff.apply(lines, changes)
    return tuple(made[first_row : last_row + len(made) - len(lines)])


def added(one: Usage, other: Usage) -> Usage:
    """Return what two answers cost together."""
    sums = {
        each.name: getattr(one, each.name) + getattr(other, each.name)
        for each in fields(Usage)
        if each.name != "is_exact"
    }
    return Usage(**sums, is_exact=other.is_exact and (one.is_exact or one == Usage()))


def _aligned(task: Task, lines: Lines) -> tuple[Lines, tuple[Check, ...]]:
    """Look at a text, and at the same moved to where the old one begins, and take the better one.

    Small models begin at the left margin, whatever they were shown.
    """

    def look(new: Lines) -> tuple[Check, ...]:
        return checks.check(
            task.lines,
            _whole(task, new),
            task.region,
            task.language,
        )

    found = look(lines)
    if all(each.is_ok for each in found if each.name in ("parses", "indent")):
        return lines, found
    moved = checks.moved(task.old, lines)
    if moved == lines:
        return lines, found
    better = look(moved)
    is_better = len(checks.failed(better)) < len(checks.failed(found))
    return (moved, better) if is_better else (lines, found)


def _whole(task: Task, lines: Lines) -> Lines:
    return task.lines[: task.region.first_row] + lines + task.lines[task.region.last_row :]


def _file(task: Task, best: Try) -> FileChange:
    changes = diff.changes(task.lines, _whole(task, best.lines))
    return FileChange(
        path=task.path, base=digest(task.lines), changes=tuple(changes), checks=best.checks
    )


def _problems(made: Try) -> tuple[str, ...]:
    """Return what is wrong with a try, for the model."""
    words = [
        f"{HEADS.get(each.name, each.name)}: {each.text}" for each in made.checks if not each.is_ok
    ]
    return tuple([SAME, *words] if made.is_same else words)


def cost_of(error: ReplyUnusable) -> Usage:
    """Return what a reply cost that could not be used, where who read it says so."""
    cost = getattr(error, "usage", None)
    return cost if isinstance(cost, Usage) else Usage()
