"""Finished suggestions: what they consist of and cost, and a cache of the recent ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from lcursor.fim.prompt import Source
from lcursor.protocol.fim import FimStats

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled", "unsure"]
Origin = Literal["model", "cache", "speculation"]
Window = Literal["short", "medium", "full"]
OnText = Callable[[str], None]
"""Called with all text so far, each time it has grown."""

MAX_ENTRIES = 256
SUFFIX_CHARS = 768
"""How much of the text behind the cursor must be the same: about what the model sees of it."""


@dataclass(slots=True)
class Result:
    """A finished suggestion and what it cost.

    Attributes:
        replace_bytes: bytes right of the cursor that the text replaces.
        confidence: probability of the first line, as far as it was generated; 0 to 1.
        read_tokens: prompt tokens that were not cached.
        prompt_passes: decode calls before the first token was generated; 0 if all was cached.
        window: how much text around the cursor the prompt had.
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
        """Return the cost in the form that the editor is sent.

        Args:
            threshold: confidence that was required, 0 to 1.
            queue_ms: how long the request waited before the work began.
        """
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished suggestion and where it was made.

    Attributes:
        is_ahead: whether it was made in advance, before a request.
    """

    source: Source
    single_line: bool
    text: str
    confidence: float
    replace_bytes: int
    reason: Reason
    is_ahead: bool

    def answer(self, text: str) -> Result:
        """Return what remains of the suggestion as the result of a later request."""
        origin: Origin = "speculation" if self.is_ahead else "cache"
        return Result(text, self.reason, origin, self.replace_bytes, self.confidence)


class CompletionCache:
    """The recent suggestions. Used on the engine's thread alone.

    A suggestion is found again at the same place, and further on in it while it is being typed.
    """

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=MAX_ENTRIES)

    def add(self, entry: Entry) -> None:
        """Add a suggestion. An empty one counts too: the model had nothing to say there."""
        self._entries.append(entry)

    def find(self, source: Source, single_line: bool) -> tuple[str, Entry] | None:
        """Return what remains of the newest suggestion that fits this place, and its entry."""
        for entry in reversed(self._entries):
            rest = _rest(entry, source, single_line)
            if rest is not None:
                return rest, entry
        return None

    def clear(self) -> None:
        """Remove all entries, because something else in the prompt has changed."""
        self._entries.clear()


def _rest(entry: Entry, source: Source, single_line: bool) -> str | None:
    """Return what remains of an entry's text at a place; None if it does not fit there."""
    old = entry.source
    is_here = (
        old.path == source.path
        and old.repo == source.repo
        and old.first_row == source.first_row
        and entry.single_line == single_line
        and old.suffix[:SUFFIX_CHARS] == source.suffix[:SUFFIX_CHARS]
        and source.prefix.startswith(old.prefix)
    )
    if not is_here:
        return None
    typed = source.prefix[len(old.prefix) :]
    if not typed:
        return entry.text
    rest = entry.text[len(typed) :] if entry.text.startswith(typed) else ""
    return rest if rest.strip() else None
