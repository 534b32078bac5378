"""Which token sits where in the KV cache: the shadow of the two sequences, kept in Python.

Pure bookkeeping; calls nothing of llama.cpp. The engine asks for a plan, carries it out and notes
each step here as soon as it is done, so that the shadow is true at every moment, aborts included.

Two sequences share cells. PREFIX holds the tokens before the suffix marker, at positions 0, 1, ...
FULL holds the same, then the marker, a gap of unused positions, the suffix, and the tail: the
middle marker and what was written behind it.

    position   0 ............. n   n+1 ......... at ......... at+len(suffix)
    FULL       prefix tokens  SUF  (gap)         suffix       MID, written tokens
    PREFIX     prefix tokens

Typing fills the gap, so a keystroke reads only its own tokens and SUF; the suffix keeps its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["splice", "exact"]

GAP = 24
"""Positions left free before the suffix. Positions are only phases: a hole costs no cell."""
MAX_STALE = 256
"""Prefix tokens that may have changed since the suffix was read; then its beginning is read again.
Idle time does so much earlier; this limit is for text that grows without a pause."""
WORTH_KEEPING = 64
"""So much of the beginning of a suffix stays where its end changes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to bring the cache to a prompt.

    Attributes:
        kind: "splice" keeps the suffix where it is; "exact" reads it anew.
        keep: tokens of the prefix that stay.
        keep_tail: whether the middle marker is still right behind an unchanged prompt.
        widen: positions by which the suffix must move on, because the gap is full.
        keep_suffix: tokens of the suffix that stay, from its beginning; 0 where it is read anew.
        extend: tokens at the end of the suffix that must be read.
        too_stale: whether the beginning of the suffix must be read again.
    """

    kind: Kind
    keep: int
    keep_tail: bool = False
    widen: int = 0
    keep_suffix: int = 0
    extend: int = 0
    too_stale: bool = False


class KVShadow:
    """The shadow. Empty at first."""

    def __init__(self) -> None:
        self.prefix: list[int] = []
        self.has_marker = False
        """Whether FULL has the suffix marker behind the prefix."""
        self.suffix: tuple[int, ...] | None = None
        """The suffix in FULL, or as much of it as has been read; None when it is broken off."""
        self.suffix_at = 0
        self.tail: list[int] = []
        self.stale = 0

    def copy(self) -> KVShadow:
        """Return another one of the same content."""
        other = KVShadow()
        other.prefix, other.tail = list(self.prefix), list(self.tail)
        other.has_marker, other.suffix = self.has_marker, self.suffix
        other.suffix_at, other.stale = self.suffix_at, self.stale
        return other

    def plan(
        self,
        prefix: Sequence[int],
        suffix: tuple[int, ...],
        middle: Sequence[int] = (),
        marker: bool = True,
    ) -> Plan:
        """Say how to get from what is here to a prompt; `marker` stands before its suffix."""
        keep = common(self.prefix, prefix)
        is_same = keep == len(prefix) == len(self.prefix)
        has_tail = is_same and bool(self.tail) and self.tail[: len(middle)] == list(middle)
        keep_suffix = self.keeps(suffix)
        if not keep_suffix:
            is_bare = suffix == self.suffix == () and self.has_marker == marker
            return Plan("exact", keep, keep_tail=has_tail and is_bare)
        has_all = keep_suffix == len(suffix) == len(self.suffix or ())
        changed = max(len(prefix), len(self.prefix)) - keep
        over = len(prefix) + 1 - self.suffix_at
        return Plan(
            "splice",
            keep,
            keep_tail=has_tail and has_all,
            widen=over + GAP if over > 0 else 0,
            keep_suffix=keep_suffix,
            extend=len(suffix) - keep_suffix,
            too_stale=self.stale + changed > MAX_STALE,
        )

    def keeps(self, suffix: tuple[int, ...]) -> int:
        """Return how many tokens of a suffix are here: all that was read, or much of it."""
        here = self.suffix or ()
        same = common(here, suffix)
        return same if same == len(here) or same >= WORTH_KEEPING else 0

    @property
    def tail_at(self) -> int:
        """Position of the middle marker."""
        return self.suffix_at + len(self.suffix or ())

    @property
    def end(self) -> int:
        """Position behind the last token of FULL."""
        if self.suffix is None:
            return len(self.prefix) + self.has_marker
        return self.tail_at + len(self.tail)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common start.

    Cost: 10 µs for 1,000 tokens; sequences of one type are compared by halves.
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
