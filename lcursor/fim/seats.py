"""Which prompt stands in which sequences: a few seats in one KV cache, the best for each prompt.

Owns the `Cache` of each seat. A prompt takes the seat where the fewest tokens must be read, so that
going back to a buffer, undoing, or accepting what was read ahead finds its cells again; a prompt
that shares little with any takes the one that was left alone longest. A fork shares its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lcursor.errors import OutOfMemory
from lcursor.fim.cache import Cache, Lanes
from lcursor.fim.cells import Cells, Plan
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt

T = TypeVar("T")

OUTPUTS = 8
"""Most tokens of a batch that give logits."""

SEATS = 3
SEQUENCES = 2 * SEATS + 1
"""Two for each seat, and one on which a suffix is read while the old one serves."""


class Seats:
    """The prompts in a cache.

    Args:
        context: has at least `SEQUENCES` sequences.
        can_splice: see `Cache`.
    """

    def __init__(self, context: Context, can_splice: bool = True) -> None:
        first, *others = range(SEATS)
        lanes = [Lanes(0, 1, 2), *(Lanes(2 * n + 1, 2 * n + 2, 2) for n in others)]
        self._by_age = [Cache(context, can_splice, lanes[n]) for n in (*others, first)]

    @property
    def current(self) -> Cache:
        """The seat of the last prompt."""
        return self._by_age[-1]

    def all(self) -> Sequence[Cache]:
        """Return every seat, the current one last."""
        return tuple(self._by_age)

    def bring(self, prompt: Prompt, *, exact: bool = False) -> Plan:
        """Bring the best seat to a prompt; it is `current` then. See `Cache.bring`."""
        costs = [cache.cost(prompt) for cache in self._by_age]
        least = min(costs)
        is_new = least > len(prompt.tokens) // 2
        # Of equals the youngest: it is the one in use.
        at = 0 if is_new else max(n for n, cost in enumerate(costs) if cost == least)
        self._by_age.append(self._by_age.pop(at))
        return self._bring(prompt, exact)

    def ahead(self, prompt: Prompt) -> Callable[[], None]:
        """Bring a prompt that may come next beside the current one, in a fork of it.

        Returns:
            What makes the seat current again that was.
        """
        here = self.current
        aside = min(self._by_age[:-1], key=lambda cache: cache.cost(prompt))
        if aside.cost(prompt) >= here.cost(prompt):
            aside = self._by_age[0]
            aside.fork(here)
        self._by_age.remove(aside)
        self._by_age.append(aside)

        def back() -> None:
            self._by_age.remove(here)
            self._by_age.append(here)

        try:
            if self._shares_what_moves(prompt):
                aside.drop_suffix()  # and reads one of its own
            self._bring(prompt, exact=False)
        except BaseException:
            back()
            raise
        return back

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `bring` would read."""
        return min(cache.cost(prompt) for cache in self._by_age)

    def restore(self, cells: Cells, state: bytes | memoryview) -> bool:
        """Put what was saved into the seat that was left alone longest. See `Cache.restore`."""
        return self._by_age[0].restore(cells, state)

    def write(self, tokens: list[int]) -> None:
        """Read tokens behind the current prompt. See `Cache.write`."""
        self._with_room(lambda: self.current.write(tokens))

    def _bring(self, prompt: Prompt, exact: bool) -> Plan:
        for other in self._shares_what_moves(prompt):
            other.clear()  # a moved cell moves in every sequence that has it
        return self._with_room(lambda: self.current.bring(prompt, exact=exact))

    def _shares_what_moves(self, prompt: Prompt) -> list[Cache]:
        """Return the seats whose suffix cells are the current one's, if those must move."""
        here = self.current
        if not here.moves(prompt):
            return []
        return [cache for cache in self._by_age[:-1] if cache.lineage is here.lineage]

    def _with_room(self, work: Callable[[], T]) -> T:
        """Do something; where the cache is full, do it again without the other seats."""
        try:
            return work()
        except OutOfMemory:
            others = [cache for cache in self._by_age[:-1] if not cache.is_empty]
            if not others:
                raise
            for cache in others:
                cache.clear()
            return work()
