"""Brings the KV cache to a prompt with as little reading as can be, and keeps its shadow true.

Owns the two sequences of `cells.Cells` in one `llama.Context`, and a third on which a suffix is
read anew while the old one still serves. Runs on the engine's thread; every method may raise
Cancelled between two slices, and leaves cache and shadow in agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
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


SLICE_TOKENS = 128
"""Prompt tokens read between two looks at the abort flag, where the GPU does not poll it."""


class Cache:
    """The cells of one buffer's prompt.

    Args:
        context: a context with at least three sequences.
        can_splice: whether cells may be shifted; else every change is read exactly.
    """

    def __init__(
        self, context: Context, can_splice: bool = True, lanes: Lanes | None = None
    ) -> None:
        self._context = context
        self._can_splice = can_splice
        self.lanes = lanes or Lanes()
        self.cells = Cells()
        self.lineage: object = object()
        """Who has the same one may share this one's suffix cells."""
        self.first_logits: NDArray[np.float32] | None = None
        """Those behind the middle: [n_vocab]; the engine keeps them here."""
        self.read_tokens = 0
        """Tokens read since the last `bring` began."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.cells.end == 0

    def cost(self, prompt: Prompt) -> int:
        """Return how many tokens `bring` would read."""
        return cost(self.cells, prompt)

    def moves(self, prompt: Prompt) -> bool:
        """Whether `bring` would move the cells of the suffix."""
        return self.cells.plan(_parts(prompt)[0], prompt.after).widen > 0

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

    def bring(self, prompt: Prompt, *, exact: bool = False) -> Plan:
        """Make the cache hold a prompt up to and with its middle; logits() are those behind it.

        Args:
            prompt: what shall be there.
            exact: read the suffix anew even where it could stay.

        Returns:
            What was done. With `keep_tail` nothing was read and logits() are of something else.
        """
        self.read_tokens = 0
        prefix, middle = _parts(prompt)
        plan = self.cells.plan(prefix, prompt.after)
        if plan.kind == "splice" and not (exact and self.cells.stale) and prompt.after:
            self._splice(plan, prefix, prompt.marker, middle)
            return plan
        plan = Plan("exact", plan.keep)
        self._read_exactly(plan.keep, prefix, prompt, middle)
        return plan

    def write(self, tokens: list[int]) -> None:
        """Read tokens behind the tail; there are logits behind each of them."""
        self._read_tail(tokens, outputs=len(tokens))

    def forget_written(self, keep: int) -> None:
        """Take away what stands behind the first `keep` tokens of the tail."""
        if len(self.cells.tail) > keep:
            self._context.remove(self.lanes.full, self.cells.tail_at + keep)
            del self.cells.tail[keep:]

    def _splice(self, plan: Plan, prefix: list[int], marker: int | None, middle: list[int]) -> None:
        cells, context = self.cells, self._context
        if plan.keep_tail:
            self.forget_written(len(middle))
            return
        context.remove(self.lanes.full, cells.tail_at)
        cells.tail = []
        self._cut_prefix(plan.keep)
        changed = len(prefix) - plan.keep
        ending = [] if marker is None else [marker]
        if plan.widen:
            context.move(self.lanes.full, cells.suffix_at, -1, plan.widen)
            cells.suffix_at += plan.widen
        try:
            self._read_prefix(prefix[plan.keep :], ending)
        except BaseException:
            if plan.widen:
                self.drop_suffix()
            raise
        cells.stale += max(changed, 1)
        self._read_tail(middle)

    def _read_exactly(
        self, keep: int, prefix: list[int], prompt: Prompt, middle: list[int]
    ) -> None:
        cells, context = self.cells, self._context
        is_refresh = cells.suffix == prompt.after and keep == len(prefix) == len(cells.prefix)
        if cells.suffix is not None and not is_refresh:
            self.drop_suffix()
        if not is_refresh:
            self._cut_prefix(keep)
            self._read_prefix(prefix[keep:], [])
        end = len(prefix)
        marker = [] if prompt.marker is None else [prompt.marker]
        gap = GAP if prompt.after and self._can_splice else 0
        # Without a gap the middle follows at once, so all is one batch.
        body = [*marker, *prompt.after, *([] if gap else middle)]
        context.copy(self.lanes.prefix, self.lanes.spare, 0, end)
        try:
            self._decode(body, end, self.lanes.spare)
        except BaseException:
            context.remove(self.lanes.spare, 0)
            raise
        context.remove(self.lanes.full, end)
        context.copy(self.lanes.spare, self.lanes.full, end, end + len(body))
        context.remove(self.lanes.spare, 0)
        self.lineage = object()
        cells.suffix_at = end + len(marker) + gap
        cells.suffix, cells.has_marker, cells.stale = prompt.after, bool(marker), 0
        cells.tail = [] if gap else list(middle)
        if not gap:
            return
        context.move(self.lanes.full, end + len(marker), -1, gap)
        try:
            self._read_tail(middle)
        except BaseException:
            self.drop_suffix()
            raise

    def drop_suffix(self) -> None:
        """Take the suffix and the tail out.

        Needed as well when the decode behind a move was stopped: the move is carried out inside
        it, and some of the suffix's keys may have been turned while others were not.
        """
        self._context.remove(self.lanes.full, self.cells.suffix_at)
        self.cells.suffix, self.cells.tail = None, []

    def _read_tail(self, tokens: list[int], outputs: int = 1) -> None:
        """Read tokens behind the tail."""
        try:
            self._decode(tokens, self.cells.end, self.lanes.full, outputs)
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

    def _read_prefix(self, tokens: list[int], ending: list[int]) -> None:
        """Read tokens behind the prefix, and an ending that stays in FULL alone."""
        cells, context = self.cells, self._context
        start = len(cells.prefix)
        try:
            self._decode([*tokens, *ending], start, self.lanes.prefix)
        finally:
            got = max(0, min(context.length(self.lanes.prefix) - start, len(tokens) + len(ending)))
            kept = min(got, len(tokens))
            if got:
                context.copy(self.lanes.prefix, self.lanes.full, start, start + got)
            context.remove(self.lanes.prefix, start + kept)
            cells.prefix += tokens[:kept]
            cells.has_marker = got > len(tokens)

    def _decode(
        self, tokens: Sequence[int], position: int, sequence: int, outputs: int = 1
    ) -> None:
        for start in range(0, len(tokens), SLICE_TOKENS):
            if self._context.abort.is_set():
                raise Cancelled("a newer request came")
            part = tokens[start : start + SLICE_TOKENS]
            self._context.decode(part, position + start, sequence, outputs)
            self.read_tokens += len(part)


def cost(cells: Cells, prompt: Prompt) -> int:
    """Return how many tokens must be read to get from some cells to a prompt."""
    prefix, middle = _parts(prompt)
    plan = cells.plan(prefix, prompt.after)
    behind = (prompt.marker is not None) + len(middle)
    if plan.kind == "splice":
        return 0 if plan.keep_tail else len(prefix) - plan.keep + behind
    return len(prefix) - plan.keep + len(prompt.after) + behind


def _parts(prompt: Prompt) -> tuple[list[int], list[int]]:
    """Return what stands before the marker, and what the model goes on from."""
    prefix, middle = list(prompt.before), list(prompt.middle)
    if not middle:  # a family without a middle marker goes on from its last token
        prefix, middle = prefix[:-1], prefix[-1:]
    return prefix, middle
