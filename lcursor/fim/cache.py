"""Brings the KV cache to a prompt with as little reading as can be, and keeps its shadow true.

Owns the two sequences of `cells.Cells` in one `llama.Context`, and a third on which the beginning
of a suffix is read again while the old one still serves. Runs on the engine's thread; every method
may raise Cancelled between two slices, leaves cache and shadow in agreement, and keeps what was
read: the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from lcursor.errors import Cancelled
from lcursor.fim.cells import GAP, Cells, Plan
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Lanes(NamedTuple):
    """Ids of the sequences of one seat; several seats may have the same spare one."""

    full: int = 0
    prefix: int = 1
    spare: int = 2


SLICE_TOKENS = 64
"""Prompt tokens read between two looks at the abort flag on a CPU, 0.3 s for 0.5B: 64 take no
longer than 48 there, and a rest of up to half as many more is read with them."""
REFRESH_TOKENS = 128
"""Tokens at the beginning of a suffix that are read again when the text before it has changed."""


class Cache:
    """The cells of one buffer's prompt.

    Args:
        context: a context with at least three sequences.
        lanes: ids of its sequences.
        slice_tokens: most tokens of a batch, 1 to the context's own limit.
    """

    def __init__(
        self, context: Context, lanes: Lanes | None = None, slice_tokens: int = SLICE_TOKENS
    ) -> None:
        self._context = context
        self._slice_tokens = slice_tokens
        self.lanes = lanes or Lanes()
        self.cells = Cells()
        self.lineage: object = object()
        """Who has the same one may share this one's suffix cells."""
        self.first_logits: NDArray[np.float32] | None = None
        """Those behind the middle: [n_vocab]; the engine keeps them here."""
        self.read_tokens = 0
        """Tokens read since the last `bring` began, those read ahead left out."""
        self.passes = 0
        """Batches decoded since the last `bring` began."""
        self.row = 0
        """Number of the middle's last token in the last batch; those read ahead follow it."""
        self._has_moved = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.cells.end == 0

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `bring` would read."""
        return cost(self.cells, prompt)

    def has(self, prompt: Prompt) -> int:
        """Return how many tokens of the prompt's suffix are here, from its beginning."""
        return self.cells.keeps(prompt.after)

    def loss(self, prompt: Prompt) -> int:
        """Return how many tokens of what is here `bring` would throw away."""
        plan = self._plan(prompt)
        suffix = len(self.cells.suffix or ()) - plan.keep_suffix
        return len(self.cells.prefix) - plan.keep + suffix

    def moves(self, prompt: Prompt) -> bool:
        """Whether `bring` would move the cells of the suffix."""
        return self._plan(prompt).widen > 0

    def _plan(self, prompt: Prompt) -> Plan:
        return _plan(self.cells, prompt)

    def clear(self) -> None:
        """Forget all of it."""
        self._context.remove(self.lanes.full, 0)
        self._context.remove(self.lanes.prefix, 0)
        self.cells, self.first_logits, self.lineage = Cells(), None, object()

    def fork(self, other: Cache) -> None:
        """Hold what another one holds, in the same cells."""
        self.clear()
        self._context.copy(other.lanes.full, self.lanes.full, 0, other.cells.end)
        self._context.copy(other.lanes.prefix, self.lanes.prefix, 0, len(other.cells.prefix))
        self.cells = other.cells.copy()
        self.first_logits, self.lineage = other.first_logits, other.lineage

    def state(self, max_bytes: int) -> memoryview:
        """Return what is in it, for `restore`; nothing where that is more than `max_bytes`."""
        return self._context.state(self.lanes.full, max_bytes)

    def restore(self, cells: Cells, state: bytes | memoryview) -> bool:
        """Hold what another one held, in another run perhaps; False, and empty, if that fails.

        Args:
            cells: a copy of its shadow.
            state: what its `state` gave then.
        """
        self.clear()
        context, full = self._context, self.lanes.full
        if not context.restore(full, state):
            context.remove(full, 0)
            return False
        self.cells = cells.copy()
        self.cells.tail = []  # nobody kept the logits behind it
        context.remove(full, self.cells.end)
        context.copy(full, self.lanes.prefix, 0, len(cells.prefix))
        return True

    def bring(self, prompt: Prompt, *, exact: bool = False, ahead: Sequence[int] = ()) -> Plan:
        """Make the cache hold a prompt up to and with its middle.

        Args:
            prompt: what shall be there.
            exact: read the beginning of the suffix again if the text before it has changed.
            ahead: tokens that may follow the middle; they are read in its batch, and there are
                logits behind each of them. `forget_written` takes them out.

        Returns:
            What was done. With `keep_tail` nothing was read and logits() are of something else.
        """
        self.read_tokens = self.passes = 0
        prefix, middle = _parts(prompt)
        marker = [] if prompt.marker is None else [prompt.marker]
        plan = self._plan(prompt)
        refresh = plan.kind == "splice" and (plan.too_stale or (exact and self.cells.stale > 0))
        if plan.keep_tail and not refresh:
            self.forget_written(len(middle))
            return plan
        try:
            if plan.kind == "splice":
                self._splice(plan, prefix, marker)
                if refresh:
                    self._refresh(marker)
            elif prompt.after:
                self._begin_suffix(plan.keep, prefix, marker, prompt.after[0])
            if prompt.after:
                self._read_on(prompt.after[len(self.cells.suffix or ()) :], middle, ahead)
            else:
                self._read_without_suffix(plan.keep, prefix, marker, middle, ahead)
        except BaseException:
            if self._has_moved:  # some of the suffix's keys were turned and others were not
                self._has_moved = False
                self.drop_suffix()
            raise
        self.read_tokens -= len(ahead)
        return plan

    def write(self, tokens: list[int]) -> None:
        """Read tokens behind the tail; there are logits behind each of them."""
        self._read_tail(tokens)

    def forget_written(self, keep: int) -> None:
        """Take away what stands behind the first `keep` tokens of the tail."""
        if len(self.cells.tail) > keep:
            self._context.remove(self.lanes.full, self.cells.tail_at + keep)
            del self.cells.tail[keep:]

    def _splice(self, plan: Plan, prefix: list[int], marker: list[int]) -> None:
        """Change the prefix before a suffix whose beginning stays, and take the rest away."""
        cells, context = self.cells, self._context
        cells.suffix, cells.tail = (cells.suffix or ())[: plan.keep_suffix], []
        context.remove(self.lanes.full, cells.tail_at)
        if cells.has_marker and plan.keep == len(prefix) == len(cells.prefix):
            return
        self._cut_prefix(plan.keep)
        if plan.widen:
            self._move(cells.suffix_at, -1, plan.widen)
            cells.suffix_at += plan.widen
        cells.stale += max(len(prefix) - plan.keep, 1)
        self._read_prefix([*prefix[plan.keep :], *marker], len(prefix) - plan.keep)

    def _begin_suffix(self, keep: int, prefix: list[int], marker: list[int], first: int) -> None:
        """Read the prefix, and the first token of a new suffix, which leaves a gap before it."""
        cells = self.cells
        if cells.suffix is not None:
            self.drop_suffix()
        self._cut_prefix(keep)
        body = [*prefix[keep:], *marker, first]
        self._read_prefix(body, len(prefix) - keep)
        at = len(prefix) + len(marker)
        self._move(at, -1, GAP)
        cells.suffix, cells.suffix_at, cells.stale = (first,), at + GAP, 0
        self.lineage = object()

    def _refresh(self, marker: list[int]) -> None:
        """Read the beginning of the suffix again, behind the prefix as it is now.

        It is read on the spare sequence, so that an abort leaves the old one in use.
        """
        cells, context = self.cells, self._context
        full, spare, suffix = self.lanes.full, self.lanes.spare, cells.suffix or ()
        end, count = len(cells.prefix), min(len(suffix), REFRESH_TOKENS)
        gap = GAP if count == len(suffix) else cells.suffix_at - end - len(marker)
        context.copy(self.lanes.prefix, spare, 0, end)
        try:
            self._decode([*marker, *suffix[:count]], end, spare)
        except BaseException:
            context.remove(spare, 0)
            raise
        begin = end + len(marker)
        context.remove(full, end, cells.suffix_at + count)
        context.copy(spare, full, end, begin + count)
        context.remove(spare, 0)
        if gap:
            self._move(begin, begin + count, gap)
        cells.suffix_at, cells.stale, cells.has_marker = begin + gap, 0, bool(marker)
        if count == len(suffix):
            self.lineage = object()

    def _read_without_suffix(
        self,
        keep: int,
        prefix: list[int],
        marker: list[int],
        middle: list[int],
        ahead: Sequence[int],
    ) -> None:
        """Read the rest of a prompt with nothing behind the cursor, in one batch if it fits."""
        cells, context = self.cells, self._context
        if cells.suffix is not None:
            self.drop_suffix()
        self._cut_prefix(keep)
        tokens = [*prefix[keep:], *marker, *middle, *ahead]
        got = 0
        try:
            self._decode(tokens, keep, self.lanes.full, 1 + len(ahead))
            got = len(tokens)
        finally:
            got = got or self._count_read(self.lanes.full, keep, tokens)
            kept = min(got, len(prefix) - keep)
            context.copy(self.lanes.full, self.lanes.prefix, keep, keep + kept)
            cells.prefix += prefix[keep : keep + kept]
            if got < len(tokens):
                context.remove(self.lanes.full, keep + kept)
            else:
                cells.has_marker, cells.stale = bool(marker), 0
                cells.suffix, cells.suffix_at = (), len(prefix) + len(marker)
                cells.tail = [*middle, *ahead]
                self.lineage = object()

    def drop_suffix(self) -> None:
        """Take the suffix and the tail out."""
        self._context.remove(self.lanes.full, self.cells.suffix_at)
        self.cells.suffix, self.cells.tail = None, []

    def _move(self, start: int, end: int, by: int) -> None:
        """Shift positions of the suffix; the next decode carries it out and is not aborted."""
        self._context.move(self.lanes.full, start, end, by)
        self._has_moved = True

    def _read_on(self, suffix: Sequence[int], middle: list[int], ahead: Sequence[int]) -> None:
        """Read the rest of the suffix and what stands behind it, in as few batches as can be."""
        tokens, start = [*suffix, *middle, *ahead], self.cells.end
        got = 0
        try:
            self._decode(tokens, start, self.lanes.full, 1 + len(ahead))
            got = len(tokens)
        finally:
            got = got or self._count_read(self.lanes.full, start, tokens)
            self.cells.suffix = (*(self.cells.suffix or ()), *suffix[:got])
            if got == len(tokens):
                self.cells.tail = [*middle, *ahead]
            else:
                self._context.remove(self.lanes.full, self.cells.tail_at)

    def _count_read(self, sequence: int, start: int, tokens: Sequence[int]) -> int:
        """Return how many of the tokens an aborted decode has left in a sequence."""
        return max(0, min(self._context.length(sequence) - start, len(tokens)))

    def _read_tail(self, tokens: list[int]) -> None:
        """Read tokens behind the tail, with logits behind each of them."""
        try:
            self._decode(tokens, self.cells.end, self.lanes.full, len(tokens))
        except BaseException:
            self._context.remove(self.lanes.full, self.cells.end)
            raise
        self.cells.tail += tokens

    def _cut_prefix(self, keep: int) -> None:
        """Take the prefix from `keep` on, and the marker behind it, out of both sequences."""
        cells, context = self.cells, self._context
        end = len(cells.prefix) + 1
        if cells.suffix is None:
            context.remove(self.lanes.full, keep)
        else:
            context.remove(self.lanes.full, keep, end)
        context.remove(self.lanes.prefix, keep)
        del cells.prefix[keep:]
        cells.has_marker = False

    def _read_prefix(self, tokens: list[int], count: int) -> None:
        """Read tokens behind the prefix; those from `count` on stay in FULL alone."""
        cells, context = self.cells, self._context
        start, got = len(cells.prefix), 0
        try:
            self._decode(tokens, start, self.lanes.prefix)
            got = len(tokens)
        finally:
            got = got or self._count_read(self.lanes.prefix, start, tokens)
            if got < len(tokens):
                got = min(got, count)
            kept = min(got, count)
            context.remove(self.lanes.prefix, start + got)
            context.copy(self.lanes.prefix, self.lanes.full, start, start + got)
            context.remove(self.lanes.prefix, start + kept)
            cells.prefix += tokens[:kept]
            cells.has_marker = got > count

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


def cost(cells: Cells, prompt: Prompt) -> int:
    """Return how many tokens must be read to get from some cells to a prompt."""
    prefix, middle = _parts(prompt)
    plan = _plan(cells, prompt)
    if plan.keep_tail:
        return 0
    changed, marker = len(prefix) - plan.keep, int(prompt.marker is not None)
    if plan.kind == "exact":
        return changed + marker + len(prompt.after) + len(middle)
    has_marker = cells.has_marker and plan.keep == len(prefix) == len(cells.prefix)
    refreshed = REFRESH_TOKENS if plan.too_stale else 0
    return changed + (0 if has_marker else marker) + refreshed + plan.extend + len(middle)


def _plan(cells: Cells, prompt: Prompt) -> Plan:
    prefix, middle = _parts(prompt)
    return cells.plan(prefix, prompt.after, middle, prompt.marker is not None)


def _parts(prompt: Prompt) -> tuple[list[int], list[int]]:
    """Return what stands before the marker, and what the model goes on from."""
    prefix, middle = list(prompt.before), list(prompt.middle)
    if not middle:  # a family without a middle marker goes on from its last token
        prefix, middle = prefix[:-1], prefix[-1:]
    return prefix, middle
