"""Several prompts in one KV cache, evaluating as few tokens as possible.

A `SlotCache` prefills a prompt into the two sequences of a `kv.KVShadow`; a third, spare one is for
evaluating the start of a suffix again while the old one stays in use. `Slots` chooses for each
prompt the slot with the fewest tokens to evaluate. So returning to a buffer, undoing a change, or
accepting a suggestion prepared in advance reuses cells. A prompt that shares little with all slots
gets the least recently used one. A fork shares the cells of its original slot.

Runs on the engine's thread. Every method may raise Cancelled between two slices; cache and shadow
are then consistent, and the next call reuses the evaluated part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lcursor.catalog import hardware
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim.kv import GAP, REFRESH_TOKENS, KvPlan, KVShadow, split
from lcursor.fim.llama import Context, ContextSize
from lcursor.fim.prompt import Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

SLICE_TOKENS = 64
"""Prompt tokens per batch on a CPU, 0.3 s for 0.5B; the abort flag is checked between batches.
64 take no longer than 48 there. A rest of up to half that size joins the last batch, or shares
it if both are more than the context takes."""
MIN_SHARED = 48
"""Minimum tokens that a slot must share with a prompt to be chosen for it."""
MIN_PRESERVED = 96
"""Minimum tokens of a slot that are worth a fork, in case the user returns to them."""
AHEAD_SUFFIX_TOKENS = 96
"""Suffix tokens to evaluate for a possible next prompt, if they cannot be shared."""

OUTPUTS = 16
"""Maximum tokens with logits per batch; llama.cpp requires at least the number of sequences."""

SLOTS = 4
BRANCHES = (2 * SLOTS + 1, 2 * SLOTS + 2)
"""Sequences for alternatives after the current prompt."""
SEQUENCES = 2 * SLOTS + 1 + len(BRANCHES)
"""Two for each slot, a spare one for refreshing a suffix, and the branches."""

UBATCH_ON_CPU, UBATCH_ON_GPU = 96, 512
"""Tokens computed at once. A GPU does not poll the abort flag: a slice is one micro-batch."""
THREADS_ON_GPU = 2


def context_size(config: CompletionConfig, on_gpu: bool, n_ctx_train: int) -> ContextSize:
    """Return the size of a context for all slots, at most `n_ctx_train` (0 if unknown)."""
    cells = config.context_tokens
    return ContextSize(
        cells=min(cells, n_ctx_train or cells),
        ubatch=UBATCH_ON_GPU if on_gpu else UBATCH_ON_CPU,
        threads=config.threads or (THREADS_ON_GPU if on_gpu else hardware.physical_cores()),
        sequences=SEQUENCES,
        outputs=OUTPUTS,
        kv_type=config.kv_type,
    )


class SequenceIds(NamedTuple):
    """Ids of the sequences of one slot; several slots may use the same spare one."""

    full: int = 0
    prefix: int = 1
    spare: int = 2


class SlotCache:
    """The cached prompt of one buffer.

    Args:
        slice_tokens: maximum batch, 1 to the context's own limit.

    Attributes:
        shadow: the content of the sequences.
        suffix_owner: slots with the same object share the cells of their suffix.
        prompt_logits: logits after the middle, [n_vocab]; stored here for the engine.
        read_tokens: tokens evaluated since the start of the last `prefill`, without the draft.
        passes: batches decoded since the start of the last `prefill`.
        row: index of the middle's last token in the last batch; the draft follows it.
    """

    def __init__(
        self,
        context: Context,
        sequences: SequenceIds | None = None,
        slice_tokens: int = SLICE_TOKENS,
    ) -> None:
        self._context = context
        self._slice_tokens = slice_tokens
        self.sequences = sequences or SequenceIds()
        self.shadow = KVShadow()
        self.suffix_owner: object = object()
        self.prompt_logits: NDArray[np.float32] | None = None
        self.read_tokens = 0
        self.passes = 0
        self.row = 0
        self._has_pending_shift = False

    def clear(self) -> None:
        """Remove everything."""
        self._context.remove(self.sequences.full, 0)
        self._context.remove(self.sequences.prefix, 0)
        self.shadow, self.prompt_logits, self.suffix_owner = KVShadow(), None, object()

    def fork(self, other: SlotCache) -> None:
        """Take over the tokens of another slot, in the same cells."""
        self.clear()
        own, others = self.sequences, other.sequences
        self._context.copy(others.full, own.full, 0, other.shadow.end)
        self._context.copy(others.prefix, own.prefix, 0, len(other.shadow.prefix))
        self.shadow = other.shadow.copy()
        self.prompt_logits, self.suffix_owner = other.prompt_logits, other.suffix_owner

    def restore(self, shadow: KVShadow, state: bytes | memoryview) -> bool:
        """Load a saved slot, perhaps of another process; on failure clear it and return False.

        The tail is left out, because its logits were not saved.
        """
        self.clear()
        context, full = self._context, self.sequences.full
        if not context.restore(full, state):
            context.remove(full, 0)
            return False
        self.shadow = shadow.copy()
        self.shadow.tail = []
        context.remove(full, self.shadow.end)
        context.copy(full, self.sequences.prefix, 0, len(shadow.prefix))
        return True

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> KvPlan:
        """Evaluate a prompt, up to and including its middle.

        Args:
            exact: evaluate the start of the suffix again if the text before it has changed.
            draft: tokens that may follow the middle. They are evaluated in its batch, with logits
                after each of them; `truncate_tail` removes them.

        Returns:
            The executed plan. With `keep_tail` nothing was evaluated, and `logits()` of the context
            belong to another batch.
        """
        self.read_tokens = self.passes = 0
        prefix, middle = split(prompt)
        marker = [] if prompt.marker is None else [prompt.marker]
        plan = self.shadow.plan(prompt)
        is_stale = plan.too_stale or (exact and self.shadow.stale > 0)
        refresh = plan.keep_suffix > 0 and is_stale
        if plan.keep_tail and not refresh:
            self.truncate_tail(len(middle))
            return plan
        try:
            if plan.keep_suffix:
                self._splice(plan, prefix, marker)
                if refresh:
                    self._refresh_suffix(marker)
            elif prompt.after:
                self._begin_suffix(plan.keep, prefix, marker, prompt.after[0])
            if prompt.after:
                rest = prompt.after[len(self.shadow.suffix or ()) :]
                self._continue_suffix(rest, middle, draft)
            else:
                self._read_without_suffix(plan.keep, prefix, marker, middle, draft)
        except BaseException:
            if self._has_pending_shift:  # only some of the keys may have been rotated
                self._has_pending_shift = False
                self.drop_suffix()
            raise
        self.read_tokens -= len(draft)
        return plan

    def append(self, tokens: list[int]) -> None:
        """Evaluate tokens after the tail, with logits after each of them."""
        end, full = self.shadow.end, self.sequences.full
        with self._decoded(tokens, end, full, len(tokens)) as count:
            if count < len(tokens):
                self._context.remove(full, end)
            else:
                self.shadow.tail += tokens

    def truncate_tail(self, keep: int) -> None:
        """Remove everything after the first `keep` tokens of the tail."""
        if len(self.shadow.tail) > keep:
            self._context.remove(self.sequences.full, self.shadow.tail_at + keep)
            del self.shadow.tail[keep:]

    def drop_suffix(self) -> None:
        """Remove the suffix and the tail."""
        self._context.remove(self.sequences.full, self.shadow.suffix_at)
        self.shadow.suffix, self.shadow.tail = None, []

    def _splice(self, plan: KvPlan, prefix: list[int], marker: list[int]) -> None:
        """Change the prefix before a suffix, and remove the part of the suffix that cannot stay."""
        shadow, context = self.shadow, self._context
        shadow.suffix, shadow.tail = (shadow.suffix or ())[: plan.keep_suffix], []
        context.remove(self.sequences.full, shadow.tail_at)
        if shadow.has_marker and plan.keep == len(prefix) == len(shadow.prefix):
            return
        self._truncate_prefix(plan.keep)
        if plan.widen:
            self._shift(shadow.suffix_at, -1, plan.widen)
            shadow.suffix_at += plan.widen
        shadow.stale += max(len(prefix) - plan.keep, 1)
        self._read_prefix([*prefix[plan.keep :], *marker], len(prefix) - plan.keep)

    def _begin_suffix(self, keep: int, prefix: list[int], marker: list[int], first: int) -> None:
        """Evaluate the prefix and the first token of a new suffix, with a gap between them."""
        shadow = self.shadow
        if shadow.suffix is not None:
            self.drop_suffix()
        self._truncate_prefix(keep)
        body = [*prefix[keep:], *marker, first]
        self._read_prefix(body, len(prefix) - keep)
        at = len(prefix) + len(marker)
        self._shift(at, -1, GAP)
        shadow.suffix, shadow.suffix_at, shadow.stale = (first,), at + GAP, 0
        self.suffix_owner = object()

    def _continue_suffix(
        self, suffix: Sequence[int], middle: list[int], draft: Sequence[int]
    ) -> None:
        """Evaluate the rest of the suffix, middle and draft, in as few batches as possible."""
        shadow, tokens = self.shadow, [*suffix, *middle, *draft]
        with self._decoded(tokens, shadow.end, self.sequences.full, 1 + len(draft)) as count:
            shadow.suffix = (*(shadow.suffix or ()), *suffix[:count])
            if count == len(tokens):
                shadow.tail = [*middle, *draft]
            else:
                self._context.remove(self.sequences.full, shadow.tail_at)

    def _refresh_suffix(self, marker: list[int]) -> None:
        """Evaluate the start of the suffix again, after the current prefix.

        This uses the spare sequence, so that after an abort the old one stays in use.
        """
        shadow, context = self.shadow, self._context
        full, spare, suffix = self.sequences.full, self.sequences.spare, shadow.suffix or ()
        end, count = len(shadow.prefix), min(len(suffix), REFRESH_TOKENS)
        gap = GAP if count == len(suffix) else shadow.suffix_at - end - len(marker)
        context.copy(self.sequences.prefix, spare, 0, end)
        tokens, begin = [*marker, *suffix[:count]], end + len(marker)
        with self._decoded(tokens, end, spare) as evaluated:
            if evaluated < len(tokens):
                context.remove(spare, 0)
        context.remove(full, end, shadow.suffix_at + count)
        context.copy(spare, full, end, begin + count)
        context.remove(spare, 0)
        if gap:
            self._shift(begin, begin + count, gap)
        shadow.suffix_at, shadow.stale, shadow.has_marker = begin + gap, 0, bool(marker)
        if count == len(suffix):
            self.suffix_owner = object()

    def _read_without_suffix(
        self,
        keep: int,
        prefix: list[int],
        marker: list[int],
        middle: list[int],
        draft: Sequence[int],
    ) -> None:
        """Evaluate the rest of a prompt without a suffix after the marker, in one batch."""
        shadow, context = self.shadow, self._context
        full = self.sequences.full
        if shadow.suffix is not None:
            self.drop_suffix()
        self._truncate_prefix(keep)
        tokens = [*prefix[keep:], *marker, *middle, *draft]
        with self._decoded(tokens, keep, full, 1 + len(draft)) as count:
            stored = min(count, len(prefix) - keep)
            context.copy(full, self.sequences.prefix, keep, keep + stored)
            shadow.prefix += prefix[keep : keep + stored]
            if count < len(tokens):
                context.remove(full, keep + stored)
            else:
                shadow.has_marker, shadow.stale = bool(marker), 0
                shadow.suffix, shadow.suffix_at = (), len(prefix) + len(marker)
                shadow.tail = [*middle, *draft]
                self.suffix_owner = object()

    def _read_prefix(self, tokens: list[int], size: int) -> None:
        """Evaluate tokens after the prefix; only the first `size` also go to PREFIX."""
        shadow, context = self.shadow, self._context
        full, prefix = self.sequences.full, self.sequences.prefix
        start = len(shadow.prefix)
        with self._decoded(tokens, start, prefix) as evaluated:
            stored = min(evaluated, size)
            count = evaluated if evaluated == len(tokens) else stored
            context.remove(prefix, start + count)
            context.copy(prefix, full, start, start + count)
            context.remove(prefix, start + stored)
            shadow.prefix += tokens[:stored]
            shadow.has_marker = count > size

    def _truncate_prefix(self, keep: int) -> None:
        """Remove the prefix from `keep` on, and the marker after it, from both sequences."""
        shadow, context = self.shadow, self._context
        end = len(shadow.prefix) + 1
        context.remove(self.sequences.full, keep, -1 if shadow.suffix is None else end)
        context.remove(self.sequences.prefix, keep)
        del shadow.prefix[keep:]
        shadow.has_marker = False

    def _shift(self, start: int, end: int, by: int) -> None:
        """Shift positions of the suffix; the next decode executes the shift.

        That decode is aborted only if its result is useless, and then the suffix is dropped.
        """
        self._context.move(self.sequences.full, start, end, by)
        self._has_pending_shift = True

    @contextmanager
    def _decoded(
        self, tokens: Sequence[int], position: int, sequence: int, outputs: int = 1
    ) -> Iterator[int]:
        """Decode tokens, then run the body with the number of evaluated tokens.

        If the decoding was stopped, the body makes shadow and sequences consistent, before the
        error is raised again.
        """
        try:
            self._decode(tokens, position, sequence, outputs)
        except BaseException:
            yield max(0, min(self._context.length(sequence) - position, len(tokens)))
            raise
        yield len(tokens)

    def _decode(
        self, tokens: Sequence[int], position: int, sequence: int, outputs: int = 1
    ) -> None:
        """Decode tokens in slices; the last slice has all tokens with logits."""
        start = 0
        while start < len(tokens):
            abort = self._context.abort
            if abort.is_set() and not self._has_pending_shift:
                raise Cancelled("superseded by a newer request")
            stop, left = start + self._slice_tokens, len(tokens) - start
            if left - self._slice_tokens <= max(outputs, self._slice_tokens // 2):
                stop = len(tokens)
                if left > self._context.batch_tokens:  # two batches of about the same size
                    stop -= max(outputs, left // 2)
            part = tokens[start:stop]
            is_last = stop == len(tokens)
            with abort.between_batches() if self._has_pending_shift else nullcontext():
                self._context.decode(part, position + start, sequence, outputs if is_last else 1)
            self._has_pending_shift = False
            self.read_tokens += len(part)
            self.passes += 1
            self.row = len(part) - outputs
            start = stop


def _discarded(shadow: KVShadow, prompt: Prompt) -> int:
    """Return the number of cached tokens that a prompt would discard."""
    plan = shadow.plan(prompt)
    return len(shadow.prefix) - plan.keep + len(shadow.suffix or ()) - plan.keep_suffix


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

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> KvPlan:
        """Choose a slot, make it the current one, and prefill a prompt; see `SlotCache`."""
        # Among equal slots choose the most recently used one.
        best = min(reversed(self._by_age), key=lambda slot: slot.shadow.cost(prompt))
        size, oldest = len(prompt.tokens), self._by_age[0]
        chosen = best
        if size - best.shadow.cost(prompt) < min(MIN_SHARED, size // 2):
            chosen = oldest
        elif _discarded(best.shadow, prompt) >= MIN_PRESERVED and best is not oldest:
            chosen = oldest
            chosen.fork(best)
        self._make_current(chosen)
        return self._prefill_current(prompt, exact, draft)

    def prefill_ahead(self, prompt: Prompt) -> Callable[[], None]:
        """Prefill a possible next prompt in another slot, as a fork if that is cheaper.

        Return a function that restores the current slot.
        """
        before = self.current
        other = min(self._by_age[:-1], key=lambda slot: slot.shadow.cost(prompt))
        if other.shadow.cost(prompt) >= before.shadow.cost(prompt):
            other = self._by_age[0]
            other.fork(before)
        self._make_current(other)
        try:
            if self._sharing_shifted_suffix(prompt):
                other.drop_suffix()  # evaluate a separate suffix instead
                prompt = replace(prompt, after=prompt.after[:AHEAD_SUFFIX_TOKENS])
            self._prefill_current(prompt, exact=False)
        except BaseException:
            self._make_current(before)
            raise
        return lambda: self._make_current(before)

    def cost(self, prompt: Prompt) -> int:
        """Return the number of tokens that `prefill` would evaluate."""
        return min(slot.shadow.cost(prompt) for slot in self._by_age)

    def shorten(self, prompt: Prompt, suffix_tokens: int) -> Prompt:
        """Return the prompt with the cheapest suffix: a slot's, or one of `suffix_tokens`."""
        reusable = {slot.shadow.reusable_suffix(prompt.after) for slot in self._by_age} - {0}
        shorter = [
            replace(prompt, after=prompt.after[:size]) for size in reusable | {suffix_tokens}
        ]
        return min(shorter, key=lambda each: (self.cost(each), -len(each.after)))

    def restore(self, shadow: KVShadow, state: bytes | memoryview) -> bool:
        """Load a saved slot into the least recently used one."""
        return self._by_age[0].restore(shadow, state)

    def append(self, tokens: list[int]) -> None:
        """Evaluate tokens after the current prompt."""
        self._retrying_without_other_slots(lambda: self.current.append(tokens))

    def _make_current(self, slot: SlotCache) -> None:
        self._by_age.remove(slot)
        self._by_age.append(slot)

    def _prefill_current(self, prompt: Prompt, exact: bool, draft: Sequence[int] = ()) -> KvPlan:
        for other in self._sharing_shifted_suffix(prompt):
            other.clear()  # a shift moves the cells of all sequences
        return self._retrying_without_other_slots(
            lambda: self.current.prefill(prompt, exact=exact, draft=draft)
        )

    def _sharing_shifted_suffix(self, prompt: Prompt) -> list[SlotCache]:
        """Return the slots that share the current one's suffix cells, if these must be shifted."""
        current = self.current
        if not current.shadow.plan(prompt).widen:
            return []
        return [slot for slot in self._by_age[:-1] if slot.suffix_owner is current.suffix_owner]

    def _retrying_without_other_slots(self, work: Callable[[], T]) -> T:
        """Call `work`; if the cache is full, clear the other slots and call it again."""
        try:
            return work()
        except OutOfMemory:
            others = [slot for slot in self._by_age[:-1] if slot.shadow.end]
            if not others:
                raise
            for slot in others:
                slot.clear()
            return work()
