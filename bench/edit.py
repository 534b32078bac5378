"""What the original is worth as a draft: `python -m lcursor bench edit`.

The same edits of 40 lines and more, asked of the same model on two servers that differ in one
thing: whether they guess from what stands in the prompt. The two take turns, so that a machine that
slows down slows both. Servers of its own; the user's is left alone.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from lcursor.code import grammars, languages, structure
from lcursor.config import ChatConfig, EditConfig
from lcursor.edit.records import Region
from lcursor.edit.rewriting.rewrite import Rewriter, Silent
from lcursor.edit.rewriting.task import Task
from lcursor.errors import LcursorError, ReplyUnusable
from lcursor.llm.reach import Models, Reached
from lcursor.llm.records import Usage

MODEL: Final = "qwen2.5-coder-0.5b"
CONTEXT_TOKENS: Final = 8192
MOST_TOKENS: Final = 2048
LEAST_ROWS: Final = 40
LEAST_FEWER, LEAST_FASTER = 3.0, 1.5
"""Times fewer passes, and times more tokens a second, that the draft is to bring."""
ROOT: Final = Path(__file__).resolve().parents[1] / "lcursor"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One edit of a definition in a file of lcursor's own."""

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
    Case(
        "process/supervise.py",
        "Child",
        "Rename the attribute `_log_start` to `_begin`, everywhere.",
    ),
    Case(
        "code/outline.py",
        "outline",
        "Add a parameter `mark: str = LEFT_OUT` behind `members`, and use it where LEFT_OUT is.",
    ),
    Case("fim/kv.py", "KVShadow", "Add a docstring to the method `__init__`."),
    Case("index/gate.py", "Gate", "Rename the method `passes` to `wait`."),
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
    """One edit, as one of the two servers made it."""

    usage: Usage
    reply: str
    seconds: float
    is_usable: bool

    @property
    def tokens_per_s(self) -> float:
        """How fast the answer came, by the server's clock."""
        return self.usage.answer_tokens / max(self.usage.answer_ms / 1000, 1e-6)


@dataclass(frozen=True, slots=True)
class Pair:
    """One edit with the original as a draft and without."""

    case: Case
    rows: int
    drafted: Answer
    plain: Answer

    @property
    def is_same(self) -> bool:
        """Whether both servers wrote the same."""
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
    """What was measured."""

    facts: dict[str, str]
    pairs: list[Pair] = field(default_factory=list)

    @property
    def fewer(self) -> float:
        """How many times fewer passes a token of the answers needed, all together."""
        return _ratio(self.pairs, lambda a: a.usage.answer_tokens / max(a.usage.passes, 1))

    @property
    def faster(self) -> float:
        """How many times more tokens a second there were, all together."""
        return _ratio(self.pairs, lambda a: a.tokens_per_s)

    @property
    def holds(self) -> bool:
        """Whether both are as promised."""
        return self.fewer >= LEAST_FEWER and self.faster >= LEAST_FASTER

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON, what was asked for on top."""
        return {
            "times_fewer_passes": round(self.fewer, 2),
            "times_more_tokens_per_s": round(self.faster, 2),
            "same_answers": sum(each.is_same for each in self.pairs),
            "edits": len(self.pairs),
            "holds": self.holds,
            **self.facts,
            "pairs": [each.as_dict() for each in self.pairs],
        }

    def as_markdown(self) -> str:
        """Return a table of the edits, and what they say together."""
        rows = [
            "| edit | lines | tokens | passes | without | fewer | tokens/s | without | faster "
            "| guesses right | same |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
        ]
        for pair in self.pairs:
            on, off = pair.drafted, pair.plain
            share = on.usage.accepted_tokens / max(on.usage.draft_tokens, 1)
            fewer = _per_pass(on) / _per_pass(off)
            rows.append(
                f"| {pair.case.file} {pair.case.name} | {pair.rows} | {on.usage.answer_tokens} "
                f"| {on.usage.passes} | {off.usage.passes} | {fewer:.1f} × "
                f"| {on.tokens_per_s:.1f} | {off.tokens_per_s:.1f} "
                f"| {on.tokens_per_s / off.tokens_per_s:.2f} × | {share:.0%} "
                f"| {'yes' if pair.is_same else 'no'} |"
            )
        same = sum(each.is_same for each in self.pairs)
        return "\n".join(
            [
                *(f"- {name}: {text}" for name, text in self.facts.items()),
                "",
                *rows,
                "",
                f"All together: {self.fewer:.2f} × fewer passes (asked: {LEAST_FEWER:g}), "
                f"{self.faster:.2f} × the tokens a second (asked: {LEAST_FASTER:g}), "
                f"{same} of {len(self.pairs)} answers the same.",
            ]
        )


def measure(model: str, cases: Sequence[Case], facts: dict[str, str], say: Say) -> Findings:
    """Make each edit twice.

    Args:
        model: a name of `models list`, or a path; "" is the small one.
        cases: the edits.
        facts: of the machine.
        say: told what is being measured.
    """
    found = Findings({**facts, "model": model or MODEL})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lce")))
        say("starting two servers")
        on = stack.enter_context(_server(folder / "on", model, speculate=True))
        off = stack.enter_context(_server(folder / "off", model, speculate=False))
        for number, case in enumerate(cases):
            task = task_of(case)
            order = (on, off) if number % 2 else (off, on)
            made = {id(each): _answer(each, task) for each in order}
            pair = Pair(case, len(task.old), made[id(on)], made[id(off)])
            found.pairs.append(pair)
            say(
                f"{case.file} {case.name}: {pair.drafted.usage.passes} passes for "
                f"{pair.drafted.usage.answer_tokens} tokens, {pair.drafted.tokens_per_s:.1f} "
                f"tokens/s with {pair.plain.tokens_per_s:.1f} without"
            )
    return found


def task_of(case: Case) -> Task:
    """Return an edit as it is asked for.

    Raises:
        LcursorError: the file has no such definition any more, or it became too short.
    """
    path = ROOT / case.file
    lines = tuple(path.read_text("utf-8").split("\n"))
    data = "\n".join(lines).encode()
    language = languages.detect(case.file)
    root = grammars.parse(language, data)
    found = structure.definitions_in_tree(language, root, data, lines) if root is not None else []
    for item in found:
        if item.name == case.name and item.end - item.first >= LEAST_ROWS:
            region = Region(item.first, item.end, f"{item.kind} {item.name}")
            return Task(str(path), case.file, language, lines, region, case.instruction)
    raise LcursorError(
        f"{case.file} has no {case.name} of {LEAST_ROWS} lines", "Change CASES in bench/edit.py"
    )


def _answer(reached: Reached, task: Task) -> Answer:
    config = EditConfig(max_tokens=MOST_TOKENS, temperature=0.0)
    try:
        written = Rewriter(reached, config).run(task, Silent(), threading.Event())
    except ReplyUnusable as error:
        if not isinstance(error.usage, Usage):
            raise
        return Answer(error.usage, error.reply, 0.0, False)
    return Answer(written.usage, written.reply, written.seconds, True)


@contextmanager
def _server(folder: Path, model: str, *, speculate: bool) -> Iterator[Reached]:
    config = ChatConfig(
        model=model or MODEL, context_tokens=CONTEXT_TOKENS, temperature=0.0, speculate=speculate
    )
    models = Models(config, folder, lambda _: None)
    try:
        yield models.reach(models.names()[0], threading.Event())
    finally:
        models.local_server().stop()
        models.close()


def _per_pass(answer: Answer) -> float:
    return answer.usage.answer_tokens / max(answer.usage.passes, 1)


def _ratio(pairs: Sequence[Pair], of: Callable[[Answer], float]) -> float:
    """Return what is gained with the draft, in the middle of all edits."""
    return median([of(each.drafted) / max(of(each.plain), 1e-6) for each in pairs] or [0.0])
