"""Speculative decoding without a draft model: guesses of the next tokens, and their verification.

Guesses are what followed the same text the last time (prompt lookup, with the longest match and the
newest of those), or the rest of an earlier suggestion. `DraftVerifier` evaluates several guessed
tokens in one batch; a right guess saves a pass over the weights. `BranchDecoder` generates several
texts side by side, one token of each per pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lcursor.fim.kv import common_length
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt
from lcursor.fim.slots import BRANCHES, Slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_GUESSES = 7
"""Most tokens guessed per pass, on any machine."""
MIN_MATCH, MAX_MATCH = 2, 4
"""Tokens that must match before a guess is worth a wider batch, and that are compared at most."""
MIN_SAME_BYTES = 2
"""Bytes before the cursor that must match for a suggestion to be resumed."""
MAX_SAME_BYTES = 64
SEPARATOR = -1


@dataclass(frozen=True, slots=True)
class Generated:
    """A suggestion that was generated.

    Attributes:
        before: the end of the text before it.
        pieces: the bytes of each token.
    """

    before: bytes
    tokens: Sequence[int]
    pieces: Sequence[bytes]


def join(*parts: Sequence[int]) -> NDArray[np.int32]:
    """Return a corpus for `guess`: [n]. The newest part comes last."""
    tokens: list[int] = []
    for part in parts:
        tokens += [*part, SEPARATOR]
    return np.array(tokens, dtype=np.int32)


def guess(corpus: NDArray[np.int32], recent: Sequence[int], limit: int) -> list[int]:
    """Return the tokens that followed the recent ones earlier in the corpus.

    Args:
        corpus: see `join`.
        recent: the tokens before the guess, the newest last.
        limit: most tokens to return; none if the last `MIN_MATCH` tokens are nowhere else.

    Cost: about 10 µs for 2,000 tokens.
    """
    if len(recent) < MIN_MATCH:
        return []
    ends = np.flatnonzero((corpus[:-1] == recent[-1]) & (corpus[1:] != SEPARATOR))
    found = ends[:0]
    for size in range(2, min(MAX_MATCH, len(recent)) + 1):
        ends = ends[ends >= size - 1]
        ends = ends[corpus[ends - (size - 1)] == recent[-size]]
        if not len(ends):
            break
        found = ends
    if not len(found):
        return []
    start = int(found[-1]) + 1
    part = [int(token) for token in corpus[start : start + limit]]
    return part[: part.index(SEPARATOR)] if SEPARATOR in part else part


def resume(generated: Generated, before: bytes, forced: bytes) -> list[int]:
    """Return the rest of a suggestion from where the typed text agrees with it again.

    For example, after `find(a, b)` was suggested and `find(x, ` typed, the rest is `b)`.

    Args:
        before: the end of the text before the next token.
        forced: what the next tokens must begin with.
    """
    text, start = generated.before + b"".join(generated.pieces), len(generated.before)
    best, rest = MIN_SAME_BYTES - 1, 0
    typed = before[: -MAX_SAME_BYTES - 1 : -1]
    for number, piece in enumerate(generated.pieces):
        if text.startswith(forced, start):
            suggested = text[max(start - MAX_SAME_BYTES, 0) : start][::-1]
            same = common_length(suggested, typed) + len(forced)
            if same > best:
                best, rest = same, len(generated.tokens) - number
        start += len(piece)
    return list(generated.tokens[len(generated.tokens) - rest :])


class DraftVerifier:
    """Evaluates the tokens that were chosen, and guesses behind them in the same batch.

    Args:
        context: gives the logits.
        slots: the current slot has the prompt, and the draft that was evaluated with it.
        prompt: the prompt; guesses come from its tokens.
        generated: tokens of recent suggestions, another source of guesses; the newest last.
        guesses: most tokens guessed per pass; 0 for none. With `MAX_GUESSES`, which is for GPUs,
            every batch is of 1 token or of `MAX_GUESSES` + 1.
        draft: the tokens that are likely to come first.

    Attributes:
        passes: decode calls so far.
    """

    def __init__(
        self,
        context: Context,
        slots: Slots,
        prompt: Prompt,
        generated: Sequence[Sequence[int]],
        guesses: int,
        draft: Sequence[int] = (),
    ) -> None:
        self._context, self._slots = context, slots
        self._guesses = guesses
        self._draft = list(draft)
        self._recent = list(prompt.before[-MAX_MATCH:])
        self._corpus: NDArray[np.int32] | None = None
        self._sources = (prompt.after, prompt.before, *generated)
        self._evaluated = slots.current.shadow.tail[len(prompt.middle) or 1 :]  # guesses
        self._row = slots.current.row
        self.passes = 0

    def read(self, token: int) -> NDArray[np.float32]:
        """Evaluate a chosen token; return the logits behind it: a view [n_vocab]."""
        self._recent.append(token)
        self._draft = self._draft[1:] if self._draft[:1] == [token] else []
        if self._evaluated and self._evaluated[0] == token:
            self._evaluated.pop(0)
            self._row += 1
            return self._context.logits(self._row)
        self.discard_draft()
        guesses = self._guess()
        self._slots.append([token, *guesses])
        self.passes += 1
        self._evaluated, self._row = guesses, 0
        return self._context.logits(0)

    def discard_draft(self) -> None:
        """Remove the evaluated guesses that were not chosen."""
        if self._evaluated:
            slot = self._slots.current
            slot.truncate_tail(len(slot.shadow.tail) - len(self._evaluated))
            self._evaluated = []

    def _guess(self) -> list[int]:
        if not self._guesses:
            return []
        found = self._draft[: self._guesses]
        if not found:
            if self._corpus is None:
                self._corpus = join(*self._sources)
            found = guess(self._corpus, self._recent, self._guesses)
        if self._guesses == MAX_GUESSES:
            # A batch of 8 costs a GPU about what one token costs, and recorded graphs can be used
            # again only for batches of the same width.
            found += found[-1:] * (MAX_GUESSES - len(found))
        return found


class BranchDecoder:
    """Generates at most `len(BRANCHES)` texts behind the current prompt, which stays as it is."""

    def __init__(self, context: Context, slots: Slots, count: int) -> None:
        self._context = context
        self._sequences = BRANCHES[:count]
        self._positions = [slots.current.shadow.end] * count
        for sequence in self._sequences:
            context.copy(slots.current.sequences.full, sequence, 0, slots.current.shadow.end)

    def read(self, tokens: Mapping[int, int]) -> dict[int, NDArray[np.float32]]:
        """Evaluate the next token of some texts, by number; return the logits behind each."""
        self._context.decode_each(
            [
                (token, self._positions[number], self._sequences[number])
                for number, token in tokens.items()
            ]
        )
        for number in tokens:
            self._positions[number] += 1
        return {number: self._context.logits(row) for row, number in enumerate(tokens)}

    def close(self) -> None:
        """Remove the texts from the cache."""
        for sequence in self._sequences:
            self._context.remove(sequence, 0)
