"""Has a model mend functions: asked plainly, and by the pipeline of edits; the tests judge both.

Each answer is kept in a file, so that a run that was stopped goes on where it was. Plain and ours
take turns, so that whatever there is can be compared. What a model wrote runs in the
sandbox alone. Runs the local server in a folder of its own, on this thread.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final, get_args

from evals import examples, sandbox
from evals.bugs import Bug
from evals.corpus import ROOT
from lcursor.config import ChatConfig, EditConfig
from lcursor.edit.records import Format, Lines
from lcursor.edit.rewriting import checks, prompt
from lcursor.edit.rewriting.attempts import Attempts, cost_of
from lcursor.edit.rewriting.region import grow
from lcursor.edit.rewriting.rewrite import Rewriter, Silent
from lcursor.edit.rewriting.task import Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.errors import ReplyUnusable
from lcursor.llm.reach import Models, Reached
from lcursor.llm.records import Finished, Message, Text, Wish

MODEL: Final = "qwen2.5-coder-1.5b"
CONTEXT_TOKENS: Final = 4096
MOST_TOKENS: Final = 768
"""Of one answer; the longest function has 400."""
BUDGET: Final = 2.0
"""All tries of ours may write so many times the tokens of the plain answer."""
RETRIES: Final = 3
"""As far as the budget goes."""
CHUNK: Final = 6
RECIPE: Final = "2"
"""Raised where the way is changed in which one try follows another: older answers do not count."""
NAME: Final = "solution.py"
PLAIN, OURS = "plain", "ours"
FORMATS: tuple[Format, ...] = get_args(Format)
_FENCE = re.compile(r"^[ ]{0,3}```[^\n]*\n(.*?)^[ ]{0,3}```", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one task."""

    kind: str
    """`plain`, `ours`, or a format, of which one try is made."""
    task: str
    key: str
    """Of what was asked, and how: another question has another."""
    has_passed: bool
    first_passed: bool
    """The first try alone."""
    is_formed: bool
    """The first reply was what was asked for."""
    is_located: bool
    """It was found where it belongs, and changes something."""
    is_checked: bool
    """It passed the checks that run nothing."""
    has_examples: bool
    attempts: int
    prompt_tokens: int
    answer_tokens: int
    passes: int
    seconds: float
    text: str
    """The file that was made; the reply where none was."""
    problem: str = ""


class Store:
    """The answers that are there already.

    Args:
        path: a file of JSON lines; made when the first is added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, str, str], Answer] = {}
        names = {each.name for each in fields(Answer)}
        try:
            rows = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            rows = []
        for row in rows:
            try:
                values = json.loads(row)
                found = Answer(**{name: values[name] for name in names})
            except (ValueError, KeyError, TypeError):
                continue  # the last one of a run that was killed
            self._known[found.kind, found.task, found.key] = found

    def find(self, kind: str, task: str, key: str) -> Answer | None:
        """Return an answer to the same question."""
        return self._known.get((kind, task, key))

    def add(self, answer: Answer) -> Answer:
        """Keep one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(answer)) + "\n")
        self._known[answer.kind, answer.task, answer.key] = answer
        return answer


@contextmanager
def running(model: str) -> Iterator[Reached]:
    """Have a local server with a model, with guesses from what it reads.

    Raises:
        LcursorError: there is no such model, or no server for it.
    """
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        config = ChatConfig(
            model=model, context_tokens=CONTEXT_TOKENS, temperature=0.0, idle_minutes=1
        )
        models = Models(config, Path(folder), lambda _: None)
        try:
            yield models.reach(model, threading.Event())
        finally:
            models.local_server().stop()
            models.close()


class Judge:
    """Asks one model, and judges.

    Args:
        reached: the model.
        store: what was answered before.
        retries: most of them, for ours.
    """

    def __init__(self, reached: Reached, store: Store, retries: int = RETRIES) -> None:
        self._reached, self._store = reached, store
        self._config = EditConfig(retries=retries, max_tokens=MOST_TOKENS, temperature=0.0)

    def plain(self, bug: Bug) -> Answer:
        """Ask for the function as one does without lcursor."""
        asked = asked_plainly(bug)
        key = _key(self._reached.name, asked)
        if known := self._store.find(PLAIN, bug.name, key):
            return known
        began_s = time.monotonic()
        reply = ""
        prompt_tokens = answer_tokens = passes = 0
        stream = self._reached.client.stream(asked, Wish(MOST_TOKENS, 0.0))
        for event in stream:
            if isinstance(event, Text):
                reply += event.text
            elif isinstance(event, Finished):
                prompt_tokens = event.usage.prompt_tokens
                answer_tokens, passes = event.usage.answer_tokens, event.usage.passes
        seconds = time.monotonic() - began_s
        code = taken(reply, bug.entry_point)
        passed = _passes(bug, bug.before + code)
        return self._store.add(
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
        """Have the function mended as `:LCEdit` does it, within the budget."""
        budget = round(BUDGET * self.plain(bug).answer_tokens)
        task = self._task(bug, "whole")
        shown = bug.examples()
        key = _key(
            self._reached.name, prompt.messages(task), repr(self._config), str(budget), RECIPE
        )
        if known := self._store.find(OURS, bug.name, key):
            return known
        with _project(bug) as root:
            test = examples.command(ROOT, bug.entry_point) if shown else ""
            config = replace(self._config, test=test)
            task = replace(task, path=str(root / NAME))
            with Trial(root, config) as trial:
                attempts = Attempts(Rewriter(self._reached, config), trial, config)
                return self._store.add(self._tried(bug, task, attempts, key, budget))

    def one(self, bug: Bug, form: Format) -> Answer:
        """Have the function mended in one try in a format."""
        task = self._task(bug, form)
        config = replace(self._config, retries=0)
        key = _key(self._reached.name, prompt.messages(task), repr(config))
        if known := self._store.find(form, bug.name, key):
            return known
        attempts = Attempts(Rewriter(self._reached, config), None, config)
        return self._store.add(self._tried(bug, task, attempts, key, 0, form))

    def _task(self, bug: Bug, form: Format) -> Task:
        lines = tuple(bug.source.rstrip("\n").split("\n"))
        head = f"def {bug.entry_point}("
        row = next(at for at, line in enumerate(lines) if line.startswith(head))
        count = self._reached.counter.known
        region = grow(lines, "python", row, row, self._config.region_tokens, lambda t: count(t)[0])
        return Task(NAME, NAME, "python", lines, region, instruction(bug), "", form)

    def _tried(
        self, bug: Bug, task: Task, attempts: Attempts, key: str, budget: int, kind: str = OURS
    ) -> Answer:
        began_s = time.monotonic()
        blank = Answer(
            kind=kind,
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
            made = attempts.run(task, Silent(), threading.Event(), answer_tokens=budget)
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
        source = _joined(task, made.lines)
        passed = _passes(bug, source)
        first = made.tries[0]
        is_first = made.attempts == len(made.tries)  # else the first reply was of no use
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
            passes=made.passes,
            seconds=made.seconds,
            text=source,
            problem="; ".join(f"{e.name}: {e.text}" for e in checks.failed(made.file.checks)),
        )


def instruction(bug: Bug) -> str:
    """Return what is asked for."""
    return f"Fix the bug in the function `{bug.entry_point}`."


def asked_plainly(bug: Bug) -> list[Message]:
    """Return the question of somebody without lcursor: the file, and a request for the function."""
    text = (
        f"{instruction(bug)}\n\n```python\n{bug.source.rstrip()}\n```\n\n"
        "Answer with the whole function in one code block."
    )
    return [Message("user", text)]


def taken(reply: str, entry_point: str) -> str:
    """Return the code of a reply: the first block that has the function, else all blocks."""
    blocks = _FENCE.findall(reply if reply.endswith("\n") else f"{reply}\n")
    head = f"def {entry_point}("
    whole = next((block for block in blocks if head in block), None)
    if whole is not None:
        return str(whole)
    return "\n".join(blocks) or re.sub(r"^```.*$", "", reply, flags=re.M)


def answers(judge: Judge, bugs: Sequence[Bug], formats: Sequence[Format]) -> Iterator[Answer]:
    """Ask about each task plainly, by ours, and once in each format.

    Several are asked in one way before they are in the next: the server has read the beginning.
    """
    for at in range(0, len(bugs), CHUNK):
        several = bugs[at : at + CHUNK]
        yield from map(judge.plain, several)
        yield from map(judge.ours, several)
        for form in formats:
            yield from (judge.one(bug, form) for bug in several)


def complete(found: Sequence[Answer]) -> list[Answer]:
    """Return the answers to tasks that were asked both ways."""
    both = {each.task for each in found if each.kind == PLAIN}
    both &= {each.task for each in found if each.kind == OURS}
    return [each for each in found if each.task in both]


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
    """Make a project of the one file, and of the examples for the test command."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        root = Path(folder).resolve()
        (root / NAME).write_text(bug.source, encoding="utf-8")
        rows = [[each.call, each.value] for each in bug.examples()]
        (root / examples.NAME).write_text(json.dumps(rows), encoding="utf-8")
        yield root


def _key(model: str, asked: Sequence[Message], *more: str) -> str:
    text = "\0".join((model, *(f"{each.role}:{each.text}" for each in asked), *more))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def default_store(model: str) -> Path:
    """Return where the answers of a model are kept."""
    from lcursor import folders

    name = re.sub(r"[^\w.-]+", "-", Path(model).name)
    return folders.cache_home() / "evals" / f"edit-{name}.jsonl"
