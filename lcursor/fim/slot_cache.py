"""Brings the KV cache to a prompt with as little reading as can be, and keeps its shadow true.

Owns the two sequences of `kv.KVShadow` in one `llama.Context`, and a third on which the beginning
of a suffix is read again while the old one still serves. Runs on the engine's thread; every method
may raise Cancelled between two slices, leaves cache and shadow in agreement, and keeps what was
read: the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from lcursor.errors import Cancelled
from lcursor.fim.kv import GAP, KVShadow, Plan
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SequenceIds(NamedTuple):
    """Ids of the sequences of one seat; several seats may have the same spare one."""

    full: int = 0
    prefix: int = 1
    spare: int = 2


SLICE_TOKENS = 64
"""Prompt tokens read between two looks at the abort flag on a CPU, 0.3 s for 0.5B: 64 take no
longer than 48 there, and a rest of up to half as many more is read with them."""
REFRESH_TOKENS = 128
"""Tokens at the beginning of a suffix that are read again when the text before it has changed."""


class SlotCache:
    """The cells of one buffer's prompt.

    Args:
        context: a context with at least three sequences.
        lanes: ids of its sequences.
        slice_tokens: most tokens of a batch, 1 to the context's own limit.
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
        """Who has the same one may share this one's suffix cells."""
        self.prompt_logits: NDArray[np.float32] | None = None
        """Those behind the middle: [n_vocab]; the engine keeps them here."""
        self.read_tokens = 0
        """Tokens read since the last `prefill` began, those read ahead left out."""
        self.passes = 0
        """Batches decoded since the last `prefill` began."""
        self.row = 0
        """Number of the middle's last token in the last batch; those read ahead follow it."""
        self._has_moved = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.shadow.end == 0

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `prefill` would read."""
        return cost(self.shadow, prompt)

    def kept_suffix(self, prompt: Prompt) -> int:
        """Return how many tokens of the prompt's suffix are here, from its beginning."""
        return self.shadow.keeps(prompt.after)

    def discarded_tokens(self, prompt: Prompt) -> int:
        """Return how many tokens of what is here `prefill` would throw away."""
        plan = self._plan(prompt)
        suffix = len(self.shadow.suffix or ()) - plan.keep_suffix
        return len(self.shadow.prefix) - plan.keep + suffix

    def moves_suffix(self, prompt: Prompt) -> bool:
        """Whether `prefill` would move the cells of the suffix."""
        return self._plan(prompt).widen > 0

    def _plan(self, prompt: Prompt) -> Plan:
        return _plan(self.shadow, prompt)

    def clear(self) -> None:
        """Forget all of it."""
        self._context.remove(self.sequences.full, 0)
        self._context.remove(self.sequences.prefix, 0)
        self.shadow, self.prompt_logits, self.suffix_owner = KVShadow(), None, object()

    def fork(self, other: SlotCache) -> None:
        """Hold what another one holds, in the same cells."""
        self.clear()
        self._context.copy(other.sequences.full, self.sequences.full, 0, other.shadow.end)
        self._context.copy(
            other.sequences.prefix, self.sequences.prefix, 0, len(other.shadow.prefix)
        )
        self.shadow = other.shadow.copy()
        self.prompt_logits, self.suffix_owner = other.prompt_logits, other.suffix_owner

    def state(self, max_bytes: int) -> memoryview:
        """Return what is in it, for `restore`; nothing where that is more than `max_bytes`."""
        return self._context.state(self.sequences.full, max_bytes)

    def restore(self, shadow: KVShadow, state: bytes | memoryview) -> bool:
        """Hold what another one held, in another run perhaps; False, and empty, if that fails.

        Args:
            cells: a copy of its shadow.
            state: what its `state` gave then.
        """
        self.clear()
        context, full = self._context, self.sequences.full
        if not context.restore(full, state):
            context.remove(full, 0)
            return False
        self.shadow = shadow.copy()
        self.shadow.tail = []  # nobody kept the logits behind it
        context.remove(full, self.shadow.end)
        context.copy(full, self.sequences.prefix, 0, len(shadow.prefix))
        return True

    def prefill(self, prompt: Prompt, *, exact: bool = False, draft: Sequence[int] = ()) -> Plan:
        """Make the cache hold a prompt up to and with its middle.

        Args:
            prompt: what shall be there.
            exact: read the beginning of the suffix again if the text before it has changed.
            ahead: tokens that may follow the middle; they are read in its batch, and there are
                logits behind each of them. `truncate_tail` takes them out.

        Returns:
            What was done. With `keep_tail` nothing was read and logits() are of something else.
        """
        self.read_tokens = self.passes = 0
        prefix, middle = _parts(prompt)
        marker = [] if prompt.marker is None else [prompt.marker]
        plan = self._plan(prompt)
        refresh = plan.kind == "splice" and (plan.too_stale or (exact and self.shadow.stale > 0))
        if plan.keep_tail and not refresh:
            self.truncate_tail(len(middle))
            return plan
        try:
            if plan.kind == "splice":
                self._splice(plan, prefix, marker)
                if refresh:
                    self._refresh(marker)
            elif prompt.after:
                self._begin_suffix(plan.keep, prefix, marker, prompt.after[0])
            if prompt.after:
                self._read_on(prompt.after[len(self.shadow.suffix or ()) :], middle, draft)
            else:
                self._read_without_suffix(plan.keep, prefix, marker, middle, draft)
        except BaseException:
            if self._has_moved:  # some of the suffix's keys were turned and others were not
                self._has_moved = False
                self.drop_suffix()
            raise
        self.read_tokens -= len(draft)
        return plan

    def append(self, tokens: list[int]) -> None:
        """Read tokens behind the tail; there are logits behind each of them."""
        self._read_tail(tokens)

    def truncate_tail(self, keep: int) -> None:
        """Take away what stands behind the first `keep` tokens of the tail."""
        if len(self.shadow.tail) > keep:
            self._context.remove(self.sequences.full, self.shadow.tail_at + keep)
            del self.shadow.tail[keep:]

    def _splice(self, plan: Plan, prefix: list[int], marker: list[int]) -> None:
        """Change the prefix before a suffix whose beginning stays, and take the rest away."""
        shadow, context = self.shadow, self._context
        shadow.suffix, shadow.tail = (shadow.suffix or ())[: plan.keep_suffix], []
        context.remove(self.sequences.full, shadow.tail_at)
        if shadow.has_marker and plan.keep == len(prefix) == len(shadow.prefix):
            return
        self._cut_prefix(plan.keep)
        if plan.widen:
            self._move(shadow.suffix_at, -1, plan.widen)
            shadow.suffix_at += plan.widen
        shadow.stale += max(len(prefix) - plan.keep, 1)
        self._read_prefix([*prefix[plan.keep :], *marker], len(prefix) - plan.keep)

    def _begin_suffix(self, keep: int, prefix: list[int], marker: list[int], first: int) -> None:
        """Read the prefix, and the first token of a new suffix, which leaves a gap before it."""
        shadow = self.shadow
        if shadow.suffix is not None:
            self.drop_suffix()
        self._cut_prefix(keep)
        body = [*prefix[keep:], *marker, first]
        self._read_prefix(body, len(prefix) - keep)
        at = len(prefix) + len(marker)
        self._move(at, -1, GAP)
        shadow.suffix, shadow.suffix_at, shadow.stale = (first,), at + GAP, 0
        self.suffix_owner = object()

    def _refresh(self, marker: list[int]) -> None:
        """Read the beginning of the suffix again, behind the prefix as it is now.

        It is read on the spare sequence, so that an abort leaves the old one in use.
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
            self._move(begin, begin + count, gap)
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
        """Read the rest of a prompt with nothing behind the cursor, in one batch if it fits."""
        shadow, context = self.shadow, self._context
        if shadow.suffix is not None:
            self.drop_suffix()
        self._cut_prefix(keep)
        tokens = [*prefix[keep:], *marker, *middle, *draft]
        got = 0
        try:
            self._decode(tokens, keep, self.sequences.full, 1 + len(draft))
            got = len(tokens)
        finally:
            got = got or self._count_read(self.sequences.full, keep, tokens)
            kept = min(got, len(prefix) - keep)
            context.copy(self.sequences.full, self.sequences.prefix, keep, keep + kept)
            shadow.prefix += prefix[keep : keep + kept]
            if got < len(tokens):
                context.remove(self.sequences.full, keep + kept)
            else:
                shadow.has_marker, shadow.stale = bool(marker), 0
                shadow.suffix, shadow.suffix_at = (), len(prefix) + len(marker)
                shadow.tail = [*middle, *draft]
                self.suffix_owner = object()

    def drop_suffix(self) -> None:
        """Take the suffix and the tail out."""
        self._context.remove(self.sequences.full, self.shadow.suffix_at)
        self.shadow.suffix, self.shadow.tail = None, []

    def _move(self, start: int, end: int, by: int) -> None:
        """Shift positions of the suffix; the next decode carries it out and is not aborted."""
        self._context.move(self.sequences.full, start, end, by)
        self._has_moved = True

    def _read_on(self, suffix: Sequence[int], middle: list[int], draft: Sequence[int]) -> None:
        """Read the rest of the suffix and what stands behind it, in as few batches as can be."""
        tokens, start = [*suffix, *middle, *draft], self.shadow.end
        got = 0
        try:
            self._decode(tokens, start, self.sequences.full, 1 + len(draft))
            got = len(tokens)
        finally:
            got = got or self._count_read(self.sequences.full, start, tokens)
            self.shadow.suffix = (*(self.shadow.suffix or ()), *suffix[:got])
            if got == len(tokens):
                self.shadow.tail = [*middle, *draft]
            else:
                self._context.remove(self.sequences.full, self.shadow.tail_at)

    def _count_read(self, sequence: int, start: int, tokens: Sequence[int]) -> int:
        """Return how many of the tokens an aborted decode has left in a sequence."""
        return max(0, min(self._context.length(sequence) - start, len(tokens)))

    def _read_tail(self, tokens: list[int]) -> None:
        """Read tokens behind the tail, with logits behind each of them."""
        try:
            self._decode(tokens, self.shadow.end, self.sequences.full, len(tokens))
        except BaseException:
            self._context.remove(self.sequences.full, self.shadow.end)
            raise
        self.shadow.tail += tokens

    def _cut_prefix(self, keep: int) -> None:
        """Take the prefix from `keep` on, and the marker behind it, out of both sequences."""
        shadow, context = self.shadow, self._context
        end = len(shadow.prefix) + 1
        if shadow.suffix is None:
            context.remove(self.sequences.full, keep)
        else:
            context.remove(self.sequences.full, keep, end)
        context.remove(self.sequences.prefix, keep)
        del shadow.prefix[keep:]
        shadow.has_marker = False

    def _read_prefix(self, tokens: list[int], count: int) -> None:
        """Read tokens behind the prefix; those from `count` on stay in FULL alone."""
        shadow, context = self.shadow, self._context
        start, got = len(shadow.prefix), 0
        try:
            self._decode(tokens, start, self.sequences.prefix)
            got = len(tokens)
        finally:
            got = got or self._count_read(self.sequences.prefix, start, tokens)
            if got < len(tokens):
                got = min(got, count)
            kept = min(got, count)
            context.remove(self.sequences.prefix, start + got)
            context.copy(self.sequences.prefix, self.sequences.full, start, start + got)
            context.remove(self.sequences.prefix, start + kept)
            shadow.prefix += tokens[:kept]
            shadow.has_marker = got > count

    def _decode(
        self, tokens: Sequence[int], position: int, sequence: int, outputs: int = 1
    ) -> None:
        """Read tokens in slices; the last slice holds all tokens that give logits."""
        start = 0
        while start < len(tokens):
            abort = self._context.abort
            if abort.is_set() and not self._has_moved:
                raise Cancelled("a newer request came")
            stop = start + self._slice_tokens
            if len(tokens) - stop <= max(outputs, self._slice_tokens // 2):
                stop = len(tokens)
            part = tokens[start:stop]
            is_last = stop == len(tokens)
            with abort.between_batches() if self._has_moved else nullcontext():
                self._context.decode(part, position + start, sequence, outputs if is_last else 1)
            self._has_moved = False
            self.read_tokens += len(part)
            self.passes += 1
            self.row = len(part) - outputs
            start = stop


def cost(shadow: KVShadow, prompt: Prompt) -> int:
    """Return how many tokens must be read to get from some cells to a prompt."""
    prefix, middle = _parts(prompt)
    plan = _plan(shadow, prompt)
    if plan.keep_tail:
        return 0
    changed, marker = len(prefix) - plan.keep, int(prompt.marker is not None)
    if plan.kind == "exact":
        return changed + marker + len(prompt.after) + len(middle)
    has_marker = shadow.has_marker and plan.keep == len(prefix) == len(shadow.prefix)
    refreshed = REFRESH_TOKENS if plan.too_stale else 0
    return changed + (0 if has_marker else marker) + refreshed + plan.extend + len(middle)


def _plan(shadow: KVShadow, prompt: Prompt) -> Plan:
    prefix, middle = _parts(prompt)
    return shadow.plan(prefix, prompt.after, middle, prompt.marker is not None)


def _parts(prompt: Prompt) -> tuple[list[int], list[int]]:
    """Return what stands before the marker, and what the model goes on from."""
    prefix, middle = list(prompt.before), list(prompt.middle)
    if not middle:  # a family without a middle marker goes on from its last token
        prefix, middle = prefix[:-1], prefix[-1:]
    return prefix, middle
