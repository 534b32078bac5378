"""`bench edit`: what speculative decoding from the original text gains in edits.

The same edits of 40 lines and more are asked of the same model on two servers, one of which drafts
tokens from the prompt. The two take turns, so that a machine that slows down slows both.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import typer

from bench.report import Json, emit, exit_unless, head, measuring, run_facts, table
from lcursor.code import grammars, languages, structure
from lcursor.config import ChatConfig, EditConfig
from lcursor.edit.records import Region
from lcursor.edit.rewriting.rewrite import Rewriter, Silent
from lcursor.edit.rewriting.task import Task
from lcursor.errors import LcursorError, ReplyUnusable
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import Usage

MODEL: Final = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS: Final = 8192
MAX_TOKENS: Final = 2048
MIN_ROWS: Final = 40
MIN_FEWER, MIN_FASTER = 3.0, 1.5
"""Promised gains: times fewer passes, times more tokens a second."""
ROOT: Final = Path(__file__).resolve().parents[1] / "lcursor"


@dataclass(frozen=True, slots=True)
class Case:
    """An edit of a definition in a file of lcursor."""

    file: str
    name: str
    instruction: str


CASES: Final = (
    Case(
        "llm/streaming.py",
        "ReasoningSplitter",
        "Rename the attribute `_held` to `_kept`, everywhere.",
    ),
    Case(
        "catalog/sink.py",
        "Sink",
        "Behind the method `close`, add a method `__len__` that returns `self.size`.",
    ),
    Case("llm/launch.py", "Launcher", "Rename the attribute `_child` to `_started`, everywhere."),
    Case(
        "code/outline.py",
        "outline",
        "Add a parameter `mark: str = LEFT_OUT` behind `members`, and use it where LEFT_OUT is.",
    ),
    Case("fim/kv.py", "KVShadow", "Add a docstring to the method `__init__`."),
    Case("index/throttle.py", "Throttle", "Rename the method `passes` to `wait`."),
    Case(
        "chat/relay.py",
        "Relay",
        'Give `__init__` a parameter `name: str = "relay"` and name the thread after it.',
    ),
    Case(
        "fim/vocabulary.py",
        "Vocabulary",
        "At the end, add a property `size` that returns `len(self.pieces)`.",
    ),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one server."""

    usage: Usage
    reply: str
    seconds: float
    is_usable: bool

    @property
    def tokens_per_s(self) -> float:
        """The speed of the answer, by the server's clock."""
        return self.usage.answer_tokens / max(self.usage.answer_ms / 1000, 1e-6)


@dataclass(frozen=True, slots=True)
class Pair:
    """An edit with speculative decoding and without."""

    case: Case
    rows: int
    drafted: Answer
    plain: Answer

    @property
    def is_same(self) -> bool:
        """Whether both answers are the same."""
        return self.drafted.reply == self.plain.reply

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        row: dict[str, Any] = {"file": self.case.file, "name": self.case.name, "rows": self.rows}
        for name, each in (("drafted", self.drafted), ("plain", self.plain)):
            row[name] = {
                "answer_tokens": each.usage.answer_tokens,
                "draft_tokens": each.usage.draft_tokens,
                "accepted_tokens": each.usage.accepted_tokens,
                "passes": each.usage.passes,
                "tokens_per_s": round(each.tokens_per_s, 1),
                "seconds": round(each.seconds, 2),
                "is_usable": each.is_usable,
            }
        return row | {"is_same": self.is_same}


@dataclass(slots=True)
class Findings:
    """The answers to all edits."""

    facts: dict[str, Any]
    pairs: list[Pair] = field(default_factory=list)

    @property
    def fewer(self) -> float:
        """How many times fewer passes a token needed (median)."""
        return _ratio(self.pairs, lambda a: a.usage.answer_tokens / max(a.usage.passes, 1))

    @property
    def faster(self) -> float:
        """How many times more tokens a second there were (median)."""
        return _ratio(self.pairs, lambda a: a.tokens_per_s)

    @property
    def holds(self) -> bool:
        """Whether both promises are kept."""
        return self.fewer >= MIN_FEWER and self.faster >= MIN_FASTER

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON, the gains at top level."""
        return {
            "times_fewer_passes": round(self.fewer, 2),
            "times_more_tokens_per_s": round(self.faster, 2),
            "same_answers": sum(each.is_same for each in self.pairs),
            "edits": len(self.pairs),
            "holds": self.holds,
            **self.facts,
            "pairs": [each.as_dict() for each in self.pairs],
        }

    def as_markdown(self) -> list[str]:
        """Return the lines of the report."""
        rows = []
        for pair in self.pairs:
            on, off = pair.drafted, pair.plain
            share = on.usage.accepted_tokens / max(on.usage.draft_tokens, 1)
            rows.append(
                (
                    f"{pair.case.file} {pair.case.name}",
                    pair.rows,
                    on.usage.answer_tokens,
                    on.usage.passes,
                    off.usage.passes,
                    f"{_per_pass(on) / _per_pass(off):.1f} ×",
                    f"{on.tokens_per_s:.1f}",
                    f"{off.tokens_per_s:.1f}",
                    f"{on.tokens_per_s / off.tokens_per_s:.2f} ×",
                    f"{share:.0%}",
                    "yes" if pair.is_same else "no",
                )
            )
        columns = ["edit", "lines:", "tokens:", "passes:", "without:", "fewer:", "tokens/s:"]
        same = sum(each.is_same for each in self.pairs)
        return [
            *head(self.facts, f"Model: {self.facts['model']}"),
            *table([*columns, "without:", "faster:", "drafts accepted:", "same"], rows),
            "",
            f"Median: {self.fewer:.2f} × fewer passes (promised: {MIN_FEWER:g}), "
            f"{self.faster:.2f} × the tokens a second (promised: {MIN_FASTER:g}), "
            f"{same} of {len(self.pairs)} answers the same.",
        ]


def command(
    model: Annotated[
        str, typer.Option(help="A name of `models list`, or a path; the small one.")
    ] = "",
    only: Annotated[int, typer.Option(min=0, help="As many of the edits; 0 is all of them.")] = 0,
    as_json: Json = False,
) -> None:
    """Rewrite functions with the original as a draft and without, on two servers in turn.

    Exits with 1 when a promise is not kept.
    """
    found = measure(model, CASES[: only or None], run_facts())
    emit(found.as_dict(), found.as_markdown(), as_json)
    exit_unless(found.holds)


def measure(model: str, cases: Sequence[Case], facts: Mapping[str, Any]) -> Findings:
    """Ask for each edit twice.

    Args:
        model: a name of `models list`, or a path; "" is the small one.
        cases: the edits.
        facts: of the machine.
    """
    found = Findings({**facts, "model": model or MODEL})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lce")))
        measuring("starting two servers")
        on = stack.enter_context(_server(folder / "on", model, speculate=True))
        off = stack.enter_context(_server(folder / "off", model, speculate=False))
        for number, case in enumerate(cases):
            task = task_of(case)
            order = (on, off) if number % 2 else (off, on)
            made = {id(each): _answer(each, task) for each in order}
            pair = Pair(case, len(task.old), made[id(on)], made[id(off)])
            found.pairs.append(pair)
            measuring(
                f"{case.file} {case.name}: {pair.drafted.usage.passes} passes for "
                f"{pair.drafted.usage.answer_tokens} tokens, {pair.drafted.tokens_per_s:.1f} "
                f"tokens/s with {pair.plain.tokens_per_s:.1f} without"
            )
    return found


def task_of(case: Case) -> Task:
    """Return the task of an edit.

    Raises:
        LcursorError: the file has no such definition any more, or it is too short.
    """
    path = ROOT / case.file
    lines = tuple(path.read_text("utf-8").split("\n"))
    data = "\n".join(lines).encode()
    language = languages.detect(case.file)
    root = grammars.parse(language, data)
    found = structure.definitions_in_tree(language, root, data, lines) if root is not None else []
    for item in found:
        if item.name == case.name and item.end - item.first >= MIN_ROWS:
            region = Region(item.first, item.end, f"{item.kind} {item.name}")
            return Task(str(path), case.file, language, lines, region, case.instruction)
    raise LcursorError(
        f"{case.file} has no {case.name} of {MIN_ROWS} lines", "Change CASES in bench/edit.py"
    )


def _answer(reached: Connection, task: Task) -> Answer:
    config = EditConfig(max_tokens=MAX_TOKENS, temperature=0.0)
    try:
        written = Rewriter(reached, config).run(task, Silent(), threading.Event())
    except ReplyUnusable as error:
        if not isinstance(error.usage, Usage):
            raise
        return Answer(error.usage, error.reply, 0.0, False)
    return Answer(written.usage, written.reply, written.seconds, True)


@contextmanager
def _server(folder: Path, model: str, *, speculate: bool) -> Iterator[Connection]:
    config = ChatConfig(
        model=model or MODEL, context_tokens=CONTEXT_TOKENS, temperature=0.0, speculate=speculate
    )
    models = ModelPool(config, folder, lambda _: None)
    try:
        yield models.connect(models.names()[0], threading.Event())
    finally:
        models.local_server().stop()
        models.close()


def _per_pass(answer: Answer) -> float:
    return answer.usage.answer_tokens / max(answer.usage.passes, 1)


def _ratio(pairs: Sequence[Pair], of: Callable[[Answer], float]) -> float:
    """Return the median of the ratios of a quantity with drafts and without."""
    return median([of(each.drafted) / max(of(each.plain), 1e-6) for each in pairs] or [0.0])
