"""Lay out a short window around the cursor, for the first answer at a place that was not evaluated.

Remembers the last short window, which typing continues. Runs only on the engine's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lcursor.fim import prompt
from lcursor.fim.families import Resolved, Tokenize
from lcursor.fim.prompt import Prompt, SmallWindow, Source

BELOW_CHARS = 256
"""Characters that tell whether the text below the cursor is still the same."""

Heal = Callable[[Prompt], Prompt]
"""Prepares the end of a prompt for token healing."""


class LastWindow(NamedTuple):
    """A short window that typing continues.

    Attributes:
        path: the file.
        first_row: row of the file with which the window starts.
        below: the first `BELOW_CHARS` characters after the line of the cursor.
        suffix: tokens after the cursor.
        related: the related lines before it.
    """

    path: str
    first_row: int
    below: str
    suffix: Sequence[int]
    related: Sequence[str]


class ShortWindow:
    """Lays out short windows.

    Args:
        size: their size.
        bos: the first token of a prompt, if the model wants one.
        cost: returns how many tokens of a prompt are not evaluated yet.
    """

    def __init__(
        self,
        size: SmallWindow,
        family: Resolved,
        tokenize: Tokenize,
        bos: int | None,
        cost: Callable[[Prompt], int],
    ) -> None:
        self._size, self._family, self._tokenize, self._bos = size, family, tokenize, bos
        self._cost = cost
        self._last: LastWindow | None = None

    def forget(self) -> None:
        """Begin with a new window at the next position."""
        self._last = None

    def lay_out(self, source: Source, heal: Heal) -> Prompt:
        """Return the prompt of a new window, or of the last one continued if that is cheaper."""
        last, size = self._last, self._size
        suffix = prompt.small_suffix(source, self._tokenize, size)
        below = source.suffix.partition("\n")[2][:BELOW_CHARS]
        related = prompt.related_to(source, self._tokenize, size)
        new = LastWindow(source.path, -1, below, suffix, related)
        cheapest, self._last = self._build(source, new, heal)
        if last is None or last.path != source.path:
            return cheapest
        # Elsewhere in the file, the old suffix would be text of another position.
        for behind in (suffix, last.suffix) if last.below == below else (suffix,):
            continued = last._replace(below=below, suffix=behind)
            built, continued = self._build(source, continued, heal)
            has_grown = len(built.before) >= prompt.GROWTH * size.prefix_tokens
            if not has_grown and self._cost(built) < self._cost(cheapest):
                cheapest, self._last = built, continued
        return cheapest

    def _build(self, source: Source, like: LastWindow, heal: Heal) -> tuple[Prompt, LastWindow]:
        built, row = prompt.build_small(
            source,
            self._family,
            self._tokenize,
            prefix_tokens=self._size.prefix_tokens,
            suffix=like.suffix,
            related=like.related,
            first_row=like.first_row,
            bos=self._bos,
        )
        return heal(built), like._replace(first_row=row)
