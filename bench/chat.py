"""`bench chat`: what the chat adds to a bare server, how it stops, and what streaming costs.

`chat_model.py` asks a real model on a server of its own, `chat_screen.py` streams into a real
Neovim, `chat_ghost.py` types while an answer is written. The user's chats, server and settings are
neither read nor written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import chat_ghost, chat_screen
from bench.chat_model import MODEL, Model
from bench.report import (
    Figure,
    Json,
    check_names,
    emit,
    exit_unless,
    figure_rows,
    figure_table,
    head,
    reporting_timeouts,
    run_facts,
    table,
)
from lcursor.cli.editor import find_neovim

MODEL_PARTS = ("overhead", "stop", "turns")
PARTS = (*MODEL_PARTS, "screen", "ghost")
"""Each takes one to four minutes on two cores."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A limit for a number: at most, or at least."""

    label: str
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )

    def limit(self) -> str:
        """Return the limit as text."""
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


PROMISES = {
    "ttft_ratio": Promise("time to first token, slot : bare server", at_most=1.05),
    "tokens_per_s_ratio": Promise("tokens/s, slot : bare server", at_least=0.97),
    "second_turn_cached_share": Promise("second turn, share of cached tokens", at_least=0.95),
    "resume_cached_share": Promise("the same after a restart of the server", at_least=0.95),
    "stop_ms": Promise("stop while writing, to an idle server, ms", at_most=200),
    "main_thread_share": Promise("Neovim's main thread at 200 tokens/s, share", at_most=0.05),
    "typing_p95_more_ms": Promise("typing elsewhere meanwhile, p95, ms more", at_most=2),
}


@dataclass(slots=True)
class Findings:
    """The figures of all parts, and the numbers that promises are about."""

    facts: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)

    def add(self, found: tuple[list[Figure], dict[str, float]]) -> None:
        """Add the figures and numbers of a part."""
        self.figures += found[0]
        self.numbers |= found[1]

    @property
    def kept(self) -> dict[str, bool]:
        """Whether each promise is kept, of those that were measured."""
        return {
            name: promise.holds(self.numbers[name])
            for name, promise in PROMISES.items()
            if name in self.numbers
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON, the numbers at top level."""
        numbers = {name: round(value, 4) for name, value in self.numbers.items()}
        return {**numbers, "kept": self.kept, **self.facts, "figures": figure_rows(self.figures)}

    def as_markdown(self) -> list[str]:
        """Return two tables: the figures and the promises."""
        lines = [
            f"{name}: {self.facts[name]}" for name in ("model", "server") if name in self.facts
        ]
        rows = [
            (PROMISES[name].label, f"{self.numbers[name]:.3g}", PROMISES[name].limit(), holds)
            for name, holds in self.kept.items()
        ]
        promises = table(["promise", "found:", "promised:", "kept"], rows)
        return [*head(self.facts, *lines), *figure_table(self.figures), "", *promises]


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="overhead, stop, turns, screen, ghost; all when none is named."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Of the chat: a name of `models list`, or a path; the small one.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Measure the chat: compared with the bare server, stopped, resumed, streamed into Neovim.

    Exits with 1 when a promise is not kept. The last line of --json is one object.
    """
    check_names(names or (), PARTS)
    with reporting_timeouts():
        found = measure(names or PARTS, model, run_facts())
    emit(found.as_dict(), found.as_markdown(), as_json)
    exit_unless(all(found.kept.values()))


def measure(parts: Sequence[str], model: str, facts: Mapping[str, Any]) -> Findings:
    """Measure some parts.

    Args:
        parts: names of `PARTS`.
        model: of the chat; "" for the small one.
        facts: of the machine.
    """
    found = Findings({**facts, "model": model or MODEL})
    if {*MODEL_PARTS} & {*parts}:
        with tempfile.TemporaryDirectory(prefix="lcb") as folder:
            bench = Model(Path(folder), model)
            runs = {"overhead": bench.overhead, "stop": bench.stops, "turns": bench.turns}
            with bench.running():
                for name in MODEL_PARTS:
                    if name in parts:
                        found.add(runs[name]())
            found.facts |= bench.facts
    if "screen" in parts:
        found.add(chat_screen.measure(find_neovim()))
    if "ghost" in parts:
        found.add(chat_ghost.measure(find_neovim(), model))
    return found
