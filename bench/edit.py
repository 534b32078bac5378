"""`bench edit`: what speculative decoding from the original text gains in edits.

The same edits of definitions in Python's standard library are requested of the same model on two
servers, one of which drafts tokens from the prompt. The two take turns, so that a machine that
slows down slows both.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from unittest import mock

import typer

from bench.report import Json, Promise, emit, exit_unless, head, measuring, run_facts, table
from lcursor.changes.records import Region
from lcursor.code import grammars, languages, structure
from lcursor.config import ChatConfig, EditConfig
from lcursor.edit.rewriting.rewriter import Rewriter
from lcursor.edit.rewriting.task import RewriteListener, Task
from lcursor.errors import LcursorError, ReplyUnusable
from lcursor.llm import llama_server
from lcursor.llm.llama_server import SPECULATIONS, Speculation
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.records import Usage
from lcursor.stop import Stop

MODEL: Final = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS: Final = 8192
MAX_TOKENS: Final = 2048
MIN_ROWS: Final = 40
FEWER: Final = Promise("fewer passes", at_least=3.0)
FASTER: Final = Promise("the tokens a second", at_least=1.5)
LIBRARY: Final = Path(statistics.__file__).parent

CASES: Final = (
    ("queue.py", "_PySimpleQueue", "Rename the attribute `_queue` to `_items`, everywhere."),
    ("csv.py", "DictReader", "Rename the attribute `_fieldnames` to `_names`, everywhere."),
    ("contextlib.py", "ExitStack", "Add a method `__len__` that returns the number of callbacks."),
    (
        "configparser.py",
        "BasicInterpolation",
        "Rename the method `_interpolate_some` to `_expand`.",
    ),
    ("difflib.py", "unified_diff", "Rename the parameter `n` to `context_lines`, everywhere."),
    ("heapq.py", "nlargest", "Rename the variable `result` to `found`, everywhere."),
    ("gettext.py", "NullTranslations", "Add a docstring to the method `__init__`."),
    ("textwrap.py", "dedent", "Add a parameter `tabs: int = 8` that is not used yet."),
)
"""File, definition and instruction."""


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

    @property
    def tokens_per_pass(self) -> float:
        """How many tokens an evaluation of the model gave."""
        return self.usage.answer_tokens / max(self.usage.passes, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        names = ("answer_tokens", "draft_tokens", "accepted_tokens", "passes")
        return {
            **{name: getattr(self.usage, name) for name in names},
            "tokens_per_s": round(self.tokens_per_s, 1),
            "seconds": round(self.seconds, 2),
            "is_usable": self.is_usable,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """An edit with speculative decoding and without."""

    name: str
    rows: int
    drafted: Answer
    plain: Answer

    @property
    def fewer(self) -> float:
        """How many times fewer passes a token needed."""
        return self.drafted.tokens_per_pass / max(self.plain.tokens_per_pass, 1e-6)

    @property
    def faster(self) -> float:
        """How many times more tokens a second there were."""
        return self.drafted.tokens_per_s / max(self.plain.tokens_per_s, 1e-6)

    @property
    def is_same(self) -> bool:
        """Whether both answers are the same."""
        return self.drafted.reply == self.plain.reply

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        answers = {"drafted": self.drafted.as_dict(), "plain": self.plain.as_dict()}
        return {"name": self.name, "rows": self.rows, **answers, "is_same": self.is_same}


def command(
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    only: Annotated[int, typer.Option(min=0, help="Number of edits; 0 is all.")] = 0,
    as_json: Json = False,
) -> None:
    """Rewrite functions with the original as a draft and without, on two servers in turn.

    Exits with 1 when a promise is not kept.
    """
    document = {**run_facts(), "model": model or MODEL}
    pairs = measure(model, CASES[: only or None])
    document |= summary(pairs)
    emit(document, as_markdown(pairs, document), as_json)
    exit_unless(document["holds"])


def summary(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the report as JSON, the gains (medians) at top level."""
    fewer = statistics.median([each.fewer for each in pairs] or [0.0])
    faster = statistics.median([each.faster for each in pairs] or [0.0])
    return {
        "times_fewer_passes": round(fewer, 2),
        "times_more_tokens_per_s": round(faster, 2),
        "same_answers": sum(each.is_same for each in pairs),
        "edits": len(pairs),
        "holds": FEWER.holds(fewer) and FASTER.holds(faster),
        "pairs": [each.as_dict() for each in pairs],
    }


def as_markdown(pairs: Sequence[Pair], document: dict[str, Any]) -> list[str]:
    """Return the lines of the report."""
    rows = []
    for pair in pairs:
        on, off = pair.drafted, pair.plain
        share = on.usage.accepted_tokens / max(on.usage.draft_tokens, 1)
        rows.append(
            (
                *(pair.name, pair.rows, on.usage.answer_tokens, on.usage.passes, off.usage.passes),
                *(f"{pair.fewer:.1f} ×", f"{on.tokens_per_s:.1f}", f"{off.tokens_per_s:.1f}"),
                *(f"{pair.faster:.2f} ×", f"{share:.0%}", "yes" if pair.is_same else "no"),
            )
        )
    columns = ["edit", "lines:", "tokens:", "passes:", "without:", "fewer:", "tokens/s:"]
    return [
        *head(document, f"Model: {document['model']}"),
        *table([*columns, "without:", "faster:", "drafts accepted:", "same"], rows),
        "",
        f"Median: {document['times_fewer_passes']:.2f} × {FEWER.label} "
        f"(promised: {FEWER.at_least:g}), {document['times_more_tokens_per_s']:.2f} × "
        f"{FASTER.label} (promised: {FASTER.at_least:g}), "
        f"{document['same_answers']} of {document['edits']} answers the same.",
    ]


def measure(model: str, cases: Sequence[tuple[str, str, str]]) -> list[Pair]:
    """Request each edit twice.

    Args:
        model: a name of `models list`, or a path; "" is the small one.
        cases: some of `CASES`.
    """
    pairs: list[Pair] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lce")))
        measuring("starting two servers")
        on = stack.enter_context(_server(folder / "on", model, SPECULATIONS))
        off = stack.enter_context(_server(folder / "off", model, ()))
        for number, case in enumerate(cases):
            task = task_of(*case)
            order = (on, off) if number % 2 else (off, on)
            made = {id(each): _answer(each, task) for each in order}
            pair = Pair(" ".join(case[:2]), len(task.old), made[id(on)], made[id(off)])
            pairs.append(pair)
            measuring(
                f"{pair.name}: {pair.drafted.usage.passes} passes for "
                f"{pair.drafted.usage.answer_tokens} tokens, {pair.drafted.tokens_per_s:.1f} "
                f"tokens/s with {pair.plain.tokens_per_s:.1f} without"
            )
    return pairs


def task_of(file: str, name: str, instruction: str) -> Task:
    """Return the task of an edit.

    Raises:
        LcursorError: this Python's file has no such definition, or it is too short.
    """
    path = LIBRARY / file
    lines = tuple(path.read_text("utf-8").split("\n"))
    data = "\n".join(lines).encode()
    language = languages.detect(file)
    root = grammars.parse(language, data)
    found = structure.definitions_in_tree(language, root, data, lines) if root is not None else []
    for item in found:
        if item.name == name and item.end - item.first >= MIN_ROWS:
            region = Region(item.first, item.end, f"{item.kind} {name}")
            return Task(str(path), file, language, lines, region, instruction)
    raise LcursorError(f"{path} has no {name} of {MIN_ROWS} lines", "Change CASES in bench/edit.py")


def _answer(connection: Connection, task: Task) -> Answer:
    config, began_s = EditConfig(max_tokens=MAX_TOKENS), time.monotonic()
    try:
        written = Rewriter(connection, config).run(task, RewriteListener(), Stop())
    except ReplyUnusable as error:
        if not isinstance(error.usage, Usage):
            raise
        return Answer(error.usage, error.reply, 0.0, False)
    return Answer(written.usage, written.reply, time.monotonic() - began_s, True)


@contextmanager
def _server(folder: Path, model: str, speculations: Sequence[Speculation]) -> Iterator[Connection]:
    config = ChatConfig(model=model or MODEL, context_tokens=CONTEXT_TOKENS, temperature=0.0)
    models = ModelPool(config, folder, lambda _: None)
    try:
        with mock.patch.object(llama_server, "SPECULATIONS", speculations):
            connection = models.connect(models.names()[0], Stop())
        yield connection
    finally:
        models.local_server().stop()
        models.close()
