"""`eval edit`: have a model fix functions, asked plainly and by the edit pipeline.

Hidden tests judge both. Each answer is kept in a file, so that an interrupted run continues; plain
and ours take turns, so that whatever was answered can be compared. Programs that a model wrote run
in the sandbox only. Starts a local server of its own.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from bench.report import Json, emit, progress, run_facts
from evals import bugs, examples, run, sandbox
from evals.bugs import Bug
from evals.edit_answers import OURS, PLAIN, Answer, AnswerCache, as_dict, as_markdown, complete
from lcursor.changes.records import Lines
from lcursor.config import ChatConfig, EditConfig
from lcursor.edit.rewriting import prompt
from lcursor.edit.rewriting.region import MAX_REGION_TOKENS, grow
from lcursor.edit.rewriting.retry import RetryLoop, cost_of
from lcursor.edit.rewriting.rewriter import Rewriter
from lcursor.edit.rewriting.task import RewriteListener, Task
from lcursor.errors import ReplyUnusable
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import Finished, Message, SamplingParams, Text
from lcursor.stop import Stop
from lcursor.storage import folders
from lcursor.workspace import checks
from lcursor.workspace.edit_checks import EditChecks

MODEL: Final = "qwen2.5-coder-1.5b"
CONTEXT_TOKENS: Final = 4096
MAX_TOKENS: Final = 768
"""Of one answer; the longest function has 400 tokens."""
BUDGET: Final = 2.0
"""All our attempts together may write so many times the tokens of the plain answer."""
RETRIES: Final = 3
"""As far as the budget allows."""
CHUNK: Final = 6
RECIPE: Final = "2"
"""Raised when the sequence of attempts changes, which makes cached answers invalid."""
NAME: Final = "solution.py"
_FENCE = re.compile(r"^[ ]{0,3}```[^\n]*\n(.*?)^[ ]{0,3}```", re.M | re.S)


def command(
    data: Annotated[Path, typer.Option(help="Folder of HumanEvalFix.", show_default=False)],
    n: Annotated[int, typer.Option("--n", min=0, help="Number of tasks; 0 for all.")] = 0,
    model: run.Model = "",
    seed: Annotated[
        int, typer.Option(help="Seed for the choice of tasks; 0: the shortest first.")
    ] = 1,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Stop after this time; the next run continues. 0: never.")
    ] = 0.0,
    cache: Annotated[Path | None, typer.Option(help="File of the answers of earlier runs.")] = None,
    as_json: Json = False,
) -> None:
    """Fix functions of HumanEvalFix, asked plainly and by the edit pipeline: pass@1 of both.

    All our attempts together write at most twice the tokens of the plain answer. The programs run
    in a sandbox; a retry sees only the examples of the docstring.
    """
    name = model or MODEL
    tasks = bugs.chosen(bugs.load(data), n, seed)
    facts = run_facts(model=name, seed=seed)
    answer_cache = AnswerCache(cache or default_cache(name))
    began_s = time.monotonic()
    found: list[Answer] = []
    with running(name) as connection:
        for answer in answers(Judge(connection, answer_cache), tasks):
            found.append(answer)
            spent_s = time.monotonic() - began_s
            outcome = "passes" if answer.has_passed else answer.problem or "fails"
            progress(f"{spent_s:4.0f} s {answer.task} {answer.kind}: {outcome[:60]}")
            if seconds and spent_s > seconds:
                break
    document = as_dict(complete(found), facts, len(tasks))
    emit(document, as_markdown(document), as_json)


@contextmanager
def running(model: str) -> Iterator[Connection]:
    """Run a local server with a model, speculative decoding on."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        config = ChatConfig(
            model=model, context_tokens=CONTEXT_TOKENS, temperature=0.0, idle_minutes=1
        )
        models = ModelPool(config, Path(folder), lambda _: None)
        try:
            yield models.connect(model, Stop())
        finally:
            models.local_server().stop()
            models.close()


class Judge:
    """Asks one model and judges its answers.

    Args:
        reached: the model.
        cache: answers of earlier runs.
        retries: for ours.
    """

    def __init__(self, connection: Connection, cache: AnswerCache, retries: int = RETRIES) -> None:
        self._reached, self._cache = connection, cache
        self._config = EditConfig(retries=retries, max_tokens=MAX_TOKENS)

    def plain(self, bug: Bug) -> Answer:
        """Ask for the function in a plain chat message."""
        asked = asked_plainly(bug)
        key = _key(self._reached.name, asked)
        if known := self._cache.find(PLAIN, bug.name, key):
            return known
        began_s = time.monotonic()
        reply = ""
        prompt_tokens = answer_tokens = passes = 0
        stream = self._reached.client.stream(asked, SamplingParams(MAX_TOKENS, 0.0))
        for event in stream:
            if isinstance(event, Text):
                reply += event.text
            elif isinstance(event, Finished):
                prompt_tokens = event.usage.prompt_tokens
                answer_tokens, passes = event.usage.answer_tokens, event.usage.passes
        seconds = time.monotonic() - began_s
        code = code_of(reply, bug.entry_point)
        passed = _passes(bug, bug.before + code)
        return self._cache.add(
            Answer(
                kind=PLAIN,
                task=bug.name,
                key=key,
                has_passed=passed,
                first_passed=passed,
                is_formed=f"def {bug.entry_point}(" in code,
                is_located=f"def {bug.entry_point}(" in code,
                is_checked=_compiles(code),
                has_examples=bool(bug.examples()),
                attempts=1,
                prompt_tokens=prompt_tokens,
                answer_tokens=answer_tokens,
                passes=passes,
                seconds=seconds,
                text=reply,
            )
        )

    def ours(self, bug: Bug) -> Answer:
        """Have the function fixed as `:LCEdit` does it, within the budget."""
        budget = round(BUDGET * self.plain(bug).answer_tokens)
        task = self._task(bug)
        shown = bug.examples()
        key = _key(
            self._reached.name, prompt.messages(task), repr(self._config), str(budget), RECIPE
        )
        if known := self._cache.find(OURS, bug.name, key):
            return known
        with _project(bug) as root:
            test = examples.command(bug.entry_point) if shown else ""
            config = replace(self._config, test=test)
            task = replace(task, path=str(root / NAME))
            with EditChecks(root, config) as commands:
                attempts = RetryLoop(Rewriter(self._reached, config), commands, config)
                return self._cache.add(self._tried(bug, task, attempts, key, budget))

    def _task(self, bug: Bug) -> Task:
        lines = tuple(bug.source.rstrip("\n").split("\n"))
        head = f"def {bug.entry_point}("
        row = next(at for at, line in enumerate(lines) if line.startswith(head))
        count = partial(self._reached.client.count, may_ask=False)
        region = grow(lines, "python", row, row, MAX_REGION_TOKENS, lambda t: count(t)[0])
        return Task(NAME, NAME, "python", lines, region, instruction(bug), "", "whole")

    def _tried(self, bug: Bug, task: Task, attempts: RetryLoop, key: str, budget: int) -> Answer:
        began_s = time.monotonic()
        blank = Answer(
            kind=OURS,
            task=bug.name,
            key=key,
            has_passed=False,
            first_passed=False,
            is_formed=False,
            is_located=False,
            is_checked=False,
            has_examples=bool(bug.examples()),
            attempts=1,
            prompt_tokens=0,
            answer_tokens=0,
            passes=0,
            seconds=0.0,
            text="",
        )
        try:
            made = attempts.run(task, RewriteListener(), Stop(), answer_tokens=budget)
        except ReplyUnusable as error:
            usage = cost_of(error)
            return replace(
                blank,
                attempts=0,
                answer_tokens=usage.answer_tokens,
                prompt_tokens=usage.prompt_tokens,
                seconds=time.monotonic() - began_s,
                text=error.reply,
                problem=f"{error.reason}: {error.message}",
            )
        seconds = time.monotonic() - began_s
        source = _joined(task, made.lines)
        passed = _passes(bug, source)
        first = made.candidates[0]
        is_first = made.attempts == len(made.candidates)  # else the first reply was unusable
        return replace(
            blank,
            has_passed=passed,
            first_passed=is_first
            and (passed if first.lines == made.lines else _passes(bug, _joined(task, first.lines))),
            is_formed=is_first,
            is_located=is_first and not first.is_same,
            is_checked=is_first and all(e.is_ok for e in first.checks if e.name != "test"),
            attempts=made.attempts,
            prompt_tokens=made.usage.prompt_tokens,
            answer_tokens=made.usage.answer_tokens,
            passes=made.usage.passes,
            seconds=seconds,
            text=source,
            problem="; ".join(f"{e.name}: {e.text}" for e in checks.failed(made.file.checks)),
        )


def instruction(bug: Bug) -> str:
    """Return the instruction."""
    return f"Fix the bug in the function `{bug.entry_point}`."


def asked_plainly(bug: Bug) -> list[Message]:
    """Return the plain question: the file, and a request for the function."""
    text = (
        f"{instruction(bug)}\n\n```python\n{bug.source.rstrip()}\n```\n\n"
        "Answer with the whole function in one code block."
    )
    return [Message("user", text)]


def code_of(reply: str, entry_point: str) -> str:
    """Return the code of a reply: the first block with the function, else all blocks."""
    blocks = _FENCE.findall(reply if reply.endswith("\n") else f"{reply}\n")
    head = f"def {entry_point}("
    whole = next((block for block in blocks if head in block), None)
    if whole is not None:
        return str(whole)
    return "\n".join(blocks) or re.sub(r"^```.*$", "", reply, flags=re.M)


def answers(judge: Judge, bugs: Sequence[Bug]) -> Iterator[Answer]:
    """Ask about each task plainly, and by ours.

    Several tasks are asked in one way before the next, so that the server reuses its cache.
    """
    for at in range(0, len(bugs), CHUNK):
        several = bugs[at : at + CHUNK]
        yield from map(judge.plain, several)
        yield from map(judge.ours, several)


def _joined(task: Task, lines: Lines) -> str:
    first, last = task.region.first_row, task.region.last_row
    return "\n".join((*task.lines[:first], *lines, *task.lines[last:])) + "\n"


def _passes(bug: Bug, source: str) -> bool:
    return sandbox.run(bug.program(source)) == "passed"


def _compiles(code: str) -> bool:
    try:
        compile(code, NAME, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


@contextmanager
def _project(bug: Bug) -> Iterator[Path]:
    """Create a project with the file, and with the examples for the test command."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        root = Path(folder).resolve()
        (root / NAME).write_text(bug.source, encoding="utf-8")
        examples.prepare(root, [(each.call, each.value) for each in bug.examples()])
        yield root


def _key(model: str, asked: Sequence[Message], *more: str) -> str:
    text = "\0".join((model, *(f"{each.role}:{each.text}" for each in asked), *more))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def default_cache(model: str) -> Path:
    """Return the file of a model's answers."""
    name = re.sub(r"[^\w.-]+", "-", Path(model).name)
    return folders.cache_home() / "evals" / f"edit-{name}.jsonl"
