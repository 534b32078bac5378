"""The chat's promises of speed: `python -m lcursor bench chat`.

Puts the parts together: `chat_model.py` asks a real model on a server of its own, `chat_screen.py`
streams into a real Neovim, `chat_ghost.py` types while an answer is written. Nothing of the user's
own chats, server or settings is read or written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.report import Figure, as_markdown

Say = Callable[[str], None]
OF_MODEL = ("overhead", "stop", "turns")
PARTS = (*OF_MODEL, "screen", "ghost")
"""Each takes one to four minutes on two cores."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a number must reach."""

    words: str
    most: float | None = None
    least: float | None = None

    def holds(self, value: float) -> bool:
        """Whether it does."""
        return (self.most is None or value <= self.most) and (
            self.least is None or value >= self.least
        )

    def limit(self) -> str:
        """Return it for people."""
        return f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"


PROMISES = {
    "ttft_ratio": Promise("time to first token, slot : bare server", most=1.05),
    "tokens_per_s_ratio": Promise("tokens/s, slot : bare server", least=0.97),
    "second_turn_cached_share": Promise("second turn, share of cached tokens", least=0.95),
    "resume_cached_share": Promise("the same after a restart of the server", least=0.95),
    "stop_ms": Promise("stop while writing, to an idle server, ms", most=200),
    "main_thread_share": Promise("Neovim's main thread at 200 tokens/s, share", most=0.05),
    "typing_p95_more_ms": Promise("typing elsewhere meanwhile, p95, ms more", most=2),
}


@dataclass(slots=True)
class Findings:
    """What was measured."""

    facts: dict[str, str]
    figures: list[Figure] = field(default_factory=list)
    told: dict[str, float] = field(default_factory=dict)

    def add(self, found: tuple[list[Figure], dict[str, float]]) -> None:
        """Take what a part found."""
        self.figures += found[0]
        self.told |= found[1]

    @property
    def kept(self) -> dict[str, bool]:
        """Which promises are kept, of those that were measured."""
        return {
            name: promise.holds(self.told[name])
            for name, promise in PROMISES.items()
            if name in self.told
        }

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON, the promised numbers on top."""
        numbers = {name: round(value, 4) for name, value in self.told.items()}
        figures = [asdict(each) for each in self.figures]
        return {**numbers, "kept": self.kept, **self.facts, "figures": figures}

    def as_markdown(self, machine: dict[str, str], command: str) -> str:
        """Return two tables, of the promises and of the figures behind them."""
        lines = ["| promise | found | promised | kept |", "|---|--:|--:|---|"]
        for name, holds in self.kept.items():
            promise, kept = PROMISES[name], "yes" if holds else "**no**"
            found = f"{self.told[name]:.3g}"
            lines.append(f"| {promise.words} | {found} | {promise.limit()} | {kept} |")
        facts = {**machine, **{k: v for k, v in self.facts.items() if k in ("model", "server")}}
        return as_markdown(self.figures, facts, command) + "\n" + "\n".join(lines) + "\n"


def measure(
    neovim: Callable[[], Path], parts: Sequence[str], model: str, facts: dict[str, str], say: Say
) -> Findings:
    """Measure parts of it.

    Args:
        neovim: finds the executable, where one is needed.
        parts: names of `PARTS`.
        model: of the chat; "" for the small one.
        facts: of the machine.
        say: told what is being measured.
    """
    from bench.chat_model import MODEL, Model

    found = Findings({**facts, "model": model or MODEL})
    if set(OF_MODEL) & set(parts):
        with tempfile.TemporaryDirectory(prefix="lcb") as folder:
            bench = Model(Path(folder), model, say)
            runs = {"overhead": bench.overhead, "stop": bench.stops, "turns": bench.turns}
            with bench.running():
                for name in OF_MODEL:
                    if name in parts:
                        found.add(runs[name]())
            found.facts |= bench.facts
    if "screen" in parts:
        from bench import chat_screen

        found.add(chat_screen.measure(neovim(), say))
    if "ghost" in parts:
        from bench import chat_ghost

        found.add(chat_ghost.measure(neovim(), model, say))
    return found
