"""Brings the KV cache of one slot to a prompt, evaluating as few tokens as possible.

Owns the two sequences of a `kv.KVShadow` in one `llama.Context`, and a third one on which the
beginning of a suffix is evaluated again while the old one stays in use. Runs on the engine's
thread. Every method may raise Cancelled between two slices; cache and shadow then agree, and the
next call continues from what was evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from lcursor.errors import Cancelled
from lcursor.fim.kv import GAP, REFRESH_TOKENS, KVShadow, Plan, split
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SequenceIds(NamedTuple):
    """Ids of the sequences of one slot; several slots may use the same spare one."""

    full: int = 0
    prefix: int = 1
    spare: int = 2


SLICE_TOKENS = 64
"""Prompt tokens per batch on a CPU, 0.3 s for 0.5B; the abort flag is checked between batches.
64 take no longer than 48 there. A rest of up to half as many joins the last batch."""


class SlotCache:
    """The cached prompt of one buffer.

    Args:
        context: a context with at least three sequences.
        sequences: ids of the sequences to use.
        slice_tokens: largest batch, 1 to the context's own limit.

    Attributes:
        shadow: what the sequences hold.
        suffix_owner: slots with the same object share the cells of their suffix.
        prompt_logits: logits behind the middle, [n_vocab]; kept here for the engine.
        read_tokens: tokens evaluated since the last `prefill` began, without the draft.
        passes: batches decoded since the last `prefill` began.
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing is cached."""
        return self.shadow.end == 0

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `prefill` would evaluate."""
        return self.shadow.cost(prompt)

    def kept_suffix(self, prompt: Prompt) -> int:
        """Return how many tokens of the prompt's suffix are cached, from its beginning."""
        return self.shadow.kept_suffix(prompt.after)

    def discarded_tokens(self, prompt: Prompt) -> int:
        """Return how many cached tokens `prefill` would throw away."""
        plan = self.shadow.plan(prompt)
        suffix = len(self.shadow.suffix or ()) - plan.keep_suffix
        return len(self.shadow.prefix) - plan.keep + suffix

    def shifts_suffix(self, prompt: Prompt) -> bool:
        """Whether `prefill` would shift the positions of the suffix."""
        return self.shadow.plan(prompt).widen > 0

    def clear(self) -> None:
        """Remove everything."""
        self._context.remove(self.sequences.full, 0)
        self._context.remove(self.sequences.prefix, 0)
        self.shadow, self.prompt_logits, self.suffix_owner = KVShadow(), None, object()

    def fork(self, other: SlotCache) -> None:
        """Hold the same tokens as another slot, in the same cells."""
        self.clear()
        own, others = self.sequences, other.sequences
        self._context.copy(others.full, own.full, 0, other.shadow.end)
        self._context.copy(others.prefix, own.prefix, 0, len(other.shadow.prefix))
        self.shadow = other.shadow.copy()
        self.prompt_logits, self.suffix_owner = other.prompt_logits, other.suffix_owner

    def state(self, max_bytes: int) -> memoryview:
        """Return the cached data for `restore`; empty if it is larger than `max_bytes`."""
        return self._context.state(self.sequences.full, max_bytes)

    def restore(self, shadow: KVShadow, state: bytes | memoryview) -> bool:
        """Load what a slot had, perhaps in another process; return False, and be empty, on failure.

        Args:
            shadow: a copy of the shadow it had.
            state: what `state` returned then.
        """
        self.clear()
        context, full = self._context, self.sequences.full
        if not context.restore(full, state):
            context.remove(full, 0)
            return False
        self.shadow = shadow.copy()
        self.shadow.tail = []  # the logits behind it were not saved
        context.remove(full, self.shadow.end)
        context.copy(full, self.sequences.prefix, 0, len(shadow.prefix))
        return True

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> Plan:
        """Make the cache hold a prompt, up to and including its middle.

        Args:
            prompt: the prompt.
            exact: evaluate the beginning of the suffix again if the text before it has changed.
            draft: tokens that may follow the middle. They are evaluated in its batch, with logits
                behind each of them; `truncate_tail` removes them.

        Returns:
            What was done. With `keep_tail` nothing was evaluated, and `logits()` of the context
            belong to something else.
        """
        self.read_tokens = self.passes = 0
        prefix, middle = split(prompt)
        marker = [] if prompt.marker is None else [prompt.marker]
        plan = self.shadow.plan(prompt)
        refresh = plan.kind == "splice" and (plan.too_stale or (exact and self.shadow.stale > 0))
        if plan.keep_tail and not refresh:
            self.truncate_tail(len(middle))
            return plan
        try:
            if plan.kind == "splice":
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
            if self._has_pending_shift:  # some keys may have been rotated and others not
                self._has_pending_shift = False
                self.drop_suffix()
            raise
        self.read_tokens -= len(draft)
        return plan

    def append(self, tokens: list[int]) -> None:
        """Evaluate tokens behind the tail, with logits behind each of them."""
        try:
            self._decode(tokens, self.shadow.end, self.sequences.full, len(tokens))
        except BaseException:
            self._context.remove(self.sequences.full, self.shadow.end)
            raise
        self.shadow.tail += tokens

    def truncate_tail(self, keep: int) -> None:
        """Remove what is behind the first `keep` tokens of the tail."""
        if len(self.shadow.tail) > keep:
            self._context.remove(self.sequences.full, self.shadow.tail_at + keep)
            del self.shadow.tail[keep:]

    def drop_suffix(self) -> None:
        """Remove the suffix and the tail."""
        self._context.remove(self.sequences.full, self.shadow.suffix_at)
        self.shadow.suffix, self.shadow.tail = None, []

    def _splice(self, plan: Plan, prefix: list[int], marker: list[int]) -> None:
        """Change the prefix before a suffix whose beginning stays, and remove the rest of it."""
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
        """Evaluate the rest of the suffix and what follows it, in as few batches as possible."""
        shadow, tokens = self.shadow, [*suffix, *middle, *draft]
        with self._decoded(tokens, shadow.end, self.sequences.full, 1 + len(draft)) as count:
            shadow.suffix = (*(shadow.suffix or ()), *suffix[:count])
            if count == len(tokens):
                shadow.tail = [*middle, *draft]
            else:
                self._context.remove(self.sequences.full, shadow.tail_at)

    def _refresh_suffix(self, marker: list[int]) -> None:
        """Evaluate the beginning of the suffix again, behind the prefix as it is now.

        It is done on the spare sequence, so that an abort leaves the old one in use.
        """
        shadow, context = self.shadow, self._context
        full, spare, suffix = self.sequences.full, self.sequences.spare, shadow.suffix or ()
        end, count = len(shadow.prefix), min(len(suffix), REFRESH_TOKENS)
        gap = GAP if count == len(suffix) else shadow.suffix_at - end - len(marker)
        context.copy(self.sequences.prefix, spare, 0, end)
        try:
            self._decode([*marker, *suffix[:count]], end, spare)
        except BaseException:
            context.remove(spare, 0)
            raise
        begin = end + len(marker)
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
        """Evaluate the rest of a prompt that has no suffix behind the marker, in one batch."""
        shadow, context = self.shadow, self._context
        full = self.sequences.full
        if shadow.suffix is not None:
            self.drop_suffix()
        self._truncate_prefix(keep)
        tokens = [*prefix[keep:], *marker, *middle, *draft]
        with self._decoded(tokens, keep, full, 1 + len(draft)) as count:
            kept = min(count, len(prefix) - keep)
            context.copy(full, self.sequences.prefix, keep, keep + kept)
            shadow.prefix += prefix[keep : keep + kept]
            if count < len(tokens):
                context.remove(full, keep + kept)
            else:
                shadow.has_marker, shadow.stale = bool(marker), 0
                shadow.suffix, shadow.suffix_at = (), len(prefix) + len(marker)
                shadow.tail = [*middle, *draft]
                self.suffix_owner = object()

    def _read_prefix(self, tokens: list[int], size: int) -> None:
        """Evaluate tokens behind the prefix; those behind the first `size` stay in FULL alone."""
        shadow, context = self.shadow, self._context
        full, prefix = self.sequences.full, self.sequences.prefix
        start = len(shadow.prefix)
        with self._decoded(tokens, start, prefix) as count:
            if count < len(tokens):
                count = min(count, size)
            kept = min(count, size)
            context.remove(prefix, start + count)
            context.copy(prefix, full, start, start + count)
            context.remove(prefix, start + kept)
            shadow.prefix += tokens[:kept]
            shadow.has_marker = count > size

    def _truncate_prefix(self, keep: int) -> None:
        """Remove the prefix from `keep` on, and the marker behind it, from both sequences."""
        shadow, context = self.shadow, self._context
        end = len(shadow.prefix) + 1
        if shadow.suffix is None:
            context.remove(self.sequences.full, keep)
        else:
            context.remove(self.sequences.full, keep, end)
        context.remove(self.sequences.prefix, keep)
        del shadow.prefix[keep:]
        shadow.has_marker = False

    def _shift(self, start: int, end: int, by: int) -> None:
        """Shift positions of the suffix; the next decode carries it out.

        It is aborted only if what it computes is of no use, and then the suffix is dropped.
        """
        self._context.move(self.sequences.full, start, end, by)
        self._has_pending_shift = True

    @contextmanager
    def _decoded(
        self, tokens: Sequence[int], position: int, sequence: int, outputs: int = 1
    ) -> Iterator[int]:
        """Decode tokens, then run the body with the number of tokens that were evaluated.

        These are fewer than all where the decoding was stopped; the error is raised again behind
        the body, which brings shadow and sequences into agreement.
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
        """Decode tokens in slices; the last slice holds all tokens that give logits."""
        start = 0
        while start < len(tokens):
            abort = self._context.abort
            if abort.is_set() and not self._has_pending_shift:
                raise Cancelled("a newer request came")
            stop = start + self._slice_tokens
            if len(tokens) - stop <= max(outputs, self._slice_tokens // 2):
                stop = len(tokens)
            part = tokens[start:stop]
            is_last = stop == len(tokens)
            with abort.between_batches() if self._has_pending_shift else nullcontext():
                self._context.decode(part, position + start, sequence, outputs if is_last else 1)
            self._has_pending_shift = False
            self.read_tokens += len(part)
            self.passes += 1
            self.row = len(part) - outputs
            start = stop
