"""What comes of a request: the text, where it came from, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Reason = Literal["end", "line", "tokens", "time", "trimmed", "cancelled", "unsure"]
Origin = Literal["model", "cache", "speculation"]
OnText = Callable[[str], None]
"""Told all text so far, each time it has grown."""


@dataclass(slots=True)
class Result:
    """A finished suggestion and what it cost."""

    text: str = ""
    reason: Reason = "end"
    source: Origin = "model"
    replaces: int = 0
    """Bytes right of the cursor that the text takes the place of."""
    confidence: float = 0.0
    """Probability of the first line, as far as it was written; 0 to 1."""
    prompt_tokens: int = 0
    read_tokens: int = 0
    """Of the prompt, those that were not in the cache."""
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
