"""Which prompt stands in which sequences: a few seats in one KV cache, the best for each prompt.

Owns the `Cache` of each seat. A prompt takes the seat where the fewest tokens must be read, so that
going back to a buffer, undoing, or accepting what was read ahead finds its cells again; a prompt
that shares little with any takes the one that was left alone longest. A fork shares its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from lcursor.catalog import hardware
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory
from lcursor.fim.cache import SLICE_TOKENS, Cache, Lanes
from lcursor.fim.cells import Cells, Plan
from lcursor.fim.llama import Context, ContextSize
from lcursor.fim.prompt import Prompt

T = TypeVar("T")

WORTH_SHARING = 48
"""Tokens of a prompt that another seat must have read for its cells to be taken over."""
WORTH_KEEPING = 96
"""Tokens of a seat that are kept, in case the user comes back, by reading in a fork of it."""
AHEAD_SUFFIX_TOKENS = 96
"""So much of the suffix is read for a prompt that may come next, where it cannot be shared."""

OUTPUTS = 16
"""Most tokens of a batch that give logits; llama.cpp wants as many as sequences at least."""

SEATS = 4
BRANCHES = (2 * SEATS + 1, 2 * SEATS + 2)
"""Sequences for other texts behind the current prompt."""
SEQUENCES = 2 * SEATS + 1 + len(BRANCHES)
"""Two for each seat, one on which a suffix is read while the old one serves, and the branches."""

UBATCH_ON_CPU, UBATCH_ON_GPU = 96, 512
"""Tokens computed at once. A GPU that computes polls no abort flag: a slice is one micro-batch."""
THREADS_ON_GPU = 2


def context_size(config: CompletionConfig, on_gpu: bool, n_ctx_train: int) -> ContextSize:
    """Return what a context must hold for all seats.

    Args:
        config: settings, resolved for the machine.
        on_gpu: whether the model runs there.
        n_ctx_train: tokens that the model was trained for; 0 where it does not say.
    """
    cells = config.context_tokens
    return ContextSize(
        cells=min(cells, n_ctx_train or cells),
        ubatch=UBATCH_ON_GPU if on_gpu else UBATCH_ON_CPU,
        threads=config.threads or (THREADS_ON_GPU if on_gpu else hardware.physical_cores()),
        sequences=SEQUENCES,
        outputs=OUTPUTS,
        kv_type=config.kv_type,
    )


class Seats:
    """The prompts in a cache.

    Args:
        context: has at least `SEQUENCES` sequences.
        slice_tokens: see `Cache`.
    """

    def __init__(self, context: Context, slice_tokens: int = SLICE_TOKENS) -> None:
        first, *others = range(SEATS)
        lanes = [Lanes(0, 1, 2), *(Lanes(2 * n + 1, 2 * n + 2, 2) for n in others)]
        self._by_age = [Cache(context, lanes[n], slice_tokens) for n in (*others, first)]

    @property
    def current(self) -> Cache:
        """The seat of the last prompt."""
        return self._by_age[-1]

    def all(self) -> Sequence[Cache]:
        """Return every seat, the current one last."""
        return tuple(self._by_age)

    def bring(self, prompt: Prompt, *, exact: bool = False, ahead: Sequence[int] = ()) -> Plan:
        """Bring the best seat to a prompt; it is `current` then. See `Cache.bring`."""
        # Of equals the youngest: it is the one in use.
        best = min(reversed(self._by_age), key=lambda cache: cache.cost(prompt))
        size, oldest = len(prompt.tokens), self._by_age[0]
        chosen = best
        if size - best.cost(prompt) < min(WORTH_SHARING, size // 2):
            chosen = oldest
        elif best.loss(prompt) >= WORTH_KEEPING and best is not oldest:
            chosen = oldest
            chosen.fork(best)
        self._by_age.remove(chosen)
        self._by_age.append(chosen)
        return self._bring(prompt, exact, ahead)

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
                prompt = replace(prompt, after=prompt.after[:AHEAD_SUFFIX_TOKENS])
            self._bring(prompt, exact=False)
        except BaseException:
            back()
            raise
        return back

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `bring` would read."""
        return min(cache.cost(prompt) for cache in self._by_age)

    def shorten(self, prompt: Prompt, suffix_tokens: int) -> Prompt:
        """Return a prompt with as much of its suffix as makes it cheapest to read.

        That is what a seat has read of it, or its first `suffix_tokens`.
        """
        held = [has for cache in self._by_age if (has := cache.has(prompt))]
        shorter = [replace(prompt, after=prompt.after[:size]) for size in {*held, suffix_tokens}]
        return min(shorter, key=lambda each: (self.cost(each), -len(each.after)))

    def restore(self, cells: Cells, state: bytes | memoryview) -> bool:
        """Put what was saved into the seat that was left alone longest. See `Cache.restore`."""
        return self._by_age[0].restore(cells, state)

    def write(self, tokens: list[int]) -> None:
        """Read tokens behind the current prompt. See `Cache.write`."""
        self._with_room(lambda: self.current.write(tokens))

    def _bring(self, prompt: Prompt, exact: bool, ahead: Sequence[int] = ()) -> Plan:
        for other in self._shares_what_moves(prompt):
            other.clear()  # a moved cell moves in every sequence that has it
        return self._with_room(lambda: self.current.bring(prompt, exact=exact, ahead=ahead))

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
