"""What comes of a request: the text, where it came from, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from lcursor.protocol import FimStats

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled", "unsure"]
Origin = Literal["model", "cache", "speculation"]
Window = Literal["short", "full"]
OnText = Callable[[str], None]
"""Told all text so far, each time it has grown."""


@dataclass(slots=True)
class Result:
    """A finished suggestion and what it cost."""

    text: str = ""
    reason: Reason = "end"
    source: Origin = "model"
    replace_bytes: int = 0
    """Bytes right of the cursor that the text takes the place of."""
    confidence: float = 0.0
    """Probability of the first line, as far as it was written; 0 to 1."""
    prompt_tokens: int = 0
    read_tokens: int = 0
    """Of the prompt, those that were not in the cache."""
    prompt_passes: int = 0
    """Decode calls before the first token was written; 0 when nothing was read."""
    window: Window = "full"
    """How much text around the cursor it was made from."""
    generated_tokens: int = 0
    passes: int = 0
    """Times that the weights were read to write them."""
    tokens: list[int] = field(default_factory=list)
    """What was written, healed text included."""
    logprobs: list[float] = field(default_factory=list)
    """Of each of them, in nats; among those allowed where a token was healed."""
    prompt_ms: float = 0.0
    first_ms: float = 0.0
    """From the start of the work to the first text; 0 when there was none."""
    total_ms: float = 0.0

    def stats(self, threshold: float = 0.0, queue_ms: float = 0.0) -> FimStats:
        """Return what the editor is told of its cost.

        Args:
            threshold: confidence that was needed, 0 to 1.
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
