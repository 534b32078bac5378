"""The tool of small models that rewrites a region: the model writes code outside of its calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from lcursor.agent.guided import infill
from lcursor.agent.guided.infill import LineInfill
from lcursor.agent.records import Observation
from lcursor.agent.tools.replace import Replacement
from lcursor.agent.tools.tool import Arguments, Test, Tool, ToolContext
from lcursor.changes.records import Check, Lines, Region
from lcursor.code import languages
from lcursor.config import EditConfig
from lcursor.edit.rewriting.retry import FIXES, RetryLoop, cost_of
from lcursor.edit.rewriting.rewriter import Rewriter
from lcursor.edit.rewriting.task import RewriteListener, Task
from lcursor.errors import ReplyUnusable
from lcursor.llm.pool import ModelPool
from lcursor.llm.records import Usage
from lcursor.stop import Stop
from lcursor.workspace import checks
from lcursor.workspace.edit_checks import CheckResults
from lcursor.workspace.files import Denied, File
from lcursor.workspace.outputs import failed_tests, printable

SAME = "the model wrote the same lines again"
PART = "This is a part of the task: "
ATTEMPTS = 6
"""Attempts until something changes and the tests pass."""
MAX_TEST_S = 10.0
"""Duration of tests above which there are only as many attempts as for other edits."""


class _Tests:
    """The user's tests, run on the agent's files, as the checks of a rewrite."""

    has_any = has_tests = True

    def __init__(self, test: Test) -> None:
        self._test = cache(test)

    def format(self, _path: str, lines: Lines, _cancel: Stop) -> Lines:
        """Return the lines as they are: the linter may format them after the edit."""
        return lines

    def run(self, files: Mapping[str, Lines | None], _cancel: Stop) -> CheckResults:
        """Run the tests, unless they ran on these lines."""
        (lines,) = files.values()
        found = self._test(lines or ())
        return CheckResults((found,) if found else ())


class RegionRewriter:
    """Rewrites regions with the model of a run.

    Args:
        model: its name in the pool.
        task: of the run.
        stopped: stops a rewrite.
        on_usage: called with the tokens of each rewrite.
        rank_of: returns the rank of the next request; see `SamplingParams`.
        temperature: of the first attempt.
    """

    def __init__(
        self,
        models: ModelPool,
        model: str,
        config: EditConfig,
        root: Path,
        task: str,
        stopped: Stop,
        on_usage: Callable[[Usage], None],
        rank_of: Callable[[], int] = lambda: 1,
        temperature: float = 0.0,
    ) -> None:
        self._models, self._model, self._config = models, model, config
        self._root, self._task, self._stopped = root, task, stopped
        self._on_usage, self._rank_of = on_usage, rank_of
        self._temperature = temperature

    def __call__(
        self,
        path: str,
        lines: Sequence[str],
        first_row: int,
        last_row: int,
        instruction: str,
        evidence: str,
        test: Test,
    ) -> Sequence[str] | str:
        """Return the new lines of some rows, or why there are none.

        A change counts only if no other tests fail than before, and fewer if the task is to correct
        what fails; then the task says more than the instruction of a small model. Independent
        attempts find such a change more often than attempts that are corrected. If none does,
        single lines are written again.

        Raises:
            LcursorError: the server failed.
        """
        self._models.claim_cache()
        connection = self._models.connect(self._model, self._stopped)
        old_lines, tests = tuple(lines), _Tests(test)
        began_s = time.monotonic()
        results = tests.run({path: old_lines}, self._stopped)
        is_slow = time.monotonic() - began_s > MAX_TEST_S
        config = self._config if is_slow else replace(self._config, retries=ATTEMPTS - 1)
        before = _failures(results.checks)
        is_correction = before is not None and FIXES.search(self._task) is not None
        instruction = self._task if is_correction else f"{instruction}\n\n{PART}{self._task}"
        task = Task(
            path=str(self._root / path),
            name=path,
            language=languages.detect(path, old_lines[0] if old_lines else ""),
            lines=old_lines,
            region=Region(first_row, last_row, f"lines {first_row + 1} to {last_row}"),
            instruction="\n\n".join(filter(None, (instruction, evidence))),
        )
        rewrite = RetryLoop(Rewriter(connection, config, self._rank_of()), tests, config)
        try:
            result = rewrite.run(
                task,
                RewriteListener(),
                self._stopped,
                temperature=self._temperature,
                has_feedback=False,
            )
        except ReplyUnusable as error:
            self._on_usage(cost_of(error))
            return error.message
        self._on_usage(result.usage)
        for candidate in sorted(result.candidates, key=lambda candidate: candidate.penalty):
            parses = all(one.is_ok for one in candidate.checks if one.name == "parses")
            is_better = _is_better(_failures(candidate.checks), before, is_correction=is_correction)
            if parses and is_better and not candidate.is_same:
                return candidate.lines
        if is_correction and not is_slow:
            notes = infill.notes(results.checks, task.language)
            written = LineInfill(
                connection.client,
                self._rank_of(),
                self._on_usage,
                self._stopped,
                is_random=self._temperature > 0,
            )
            for lines in written.texts(old_lines, first_row, last_row, notes):
                whole = task.with_new(lines)
                found = tests.run({path: whole}, self._stopped).checks
                syntax = checks.parses(old_lines, whole, task.region, task.language)
                is_better = _is_better(_failures(found), before, is_correction=True)
                if is_better and (syntax is None or syntax.is_ok):
                    return lines
        return SAME if result.is_same else f"none of {result.attempts} attempts passes the checks"


def _failures(results: Sequence[Check]) -> set[str] | None:
    """Return the names of failed tests, none if the output has another form; None if all passed."""
    texts = [each.text for each in results if each.name == "test" and not each.is_ok]
    return set[str]().union(*map(failed_tests, texts)) if texts else None


def _is_better(after: set[str] | None, before: set[str] | None, *, is_correction: bool) -> bool:
    """Return whether a change may be kept, given the failures of tests with it and without it."""
    if after is None:
        return True
    if before is None:
        return False
    return after < before or (after == before and (not is_correction or not after))


def run(given: Arguments, context: ToolContext) -> Observation:
    """Let the model rewrite a region that was read.

    Raises:
        Denied: there is no such region, or the model's text is not usable.
    """
    name, seen, files = given["region"], context.seen, context.files
    known = seen.regions.get(name)
    if known is None or context.rewrite is None:
        raise Denied(f"there is no region {printable(name)}; read a file first")
    file = files.read(known.path)
    lines = file.text.lines
    seen.update(file.path, lines)
    region = seen.regions[name]
    rows = region.first_row, region.last_row
    if not seen.is_shown(file.path, lines, *rows):
        return context.editor.unread(file, *rows)
    test = partial(_test, file, context)
    evidence = "\n".join(context.gate.seen)
    made = context.rewrite(file.path, lines, *rows, given["instruction"], evidence, test)
    if isinstance(made, str):
        raise Denied(f"{name} was not changed: {made}")
    return context.editor.change(file, Replacement(*rows, tuple(made)), context.cancel)


def _test(file: File, context: ToolContext, lines: Sequence[str]) -> Check | None:
    """Run the user's tests on other lines of a file, which is restored."""
    context.files.write(file.path, file.text.with_lines(lines), file.mode)
    try:
        return context.gate.test(file.path, context.cancel)
    finally:
        context.files.write(file.path, file.text, file.mode)


TOOL: Final = Tool(
    "rewrite",
    "Rewrite a region that was read.",
    {"path": "its file", "region": "its id", "instruction": "what to change"},
    kind="edit",
    run=run,
)
