"""The record of a run: each operation is a line of JSON, written before it has effects.

The state of a run is a function of its lines. An answer without an end is continued after a crash;
`loop` decides what to do with a call that had begun. The conversation with the model is stored as
differences: it only grows, so that a line has just its new tokens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lcursor.agent import run_ops as ops
from lcursor.agent.records import Observation, Policy, Shown, State, ToolCall
from lcursor.agent.stuck import DoneCall
from lcursor.agent.tools.table import kind_of
from lcursor.errors import AgentFailed
from lcursor.protocol.agent import AgentChoice, StepKind, StepState
from lcursor.storage import stored
from lcursor.storage.log_file import LogFile

VERSION = 1
"""Version of the operations; runs with a higher one are not opened."""
NAME = "run.jsonl"
MAX_AT_S = 1 << 36
"""Times are earlier, as seconds since 1970, so that each is a date."""
NOT_RUN = frozenset({"rejected", "not run", "skipped"})
"""Results of calls that did not run."""


@dataclass(slots=True)
class AgentStep:
    """A call of the model, and what became of it."""

    number: int
    """From 1."""
    call: ToolCall
    text: str = ""
    """What the model wrote, for the first call of an answer."""
    decision: str = ""
    """"" before, "asked" while it waits for the user, "allow", or the reason against it."""
    before: str = ""
    """Id of the tree when it began; "" if it has not."""
    after: str = ""
    observation: Observation | None = None
    seconds: float = 0.0

    done: DoneCall | None = None
    """The step as the rules of `stuck` see it, once it has ended."""

    @property
    def kind(self) -> StepKind:
        """The kind, for the user."""
        return kind_of(self.call)

    @property
    def target(self) -> str:
        """The object of the call, for the user."""
        if self.observation and self.observation.target:
            return self.observation.target
        others = ("path", "pattern", "query", "words")
        names = ("command", "name") if self.kind == "command" else others
        found = (self.call.arguments.get(name) for name in names)
        return next((str(each) for each in found if each), "")

    @property
    def shown_state(self) -> StepState:
        """The state, for the user."""
        observation = self.observation
        if observation is None:
            return "waiting" if self.decision == "asked" else "running"
        if observation.result in NOT_RUN:
            return "rejected"
        return "failed" if observation.is_error else "done"

    @property
    def is_finished(self) -> bool:
        """Whether it ended the run successfully."""
        found = self.observation
        return self.call.tool == "finish" and found is not None and found.result == "done"


@dataclass(slots=True)
class PendingAnswer:
    """An answer of the model that is being carried out."""

    steps: tuple[int, ...]
    """Numbers of its calls."""
    text: str
    problem: str
    finish: str


@dataclass(slots=True)
class RunState:
    """The state of a run after the operations of its log."""

    key: str = ""
    root: str = ""
    task: str = ""
    context: str = ""
    policy: Policy = "auto"
    model: str = ""
    dialect: str = ""
    sandbox: str = ""
    note: str = ""
    at_s: float = 0.0
    group: str = ""
    """Of the runs that attempt the same task; "" for a run of its own."""
    attempt: int = 0
    test: str = ""
    """The only failing test that it has to correct; "" for all."""
    state: State = "preparing"
    message: str = ""
    is_checked: bool = False
    turn: str = ""
    paths: list[str] = field(default_factory=list)
    digest: str = ""
    """Of its changes, for comparing."""
    added: int = 0
    """Number of lines at the end."""
    removed: int = 0
    changes_tests: bool = False
    """Whether it changed or deleted lines of tests."""
    plan: str = ""
    """The approved plan."""
    planned: int = 0
    """Number of the step that proposed it."""
    steps: list[AgentStep] = field(default_factory=list)
    answer: PendingAnswer | None = None
    """The answer whose calls are not all done, or whose results the model has not read."""
    talk: dict[str, Any] = field(default_factory=dict)
    """`Model.state`."""
    said: list[str] = field(default_factory=list)
    """Messages of the user."""
    said_after: list[int] = field(default_factory=list)
    """Number of steps before each of them."""
    read: int = 0
    """Number of those that the model has read."""
    past: int = 0
    """Number of steps before the user continued a run that was over."""
    answers: int = 0
    malformed: int = 0
    """Number of malformed answers in a row."""
    silent: int = 0
    """Number of answers without a call in a row."""
    failed_gates: int = 0
    warned: int = 0
    """Number of steps at the last warning or message, or when the run was continued."""
    warnings: int = 0
    summarized: int = 0
    """Number of steps at the last summary."""
    seconds: float = 0.0
    """Time of work."""
    read_tokens: int = 0
    """Tokens of prompts that the model evaluated."""
    cached_tokens: int = 0
    """Tokens of prompts that the server found in its KV cache."""
    answer_tokens: int = 0
    cached_share: float = 0.0
    """Share of the last prompt that was found in the KV cache."""
    answers_of_user: list[tuple[ToolCall, AgentChoice, str]] = field(default_factory=list)
    """The user's answers to questions, with reasons against calls."""
    resumed: tuple[int, float, int] = (0, 0.0, 0)
    """Number of answers, seconds and tokens when it was started or continued."""

    @property
    def tokens(self) -> int:
        """Number of tokens that the model evaluated or wrote."""
        return self.read_tokens + self.answer_tokens

    @property
    def unread(self) -> list[str]:
        """The messages of the user that the model has not read."""
        return self.said[self.read :]

    @property
    def gate(self) -> Literal["passed", "failed", "none"]:
        """The result of the user's tests and linter; "none" if nothing was checked."""
        if self.is_checked:
            return "passed"
        last = next((each for each in reversed(self.steps) if each.call.tool == "finish"), None)
        found = last.observation if last else None
        is_failed = found is not None and found.is_error and found.result not in NOT_RUN
        return "failed" if is_failed else "none"

    @property
    def is_over(self) -> bool:
        """Whether it has ended; it may still be continued."""
        return self.state in ("done", "stuck", "failed", "stopped")

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply an operation.

        Raises:
            AgentFailed: a newer lcursor wrote the run.
            KeyError: it lacks its name, or names a missing step.
            ValueError, TypeError: it is unknown, or a field is missing or invalid.
        """
        kind, apply = OPERATIONS[row["op"]]
        apply(self, stored.load(kind, row))

    def _on_start(self, op: ops.Start) -> None:
        if op.version > VERSION:
            raise AgentFailed("a newer lcursor wrote this run", "Update lcursor")
        if not 0 <= op.at_s < MAX_AT_S:
            raise ValueError("it has no valid time")
        self.key, self.root, self.task, self.context = op.key, op.root, op.task, op.context
        self.policy, self.model, self.dialect = op.policy, op.model, op.dialect
        self.sandbox, self.note, self.at_s, self.state = op.sandbox, op.note, op.at_s, "running"
        self.group, self.attempt, self.test = op.group, op.attempt, op.test

    def _on_talk(self, op: ops.Talk) -> None:
        self.talk = patch(self.talk, op.talk)
        self.answer = None if op.is_read else self.answer
        if op.said:  # what the user says may be a reason to repeat a call
            self.read, self.warned = self.read + op.said, len(self.steps)
        if op.is_summary:
            self.summarized = len(self.steps)
        if op.is_warning:
            self.warned, self.warnings = len(self.steps), self.warnings + 1

    def _on_answer(self, op: ops.Answered) -> None:
        self.talk = patch(self.talk, op.talk)
        first = len(self.steps) + 1
        for number, call in enumerate(op.calls, first):
            self.steps.append(AgentStep(number, call, op.text if number == first else ""))
        numbers = tuple(range(first, first + len(op.calls)))
        self.answer = PendingAnswer(numbers, op.text, op.problem, op.finish)
        self.answers += 1
        self.malformed = self.malformed + 1 if op.problem else 0
        self.silent = 0 if op.calls or op.problem else self.silent + 1
        self.seconds += op.seconds
        self.read_tokens += op.usage.read_tokens
        self.cached_tokens += op.usage.cached_tokens
        self.answer_tokens += op.usage.answer_tokens
        self.cached_share = op.cached_share

    def _on_call(self, op: ops.Added) -> None:
        """Add a call that the program makes for an answer."""
        if self.answer is None:
            raise KeyError("answer")
        number = len(self.steps) + 1
        self.steps.append(AgentStep(number, ToolCall(op.tool, op.arguments)))
        self.answer.steps += (number,)

    def _on_asked(self, op: ops.Asked) -> None:
        self._step(op.step).decision = "asked"

    def _on_decided(self, op: ops.Decided) -> None:
        step = self._step(op.step)
        step.decision = op.decision
        if op.arguments is not None:
            step.call = ToolCall(step.call.tool, op.arguments)
        self.answers_of_user.append((step.call, op.choice, op.reason))

    def _on_begin(self, op: ops.Begun) -> None:
        self._step(op.step).before = op.tree

    def _on_end(self, op: ops.Ended) -> None:
        step = self._step(op.step)
        self.seconds += op.seconds - step.seconds  # an agent of others may report more of a step
        step.observation, step.seconds = op.observation, op.seconds
        step.before, step.after = step.before or op.tree, op.tree
        rows = frozenset((each.path, row) for each in op.observation.shown for row in _rows(each))
        step.done = DoneCall(step.call.key, op.digest, step.before, step.after, rows)
        self.failed_gates += step.call.tool == "finish" and not step.is_finished

    def _on_said(self, op: ops.Said) -> None:
        self.said.append(op.text)
        self.said_after.append(len(self.steps))

    def _on_plan(self, op: ops.Planned) -> None:
        self.policy, self.plan, self.planned = op.policy, op.text, op.step

    def _on_done(self, op: ops.Done) -> None:
        self.state, self.message, self.turn = op.state, op.message, op.turn
        self.is_checked, self.paths = op.is_checked, op.paths
        self.digest, self.added, self.removed = op.digest, op.added, op.removed
        self.changes_tests = op.changes_tests

    def _on_resume(self, op: ops.Resumed) -> None:
        if self.is_over:
            self.past = len(self.steps)
        self.state, self.message, self.sandbox = "running", "", op.sandbox
        self.policy = op.policy or self.policy
        self.resumed = (self.answers, self.seconds, self.tokens)
        self.malformed = self.silent = self.failed_gates = self.warnings = 0
        self.warned = len(self.steps)

    def _step(self, number: int) -> AgentStep:
        if not 0 < number <= len(self.steps):
            raise KeyError(number)
        return self.steps[number - 1]


OPERATIONS: Mapping[str, tuple[type, Callable[[RunState, Any], None]]] = {
    "start": (ops.Start, RunState._on_start),
    "talk": (ops.Talk, RunState._on_talk),
    "answer": (ops.Answered, RunState._on_answer),
    "call": (ops.Added, RunState._on_call),
    "asked": (ops.Asked, RunState._on_asked),
    "decided": (ops.Decided, RunState._on_decided),
    "begin": (ops.Begun, RunState._on_begin),
    "end": (ops.Ended, RunState._on_end),
    "said": (ops.Said, RunState._on_said),
    "plan": (ops.Planned, RunState._on_plan),
    "done": (ops.Done, RunState._on_done),
    "resume": (ops.Resumed, RunState._on_resume),
}
"""The operations by their stored names."""


class RunLog:
    """The state of a run and its file. Any thread.

    Args:
        folder: of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = RunState()
        self.damaged = 0
        """Number of lines that could not be read."""
        self._file = LogFile(folder / NAME)
        self._lock = threading.RLock()

    @classmethod
    def open(cls, folder: Path) -> RunLog:
        """Read a run; damaged lines are skipped and counted.

        Raises:
            AgentFailed: it cannot be read, or a newer lcursor wrote it.
        """
        log = cls(folder)
        for row in _rows_of(folder, log._file):
            try:
                log.state.apply(row)
            except stored.DAMAGE:
                log.damaged += 1
            except AgentFailed as error:
                raise _unreadable(folder, error.message) from error
        if not log.state.key:
            raise _unreadable(folder, "it has no valid first line")
        if log.damaged:
            parts = (log.state.note, f"{log.damaged} damaged lines of its record were skipped")
            log.state.note = "; ".join(filter(None, parts))
        return log

    def write(self, op: str, *, fsync: bool = False, **fields: Any) -> None:
        """Append an operation, then apply it.

        Args:
            fsync: make it and all earlier ones survive a power failure.

        Raises:
            AgentFailed: it cannot be stored; the state is as before.
        """
        row = {"op": op, **fields}
        line = stored.encode_line(row)
        with self._lock:
            with self._file.lock_for_writing() as fd:
                error = fd if isinstance(fd, OSError) else None
                if isinstance(fd, int):
                    error = self._file.append(fd, [line], fsync=fsync)
            if error is not None:
                raise AgentFailed(
                    f"the run cannot be stored: {error.strerror or error} ({self._file.path})",
                    "Check disk space, then continue the run",
                )
            self.state.apply(row)

    def write_talk(self, talk: Mapping[str, Any], **new: Any) -> None:
        """Append what is new in the conversation.

        Args:
            new: `is_read`: the results of the last answer; `said`: so many messages of the user;
                `is_summary`; `is_warning`.
        """
        self.write("talk", talk=difference(self.state.talk, talk), **new)

    def start(self, **fields: Any) -> None:
        """Append the first operation."""
        self.write("start", fsync=True, version=VERSION, at_s=time.time(), **fields)


def rows_of(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the operations of a run; a damaged one is an empty table.

    Raises:
        AgentFailed: it cannot be read.
    """
    yield from _rows_of(folder, LogFile(folder / NAME))


def _rows_of(folder: Path, file: LogFile) -> Iterator[Mapping[str, Any]]:
    try:
        with file.lock_for_reading() as fd:
            lines, _ = file.read_new(fd)
    except OSError as error:
        raise _unreadable(folder, error.strerror or str(error)) from error
    for line in lines:
        try:
            yield stored.decode_line(line)
        except stored.DAMAGE:
            yield {}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what turns one table into another with `patch`, short if lists and texts only grow.

    A value is `[n, rest]`: the first n items or characters of the old one, then the rest; or a
    table with the new value.
    """
    rows = dict[str, Any]()
    for name, value in new.items():
        before = old.get(name)
        if before is not None and isinstance(value, (list, str)) and type(value) is type(before):
            common = _common(before, value)
            if common < len(before) or common < len(value):
                rows[name] = [common, value[common:]]
        elif name not in old or before != value:
            rows[name] = {"value": value}
    rows.update(dict.fromkeys(old.keys() - new.keys()))
    return rows


def patch(old: Mapping[str, Any], rows: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a result of `difference`.

    Raises:
        KeyError, TypeError, ValueError: it is not one for this table.
    """
    new = dict(old)
    for name, row in rows.items():
        if row is None:
            new.pop(name, None)
        elif isinstance(row, list):
            count, rest = row
            if not 0 <= count <= len(new[name]):
                raise ValueError("a part of the conversation is missing")
            new[name] = new[name][:count] + rest
        else:
            new[name] = row["value"]
    return new


def _common(old: Sequence[Any], new: Sequence[Any]) -> int:
    """Return the length of the common prefix."""
    if new[: len(old)] == old:
        return len(old)
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))


def _rows(shown: Shown) -> range:
    return range(shown.first_row, shown.last_row)


def _unreadable(folder: Path, why: str) -> AgentFailed:
    return AgentFailed(
        f"the run {folder.name} cannot be read: {why} ({folder / NAME})",
        "Choose another one, see: python -m lcursor agent --list",
    )
