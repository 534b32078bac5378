"""Speculative decoding without a draft model: guess the next tokens, and verify them.

A guess is the text after an earlier occurrence of the last tokens (prompt lookup, with the longest
and newest match), or the rest of an earlier suggestion. `DraftVerifier` evaluates several guessed
tokens in one batch; a right guess saves a pass over the weights. `BranchDecoder` generates several
texts in parallel, one token of each per pass.
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
"""Maximum tokens guessed per pass, on any machine."""
MIN_MATCH, MAX_MATCH = 2, 4
"""Minimum matching tokens for a guess to be worth a wider batch, and maximum compared tokens."""
MIN_SAME_BYTES = 2
"""Minimum matching bytes before the cursor to resume a suggestion."""
MAX_SAME_BYTES = 64
SEPARATOR = -1


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated suggestion.

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
        limit: maximum tokens to return; none without another match of `MIN_MATCH` tokens.

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
    """Return the rest of a suggestion from the point where the typed text matches it again.

    For example, after `find(a, b)` was suggested and `find(x, ` typed, the rest is `b)`.

    Args:
        before: the end of the text before the next token.
        forced: required start of the next tokens.
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
    """Evaluates chosen tokens, together with guesses after them in the same batch.

    Args:
        slots: the current slot has the prompt, and the draft that was evaluated with it.
        prompt: source of guesses.
        generated: tokens of recent suggestions, another source of guesses; the newest last.
        guesses: maximum tokens guessed per pass; 0 for none. With `MAX_GUESSES`, which is for GPUs,
            every batch has 1 token or `MAX_GUESSES` + 1.
        draft: likely first tokens.

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
        """Evaluate a chosen token; return the logits after it: a view [n_vocab]."""
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
        """Remove evaluated guesses that were not chosen."""
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
            # On a GPU a batch of 8 costs about as much as one token, and recorded graphs are only
            # reused for batches of the same width.
            found += found[-1:] * (MAX_GUESSES - len(found))
        return found


class BranchDecoder:
    """Generates at most `len(BRANCHES)` texts after the current prompt, which is unchanged."""

    def __init__(self, context: Context, slots: Slots, count: int) -> None:
        self._context = context
        self._sequences = BRANCHES[:count]
        self._positions = [slots.current.shadow.end] * count
        for sequence in self._sequences:
            context.copy(slots.current.sequences.full, sequence, 0, slots.current.shadow.end)

    def read(self, tokens: Mapping[int, int]) -> dict[int, NDArray[np.float32]]:
        """Evaluate the next token of some texts, by number; return the logits after each."""
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
