"""Finished suggestions with their cost, and a cache of recent ones."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from lcursor.fim.prompt import Prompt, Source
from lcursor.fim.trim import CursorContext
from lcursor.protocol.fim import FimStats

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled", "unsure"]
Origin = Literal["model", "cache", "speculation"]
Window = Literal["short", "full"]
OnText = Callable[[str], None]
"""Called with the whole text each time it grows."""

MAX_ENTRIES = 256
SUFFIX_CHARS = 768
"""Length of the text after the cursor that must be equal: approximately the part in the prompt."""


def ms_since(start: float) -> float:
    """Return the milliseconds since a reading of `time.perf_counter`."""
    return (time.perf_counter() - start) * 1000


@dataclass(slots=True)
class Result:
    """A finished suggestion and its cost.

    Attributes:
        replace_bytes: bytes right of the cursor that the text replaces.
        confidence: probability of the first line, as far as it was generated; of the line that was
            too unsure, if that is why there is no text; 0 to 1.
        read_tokens: prompt tokens that were not cached.
        prompt_passes: decode calls before the first token was generated; 0 if all was cached.
        window: size of the text around the cursor in the prompt.
        passes: decode calls to generate the text.
        tokens: the generated tokens, healed text included.
        logprobs: of each token, in nats; while healing, among the tokens that are allowed.
        first_ms: from the start of the work to the first text; 0 if there was none.
    """

    text: str = ""
    reason: Reason = "end"
    source: Origin = "model"
    replace_bytes: int = 0
    confidence: float = 0.0
    prompt_tokens: int = 0
    read_tokens: int = 0
    prompt_passes: int = 0
    window: Window = "full"
    generated_tokens: int = 0
    passes: int = 0
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    prompt_ms: float = 0.0
    first_ms: float = 0.0
    total_ms: float = 0.0

    def stats(self, threshold: float = 0.0, queue_ms: float = 0.0) -> FimStats:
        """Return the cost for the editor, with the required confidence and the queueing time."""
        return FimStats(
            prompt_tokens=self.prompt_tokens,
            reused_tokens=max(self.prompt_tokens - self.read_tokens, 0),
            decoded_tokens=self.read_tokens,
            passes=self.prompt_passes,
            generated_tokens=self.generated_tokens,
            queue_ms=round(queue_ms, 2),
            prompt_ms=round(self.prompt_ms, 2),
            first_ms=round(queue_ms + self.first_ms, 2) if self.first_ms else 0.0,
            total_ms=round(queue_ms + self.total_ms, 2),
            confidence=round(self.confidence, 4),
            threshold=round(threshold, 4),
            source=self.source,
            window=self.window,
        )


class _Entry(NamedTuple):
    source: Source
    single_line: bool
    result: Result


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion: its position, prompt and result.

    Attributes:
        prompt: the evaluated prompt: `full_prompt`, or one with less context (`window`) that is
            faster.
        forced: required start of the generated text; these bytes are in the buffer already.
        cursor: the text around the cursor, for the rules.
    """

    source: Source
    single_line: bool
    prompt: Prompt
    forced: bytes
    cursor: CursorContext
    result: Result
    full_prompt: Prompt
    window: Window = "full"


class CompletionCache:
    """The recent suggestions. Used only on the engine's thread.

    A suggestion is found again at the same position, and at later ones while it is being typed.
    """

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque(maxlen=MAX_ENTRIES)

    def add(self, source: Source, single_line: bool, result: Result, is_ahead: bool) -> None:
        """Add a suggestion, perhaps made in advance; it may be empty."""
        origin: Origin = "speculation" if is_ahead else "cache"
        stored = Result(result.text, result.reason, origin, result.replace_bytes, result.confidence)
        self._entries.append(_Entry(source, single_line, stored))

    def find(self, source: Source, single_line: bool) -> Result | None:
        """Return the rest of the newest suggestion for this position."""
        for entry in reversed(self._entries):
            if entry.single_line == single_line:
                rest = _rest(entry.result.text, entry.source, source)
                if rest is not None:
                    return replace(entry.result, text=rest)
        return None

    def clear(self) -> None:
        """Remove all entries, because something else in the prompt has changed."""
        self._entries.clear()


def _rest(text: str, old: Source, new: Source) -> str | None:
    """Return the rest of a text at a new position; None if it does not fit there."""
    is_here = (
        (old.path, old.repo, old.first_row) == (new.path, new.repo, new.first_row)
        and old.suffix[:SUFFIX_CHARS] == new.suffix[:SUFFIX_CHARS]
        and new.prefix.startswith(old.prefix)
    )
    if not is_here:
        return None
    typed = new.prefix[len(old.prefix) :]
    if not typed:
        return text
    rest = text[len(typed) :] if text.startswith(typed) else ""
    return rest if rest.strip() else None
