"""The KV shadow: a record in Python of the token at each position of the KV cache.

Pure bookkeeping without calls of llama.cpp. `slots.SlotCache` executes a plan, and updates the
shadow after each step, so that it is always correct, even after an abort.

A prompt uses two sequences that share KV cells. PREFIX has the tokens before the suffix marker, at
positions 0, 1, ... FULL has the same tokens, then the marker, a gap of unused positions, the
suffix, and the tail: the middle marker and the tokens generated after it.

    position   0 ............. n   n+1 ......... at ......... at+len(suffix)
    FULL       prefix tokens  SUF  (gap)         suffix       MID, generated tokens
    PREFIX     prefix tokens

Typing fills the gap. So a keystroke evaluates only its own tokens and SUF, and the suffix keeps its
cells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from lcursor.fim.prompt import Prompt

GAP = 24
"""Unused positions before the suffix. They cost no cell: a position is only a rotation angle."""
MAX_STALE = 256
"""Changed prefix tokens after which a request evaluates the start of the suffix again. Idle work
does so much earlier; this limit is for typing without a pause."""
REFRESH_TOKENS = 128
"""Tokens at the start of a suffix that are evaluated again after the text before it changed."""
MIN_REUSED_SUFFIX = 64
"""Minimum tokens that a new suffix must share with the cached one to reuse them."""


@dataclass(frozen=True, slots=True)
class KvPlan:
    """The steps from the cached tokens to a prompt.

    Attributes:
        keep: prefix tokens to keep.
        cost: tokens to evaluate.
        keep_tail: whether the middle marker is already behind an unchanged prompt.
        widen: positions by which the suffix must be shifted, because the gap is full.
        keep_suffix: number of first suffix tokens to keep in place; 0 evaluates all again.
        extend: tokens at the end of the suffix to evaluate.
        too_stale: whether to evaluate the start of the suffix again.
    """

    keep: int
    cost: int
    keep_tail: bool = False
    widen: int = 0
    keep_suffix: int = 0
    extend: int = 0
    too_stale: bool = False


@dataclass(slots=True)
class KVShadow:
    """The tokens of one slot, by sequence and position. Empty at first.

    Attributes:
        prefix: tokens before the suffix marker, in both sequences.
        has_marker: whether FULL has the suffix marker after the prefix.
        suffix: the suffix in FULL, as far as it was evaluated; None after it was dropped.
        suffix_at: position of the first suffix token.
        stale: prefix tokens that have changed since the suffix was evaluated.
        tail: the middle and the tokens generated after it.
    """

    prefix: list[int] = field(default_factory=list)
    has_marker: bool = False
    suffix: tuple[int, ...] | None = None
    suffix_at: int = 0
    stale: int = 0
    tail: list[int] = field(default_factory=list)

    def copy(self) -> KVShadow:
        """Return an independent copy."""
        return dataclasses.replace(self, prefix=[*self.prefix], tail=[*self.tail])

    def plan(self, prompt: Prompt) -> KvPlan:
        """Return the steps from the cached tokens to a prompt."""
        prefix, middle = split(prompt)
        suffix, marker = prompt.after, prompt.marker is not None
        keep = common_length(self.prefix, prefix)
        is_same = keep == len(prefix) == len(self.prefix)
        has_tail = is_same and bool(self.tail) and self.tail[: len(middle)] == middle
        keep_suffix = self.reusable_suffix(suffix)
        too_stale = self.stale + max(len(prefix), len(self.prefix)) - keep > MAX_STALE
        cost = len(prefix) - keep + len(middle)
        if not keep_suffix or (too_stale and keep_suffix <= REFRESH_TOKENS):
            is_bare = suffix == self.suffix == () and self.has_marker == marker
            keep_tail = has_tail and is_bare
            return KvPlan(keep, 0 if keep_tail else cost + marker + len(suffix), keep_tail)
        keep_tail = has_tail and keep_suffix == len(suffix) == len(self.suffix or ())
        extend, overlap = len(suffix) - keep_suffix, len(prefix) + 1 - self.suffix_at
        cost += extend + (marker and not (self.has_marker and is_same))
        cost += REFRESH_TOKENS if too_stale else 0
        return KvPlan(
            keep,
            0 if keep_tail else cost,
            keep_tail,
            widen=overlap + GAP if overlap > 0 else 0,
            keep_suffix=keep_suffix,
            extend=extend,
            too_stale=too_stale,
        )

    def cost(self, prompt: Prompt) -> int:
        """Return the number of tokens to evaluate for a prompt."""
        return self.plan(prompt).cost

    def reusable_suffix(self, suffix: tuple[int, ...]) -> int:
        """Return the number of suffix tokens that can be reused."""
        cached = self.suffix or ()
        same = common_length(cached, suffix)
        return same if same == len(cached) or same >= MIN_REUSED_SUFFIX else 0

    @property
    def tail_at(self) -> int:
        """Position of the middle marker."""
        return self.suffix_at + len(self.suffix or ())

    @property
    def end(self) -> int:
        """Position after the last token of FULL."""
        if self.suffix is None:
            return len(self.prefix) + self.has_marker
        return self.tail_at + len(self.tail)


def split(prompt: Prompt) -> tuple[list[int], list[int]]:
    """Return the tokens before the suffix marker, and the tokens where generation starts."""
    prefix, middle = list(prompt.before), list(prompt.middle)
    if not middle:  # a family without a middle marker starts from its last token
        prefix, middle = prefix[:-1], prefix[-1:]
    return prefix, middle


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences of one type.

    Cost: 10 µs for 1,000 tokens; a binary search that compares slices.
    """
    one, other = tuple(one), tuple(other)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
