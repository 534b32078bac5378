"""Asks the engine for completions as typing does, and judges each by the true text and the tests.

Runs the engine in this process, on this thread, with nothing between it and the cuts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from evals import sandbox
from evals.data import Cut, Kind
from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.prompt import Source

if TYPE_CHECKING:
    from lcursor.fim.engine import Engine, Result

TYPED = 3
"""Keys before the one that is judged, each with a request that the next one stops."""
GATE = CompletionConfig().min_confidence
"""The threshold that is judged beside none."""
BUDGET_MS = 60_000
"""Time to write: no suggestion is cut because the machine is busy."""


class Flag(Protocol):
    """Stops a running request, as `lcursor.fim.llama.Abort` does."""

    def set(self) -> None:
        """Stop it."""

    def clear(self) -> None:
        """Let the next one run."""


class Completes(Protocol):
    """What is judged.

    Attributes:
        threshold: of the confidence; see `lcursor.fim.engine.Engine`.
    """

    threshold: float

    @property
    def abort(self) -> Flag:
        """The flag that stops the running request."""

    def complete(
        self,
        source: Source,
        on_text: Callable[[str], None],
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        """Complete, as `lcursor.fim.engine.Engine` does."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine wrote at a cut, and whether it is right."""

    kind: Kind
    task: str
    text: str
    rest: str
    is_exact: bool
    """All of it is the true text, white space at the end aside."""
    is_line_exact: bool
    """Its first line is."""
    has_passed: bool
    """The program passes its tests with it; never where nothing was written, or none are."""
    confidence: float
    read_tokens: int
    generated_tokens: int
    first_ms: float
    """From the last key to the first text; 0 when there was none."""
    total_ms: float
    """From the last key to the end."""
    reason: str = ""
    logprobs: list[float] = field(default_factory=list)
    """Of each token written, in nats."""
    gated: str = ""
    """What is written with the threshold that completion has by default."""

    @property
    def is_right(self) -> bool:
        """Whether all that is shown of the first line is the true text, so far as it goes."""
        return bool(self.text) and first_line(self.rest).startswith(first_line(self.text))

    @property
    def is_gated_right(self) -> bool:
        """The same of what the gate leaves."""
        return bool(self.gated) and first_line(self.rest).startswith(first_line(self.gated))

    @property
    def is_gated_exact(self) -> bool:
        """Whether what the gate leaves has the true first line."""
        return bool(self.gated) and first_line(self.rest) == first_line(self.gated)


def load(
    model: str,
    *,
    heals: bool = True,
    splices: bool = True,
    window: Literal["full", "short"] = "full",
) -> Engine:
    """Load a model and let it make itself ready.

    Args:
        model: a name of the manifest or the path of a GGUF file; "" for the default.
        heals: whether the token under the cursor is healed.
        splices: whether the suffix stays in the cache while the prefix grows.
        window: which one every request is answered from.

    Raises:
        ModelError, EngineError: there is no such model, or it cannot be loaded.
    """
    from lcursor.fim.engine import Engine

    config = CompletionConfig(budget_ms=BUDGET_MS, min_confidence=0.0)
    config = replace(config, model=model or config.model)
    path = store.resolve(config.model, "completion")
    engine = Engine(path, manifest.family_of(path), config, lambda fraction: True)
    engine.reader.heals, engine.reader.splices = heals, splices
    engine.reader.window = window
    while engine.idle():  # healing begins when the vocabulary is read
        pass
    return engine


def keys(prefix: str, typed: int) -> list[str]:
    """Return the prefixes of the last keys typed, oldest first; all in the cursor's line."""
    typed = min(typed, len(prefix.rpartition("\n")[2]))
    return [prefix[: len(prefix) - left] for left in range(typed, -1, -1)]


def answers(engine: Completes, cuts: Iterable[Cut], typed: int = TYPED) -> Iterator[Answer]:
    """Complete at each cut and judge.

    Args:
        engine: what completes.
        cuts: where.
        typed: keys typed before the one that is judged.

    Raises:
        EngineError: see `Engine.complete`.
    """
    return (_answer(engine, cut, typed) for cut in cuts)


def _answer(engine: Completes, cut: Cut, typed: int) -> Answer:
    *earlier, last = [
        Source(prefix, cut.suffix, 0, cut.task.file, cut.task.project)
        for prefix in keys(cut.prefix, typed)
    ]
    for source in earlier:
        _interrupted(engine, source, cut.single_line)
    came_ms: list[float] = []
    began = time.perf_counter()
    result = engine.complete(
        last, lambda text: came_ms.append(_ms_since(began)), single_line=cut.single_line
    )
    total_ms = _ms_since(began)
    text = result.text
    engine.threshold = GATE
    gated = engine.complete(last, _nobody, single_line=cut.single_line, bypass_cache=True).text
    engine.threshold = 0.0
    return Answer(
        kind=cut.kind,
        task=cut.task.name,
        text=text,
        rest=cut.rest,
        is_exact=bool(text) and text.rstrip() == cut.rest.rstrip(),
        is_line_exact=bool(text) and first_line(text) == first_line(cut.rest),
        has_passed=bool(text and cut.task.test) and sandbox.run(cut.program(text)) == "passed",
        confidence=result.confidence,
        logprobs=[round(value, 3) for value in result.logprobs],
        reason=result.reason,
        read_tokens=result.read_tokens,
        generated_tokens=result.generated_tokens,
        first_ms=came_ms[0] if came_ms else 0.0,
        total_ms=total_ms,
        gated=gated,
    )


def _interrupted(engine: Completes, source: Source, single_line: bool) -> None:
    """Complete until the first text is there; then the next key comes."""
    try:
        engine.complete(source, lambda text: engine.abort.set(), single_line=single_line)
    except Cancelled:
        pass
    finally:
        engine.abort.clear()


def first_line(text: str) -> str:
    """Return a text to the end of its first line that is not blank, as it would be compared."""
    match = re.match(r"\s*[^\n]*", text)
    return match[0].rstrip() if match else ""


def _nobody(text: str) -> None:
    """Take the text that is judged when it is whole."""


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
