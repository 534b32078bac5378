"""What items cost, and what to drop where they do not fit. Pure but for the counting function.

Nothing is cut here: what does not fit is named, and who asked decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lcursor.context import layout
from lcursor.context.items import Item

Count = Callable[[str], tuple[int, bool]]
"""Returns the tokens of a text, and whether they are counted rather than estimated."""
MOST_KEPT = 2000
DROPPED_FIRST: Final = (
    "screen", "codebase", "dir", "rules", "commit", "quickfix", "terminal", "file", "symbol",
    "diff", "diagnostics", "buffer", "text", "selection",
)  # fmt: skip
"""What is dropped sooner when there is no room: what nobody named one by one."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill."""

    item: Item
    tokens: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Bill:
    """What a message would cost."""

    lines: tuple[Line, ...]
    total: int
    """Of what is in."""
    limit: int
    """0 where nobody knows."""
    is_exact: bool
    left_out: tuple[Item, ...]
    """What is not in, each with its note."""
    suggestion: tuple[str, ...]
    """Keys of what could be dropped so that the rest fits; empty where all fits."""

    @property
    def over(self) -> int:
        """Tokens that are too many."""
        return max(self.total - self.limit, 0) if self.limit else 0

    @property
    def fits(self) -> bool:
        """Whether all that is in has room."""
        return not self.over


class Counter:
    """Counts tokens and remembers: a bill is asked for again with each line that is dropped.

    Args:
        count: asked once for each text.
    """

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known: dict[str, tuple[int, bool]] = {}

    def __call__(self, text: str) -> tuple[int, bool]:
        """Return the tokens of a text, and whether they are exact."""
        known = self._known.pop(text, None)
        if known is None or not known[1]:  # an estimate is better known later
            known = self._count(text)
        self._known[text] = known
        if len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        return known


def bill(items: Sequence[Item], count: Count, limit: int = 0) -> Bill:
    """Return what items cost and which would have to go.

    Args:
        items: as gathered; those that are left out cost nothing.
        count: asked for each item that is in, as it is written.
        limit: tokens that they may have together; 0 where nobody knows.
    """
    lines = []
    for item in items:
        tokens, is_exact = (0, True) if item.is_left_out else count(layout.block(item) + "\n\n")
        lines.append(Line(item, tokens, is_exact))
    total = sum(line.tokens for line in lines)
    is_exact = all(line.is_exact for line in lines)
    left_out = tuple(item for item in items if item.is_left_out)
    keys = suggest(lines, total - limit) if limit and total > limit else ()
    return Bill(tuple(lines), total, limit, is_exact, left_out, keys)


def suggest(lines: Sequence[Line], over: int) -> tuple[str, ...]:
    """Return the keys of what to drop so that some tokens are saved; all where that is too few.

    What nobody named one by one goes first, of one kind what is largest; and nothing goes that
    need not.
    """
    chosen: list[Line] = []
    saved = 0
    for line in sorted((line for line in lines if not line.item.is_left_out), key=_value):
        if saved >= over:
            break
        chosen.append(line)
        saved += line.tokens
    for line in reversed(list(chosen)):  # the dearest to the user first
        if saved - line.tokens >= over:
            chosen.remove(line)
            saved -= line.tokens
    return tuple(line.item.key for line in chosen)


def fitted(items: Sequence[Item], count: Count, limit: int) -> list[Item]:
    """Return items of which those that have no room are left out, and say so."""
    made = bill(items, count, limit)
    cost = {line.item.key: line.tokens for line in made.lines}
    return [
        replace(item, text="", is_left_out=True, note=f"no room: {cost[item.key]:,} tokens")
        if item.key in made.suggestion
        else item
        for item in items
    ]


def _value(line: Line) -> tuple[int, int, str]:
    kind = line.item.kind
    rank = DROPPED_FIRST.index(kind) if kind in DROPPED_FIRST else len(DROPPED_FIRST)
    return rank, -line.tokens, line.item.key
