"""Several prompts in one KV cache: chooses the slot for each prompt.

A prompt takes the slot where the fewest tokens must be evaluated. So returning to a buffer, undoing
a change, or accepting a suggestion that was prepared in advance finds its cells again. A prompt
that shares little with any slot takes the least recently used one. A fork shares the cells of the
slot that it was made from.
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

MIN_SHARED = 48
"""Tokens of a prompt that a slot must have for the prompt to be evaluated there."""
MIN_PRESERVED = 96
"""Tokens of a slot that are worth a fork, in case the user returns to them."""
AHEAD_SUFFIX_TOKENS = 96
"""Suffix tokens evaluated for a prompt that may come next, where they cannot be shared."""

OUTPUTS = 16
"""Most tokens of a batch that give logits; llama.cpp wants at least as many as sequences."""

SLOTS = 4
BRANCHES = (2 * SLOTS + 1, 2 * SLOTS + 2)
"""Sequences for alternatives behind the current prompt."""
SEQUENCES = 2 * SLOTS + 1 + len(BRANCHES)
"""Two for each slot, a spare one for refreshing a suffix, and the branches."""

UBATCH_ON_CPU, UBATCH_ON_GPU = 96, 512
"""Tokens computed at once. A GPU does not poll the abort flag: a slice is one micro-batch."""
THREADS_ON_GPU = 2


def context_size(config: CompletionConfig, on_gpu: bool, n_ctx_train: int) -> ContextSize:
    """Return the size of a context for all slots.

    Args:
        config: settings, resolved for the machine.
        on_gpu: whether the model runs there.
        n_ctx_train: tokens that the model was trained for; 0 if unknown.
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
    """The slots of one context.

    Args:
        context: has at least `SEQUENCES` sequences.
        slice_tokens: see `SlotCache`.
    """

    def __init__(self, context: Context, slice_tokens: int = SLICE_TOKENS) -> None:
        first, *others = range(SLOTS)
        ids = [SequenceIds(0, 1, 2), *(SequenceIds(2 * n + 1, 2 * n + 2, 2) for n in others)]
        # The least recently used one comes first.
        self._by_age = [SlotCache(context, ids[n], slice_tokens) for n in (*others, first)]

    @property
    def current(self) -> SlotCache:
        """The slot of the last prompt."""
        return self._by_age[-1]

    def all(self) -> Sequence[SlotCache]:
        """Return every slot, the current one last."""
        return tuple(self._by_age)

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> Plan:
        """Choose a slot, make it the current one, and bring it to a prompt.

        See `SlotCache.prefill` for the arguments and the result.
        """
        # Of equals the most recently used one.
        best = min(reversed(self._by_age), key=lambda slot: slot.cost(prompt))
        size, oldest = len(prompt.tokens), self._by_age[0]
        chosen = best
        if size - best.cost(prompt) < min(MIN_SHARED, size // 2):
            chosen = oldest
        elif best.discarded_tokens(prompt) >= MIN_PRESERVED and best is not oldest:
            chosen = oldest
            chosen.fork(best)
        self._make_current(chosen)
        return self._prefill_current(prompt, exact, draft)

    def prefill_ahead(self, prompt: Prompt) -> Callable[[], None]:
        """Prefill a prompt that may come next in another slot, as a fork where that is cheaper.

        Returns:
            A function that makes the slot current again that was the current one.
        """
        before = self.current
        other = min(self._by_age[:-1], key=lambda slot: slot.cost(prompt))
        if other.cost(prompt) >= before.cost(prompt):
            other = self._by_age[0]
            other.fork(before)
        self._make_current(other)
        try:
            if self._sharing_shifted_suffix(prompt):
                other.drop_suffix()  # it evaluates a suffix of its own instead
                prompt = replace(prompt, after=prompt.after[:AHEAD_SUFFIX_TOKENS])
            self._prefill_current(prompt, exact=False)
        except BaseException:
            self._make_current(before)
            raise
        return lambda: self._make_current(before)

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `prefill` would evaluate."""
        return min(slot.cost(prompt) for slot in self._by_age)

    def shorten(self, prompt: Prompt, suffix_tokens: int) -> Prompt:
        """Return the prompt with as much of its suffix as makes it cheapest to evaluate.

        That is as much as a slot has, or the first `suffix_tokens`.
        """
        kept = [count for slot in self._by_age if (count := slot.kept_suffix(prompt))]
        shorter = [replace(prompt, after=prompt.after[:size]) for size in {*kept, suffix_tokens}]
        return min(shorter, key=lambda each: (self.cost(each), -len(each.after)))

    def restore(self, shadow: KVShadow, state: bytes | memoryview) -> bool:
        """Load a saved slot into the least recently used one. See `SlotCache.restore`."""
        return self._by_age[0].restore(shadow, state)

    def append(self, tokens: list[int]) -> None:
        """Evaluate tokens behind the current prompt. See `SlotCache.append`."""
        self._retrying_without_other_slots(lambda: self.current.append(tokens))

    def _make_current(self, slot: SlotCache) -> None:
        self._by_age.remove(slot)
        self._by_age.append(slot)

    def _prefill_current(self, prompt: Prompt, exact: bool, draft: Sequence[int] = ()) -> Plan:
        for other in self._sharing_shifted_suffix(prompt):
            other.clear()  # a shift moves the cell in every sequence that has it
        return self._retrying_without_other_slots(
            lambda: self.current.prefill(prompt, exact=exact, draft=draft)
        )

    def _sharing_shifted_suffix(self, prompt: Prompt) -> list[SlotCache]:
        """Return the slots that share the current one's suffix cells, if these must be shifted."""
        current = self.current
        if not current.shifts_suffix(prompt):
            return []
        return [slot for slot in self._by_age[:-1] if slot.suffix_owner is current.suffix_owner]

    def _retrying_without_other_slots(self, work: Callable[[], T]) -> T:
        """Call `work`; if the cache is full, clear the other slots and call it again."""
        try:
            return work()
        except OutOfMemory:
            others = [slot for slot in self._by_age[:-1] if not slot.is_empty]
            if not others:
                raise
            for slot in others:
                slot.clear()
            return work()
