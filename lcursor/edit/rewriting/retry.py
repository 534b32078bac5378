"""Rewrite a region, check the result, and retry while checks fail. Blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from lcursor.changes import diff
from lcursor.changes.records import Check, FileChange, Lines, digest
from lcursor.config import EditConfig
from lcursor.edit.rewriting.normalize import moved
from lcursor.edit.rewriting.rewriter import ModelOutput, Rewriter
from lcursor.edit.rewriting.task import (
    FailedAttempt,
    RewriteListener,
    RewriteProgress,
    Task,
)
from lcursor.errors import Cancelled, CheckFailed, LcursorError, ReplyUnusable
from lcursor.llm.records import Usage, add_usage
from lcursor.stop import Stop
from lcursor.workspace import checks
from lcursor.workspace.checks import FAILURES
from lcursor.workspace.edit_checks import CheckResults

UNCHANGED: Final = 8
"""Penalty of an attempt without changes, which is better than one that does not parse."""
MAX_SAME: Final = 3
"""Number of independent attempts, each at a higher temperature, that may change nothing."""
WARMER: Final = 0.5
"""Added to the temperature after an attempt that repeated an earlier one."""
FIXES: Final = re.compile(
    r"\b(fix|mend|repair|correct|debug|bug|broken|wrong|fail|error|crash|test|exception)", re.I
)
"""Matches instructions for which the current output of the tests is useful."""
NOW: Final = "As it is now, the tests say:"
SAME: Final = "it is the same as before: nothing was changed"


class Checks(Protocol):
    """Commands of the user that check a text; see `edit_checks.EditChecks`."""

    @property
    def has_any(self) -> bool:
        """Whether there is a linter or a test to run."""

    @property
    def has_tests(self) -> bool:
        """Whether there are tests to run."""

    def format(self, path: str, lines: Lines, cancel: Stop) -> Lines:
        """Return the formatted text."""

    def run(self, files: Mapping[str, Lines | None], cancel: Stop) -> CheckResults:
        """Run linter and tests with some files changed, or deleted (None)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The usable result of one attempt."""

    lines: Lines
    """The region's new text."""
    checks: tuple[Check, ...]
    note: str
    is_same: bool = False
    """Whether it changes nothing."""

    @property
    def penalty(self) -> int:
        """Sum of the penalties; 0 if all checks passed."""
        failed = sum(FAILURES[each.name].penalty for each in checks.failed(self.checks))
        return failed + (UNCHANGED if self.is_same else 0)


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The best of all attempts."""

    file: FileChange
    """The change, empty if the model's text is equal to the old one."""
    lines: Lines
    """The region's new text."""
    note: str
    attempts: int
    usage: Usage
    """Token counts of all attempts together."""
    candidates: tuple[Candidate, ...] = ()
    """The usable attempts, in order."""

    @property
    def is_same(self) -> bool:
        """Whether nothing would change."""
        return not self.file.changes


class RetryLoop:
    """Rewrites a region until all checks pass, or no attempts are left."""

    def __init__(
        self,
        rewriter: Rewriter,
        commands: Checks | None,
        config: EditConfig,
    ) -> None:
        self._rewriter, self._commands, self._config = rewriter, commands, config

    def run(
        self,
        task: Task,
        listener: RewriteListener,
        cancel: Stop,
        remark: str = "",
        *,
        answer_tokens: int = 0,
        before: Sequence[FailedAttempt] = (),
        temperature: float = 0.0,
        has_feedback: bool = True,
    ) -> RewriteResult:
        """Rewrite a region.

        Args:
            listener: gets the progress.
            cancel: set to stop.
            remark: the user's comment on an earlier alternative.
            answer_tokens: limit for all attempts together; 0 is none. No attempt starts that would
                exceed it with as many tokens as the last one.
            before: the earlier alternative.
            has_feedback: whether the model sees its failed attempts; otherwise each is independent.

        Raises:
            ReplyUnusable: no attempt wrote usable code.
            LcursorError: the request failed, and no earlier attempt changed anything.
        """
        candidates, feedback = list[Candidate](), list(before)
        usage, attempt = Usage(), 0
        extended = task
        if self._commands is not None:
            files = {task.path: task.lines}
            words = with_test_output(task.instruction, self._commands, files, listener, cancel)
            extended = replace(task, instruction=words)
        unusable: ReplyUnusable | None = None
        failure = ""
        while True:
            attempt += 1
            try:
                output = self._rewriter.run(
                    extended,
                    listener,
                    cancel,
                    attempt=attempt,
                    feedback=tuple(feedback) if has_feedback else (),
                    remark=remark,
                    temperature=temperature,
                )
            except ReplyUnusable as error:
                unusable, cost = error, cost_of(error)
                feedback.append(FailedAttempt((error.message,)))
                temperature = min(temperature + WARMER, 1.0)
            except Cancelled:
                raise
            except LcursorError as error:  # the feedback was too long, or the server failed
                if all(each.is_same for each in candidates):
                    raise
                failure = f"another try failed: {error.message}"
                break
            else:
                cost = output.usage
                made = self._checked(task, output, listener, cancel, attempt)
                is_repeated = any(each.lines == made.lines for each in feedback)
                if made.is_same or is_repeated or not has_feedback:
                    temperature = min(temperature + WARMER, 1.0)
                candidates.append(made)
                # A model that sees the same code again is more likely to copy it.
                lines = () if made.is_same else made.lines
                feedback.append(FailedAttempt(_problems(made), lines))
            usage = add_usage(usage, cost)
            is_clean = bool(candidates) and not candidates[-1].penalty
            is_over_limit = 0 < answer_tokens < usage.answer_tokens + cost.answer_tokens
            is_copying = not has_feedback and len(candidates) == attempt >= MAX_SAME and all(
                each.is_same for each in candidates)  # fmt: skip
            if is_clean or is_over_limit or is_copying or attempt > self._config.retries:
                break
        if not candidates:
            assert unusable is not None
            raise unusable
        best = min(candidates, key=lambda each: each.penalty)  # the first of several
        changes = diff.changes(task.lines, task.with_new(best.lines))
        return RewriteResult(
            FileChange(task.path, base=digest(task.lines), changes=changes, checks=best.checks),
            best.lines,
            "\n".join(filter(None, (best.note, failure))),
            attempt,
            usage,
            tuple(candidates),
        )

    def _checked(
        self,
        task: Task,
        output: ModelOutput,
        listener: RewriteListener,
        cancel: Stop,
        attempt: int,
    ) -> Candidate:
        """Format and check the output of a model."""
        lines, note = tuple(output.lines), output.note
        is_same = lines == tuple(task.old)
        found: list[Check] = []
        if not is_same:
            if self._commands is not None and self._config.formatter:
                listener.progress(RewriteProgress("checking", "format", attempt=attempt))
                lines, check = self._formatted(task, lines, self._commands, cancel)
                found.append(check)
            lines, static = _with_best_indent(task, lines)
            effect = checks.effect(task.old, lines, task.language, task.instruction)
            found = [*static, *([effect] if effect else []), *found]
        whole = task.with_new(lines)
        parses = all(each.is_ok for each in found if each.name == "parses")
        if self._commands is not None and parses and self._commands.has_any:
            listener.progress(RewriteProgress("checking", attempt=attempt))
            results = self._commands.run({task.path: whole}, cancel)
            found += results.checks
            note = "\n".join(filter(None, (note, results.note)))
        cancel.check()
        return Candidate(lines, tuple(found), note, is_same)

    def _formatted(
        self, task: Task, lines: Lines, commands: Checks, cancel: Stop
    ) -> tuple[Lines, Check]:
        """Run the user's formatter; keep only its changes within the region."""
        whole = task.with_new(lines)
        try:
            formatted = commands.format(task.path, whole, cancel)
        except CheckFailed as error:
            return lines, Check("format", False, error.message)
        result = changes_inside(whole, formatted, task.region.first_row, len(lines))
        return diff.with_line_ends(task.near, result), Check("format", True)


def with_test_output(
    instruction: str,
    commands: Checks,
    files: Mapping[str, Lines | None],
    listener: RewriteListener,
    cancel: Stop,
) -> str:
    """Return an instruction to fix something, with the output of currently failing tests."""
    if not commands.has_tests or not FIXES.search(instruction):
        return instruction
    listener.progress(RewriteProgress("checking", "test"))
    results = commands.run(files, cancel)
    failed = [each.text for each in results.checks if each.name == "test" and not each.is_ok]
    return f"{instruction.strip()}\n{NOW}\n{failed[0]}" if failed else instruction


def changes_inside(lines: Lines, formatted: Lines, first_row: int, count: int) -> Lines:
    """Return some rows of a text with those changes of a formatted text that are within them."""
    last_row = first_row + count
    changes = [
        each
        for each in diff.changes(lines, formatted)
        if first_row <= each.first_row and each.last_row <= last_row
    ]
    made = diff.apply(lines, changes)
    return tuple(made[first_row : last_row + len(made) - len(lines)])


def _with_best_indent(task: Task, lines: Lines) -> tuple[Lines, tuple[Check, ...]]:
    """Check a text unchanged, and shifted to the old indentation; return the better one.

    Small models often start at the left margin, regardless of the prompt.
    """

    def check(new: Lines) -> tuple[Check, ...]:
        return checks.check(task.lines, task.with_new(new), task.region, task.language)

    found = check(lines)
    shifted = moved(task.old, lines)
    is_fine = all(each.is_ok for each in found if each.name in ("parses", "indent"))
    if is_fine or shifted == lines:
        return lines, found
    better = check(shifted)
    is_better = len(checks.failed(better)) < len(checks.failed(found))
    return (shifted, better) if is_better else (lines, found)


def _problems(made: Candidate) -> tuple[str, ...]:
    """Return the problems of a candidate, for the model."""
    words = [
        f"{FAILURES[each.name].heading}: {each.text}" for each in made.checks if not each.is_ok
    ]
    return tuple([SAME, *words] if made.is_same else words)


def cost_of(error: ReplyUnusable) -> Usage:
    """Return the token counts of an unusable reply, if known."""
    cost = getattr(error, "usage", None)
    return cost if isinstance(cost, Usage) else Usage()
