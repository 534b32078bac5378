"""Which prompt stands in which sequences: a few slots in one KV cache, the best for each prompt.

Owns the `SlotCache` of each slot. A prompt takes the slot where the fewest tokens must be read, so
that going back to a buffer, undoing, or accepting what was read ahead finds its cells again. A
prompt that shares little with any takes the one that was left alone longest. A fork shares cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from lcursor.catalog import hardware
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory
from lcursor.fim.kv import KVShadow, Plan
from lcursor.fim.llama import Context, ContextSize
from lcursor.fim.prompt import Prompt
from lcursor.fim.slot_cache import SLICE_TOKENS, SequenceIds, SlotCache

T = TypeVar("T")

WORTH_SHARING = 48
"""Tokens of a prompt that another seat must have read for its cells to be taken over."""
WORTH_KEEPING = 96
"""Tokens of a seat that are kept, in case the user comes back, by reading in a fork of it."""
AHEAD_SUFFIX_TOKENS = 96
"""So much of the suffix is read for a prompt that may come next, where it cannot be shared."""

OUTPUTS = 16
"""Most tokens of a batch that give logits; llama.cpp wants as many as sequences at least."""

SLOTS = 4
BRANCHES = (2 * SLOTS + 1, 2 * SLOTS + 2)
"""Sequences for other texts behind the current prompt."""
SEQUENCES = 2 * SLOTS + 1 + len(BRANCHES)
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


class Slots:
    """The prompts in a cache.

    Args:
        context: has at least `SEQUENCES` sequences.
        slice_tokens: see `SlotCache`.
    """

    def __init__(self, context: Context, slice_tokens: int = SLICE_TOKENS) -> None:
        first, *others = range(SLOTS)
        sequences = [SequenceIds(0, 1, 2), *(SequenceIds(2 * n + 1, 2 * n + 2, 2) for n in others)]
        self._by_age = [SlotCache(context, sequences[n], slice_tokens) for n in (*others, first)]

    @property
    def current(self) -> SlotCache:
        """The seat of the last prompt."""
        return self._by_age[-1]

    def all(self) -> Sequence[SlotCache]:
        """Return every seat, the current one last."""
        return tuple(self._by_age)

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> Plan:
        """Bring the best seat to a prompt; it is `current` then. See `SlotCache.prefill`."""
        # Of equals the youngest: it is the one in use.
        best = min(reversed(self._by_age), key=lambda cache: cache.cost(prompt))
        size, oldest = len(prompt.tokens), self._by_age[0]
        chosen = best
        if size - best.cost(prompt) < min(WORTH_SHARING, size // 2):
            chosen = oldest
        elif best.discarded_tokens(prompt) >= WORTH_KEEPING and best is not oldest:
            chosen = oldest
            chosen.fork(best)
        self._by_age.remove(chosen)
        self._by_age.append(chosen)
        return self._prefill(prompt, exact, draft)

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
            self._prefill(prompt, exact=False)
        except BaseException:
            back()
            raise
        return back

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `prefill` would read."""
        return min(cache.cost(prompt) for cache in self._by_age)

    def shorten(self, prompt: Prompt, suffix_tokens: int) -> Prompt:
        """Return a prompt with as much of its suffix as makes it cheapest to read.

        That is what a seat has read of it, or its first `suffix_tokens`.
        """
        held = [kept for cache in self._by_age if (kept := cache.kept_suffix(prompt))]
        shorter = [replace(prompt, after=prompt.after[:size]) for size in {*held, suffix_tokens}]
        return min(shorter, key=lambda each: (self.cost(each), -len(each.after)))

    def restore(self, cells: KVShadow, state: bytes | memoryview) -> bool:
        """Put what was saved into the seat that was left alone longest. See `SlotCache.restore`."""
        return self._by_age[0].restore(cells, state)

    def append(self, tokens: list[int]) -> None:
        """Read tokens behind the current prompt. See `SlotCache.append`."""
        self._with_room(lambda: self.current.append(tokens))

    def _prefill(self, prompt: Prompt, exact: bool, draft: Sequence[int] = ()) -> Plan:
        for other in self._shares_what_moves(prompt):
            other.clear()  # a moved cell moves in every sequence that has it
        return self._with_room(lambda: self.current.prefill(prompt, exact=exact, draft=draft))

    def _shares_what_moves(self, prompt: Prompt) -> list[SlotCache]:
        """Return the seats whose suffix cells are the current one's, if those must move."""
        here = self.current
        if not here.moves_suffix(prompt):
            return []
        return [cache for cache in self._by_age[:-1] if cache.suffix_owner is here.suffix_owner]

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
