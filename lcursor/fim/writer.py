"""Reads the tokens that were chosen, and gives the logits behind them in as few passes as can be.

`DraftVerifier` writes one text and reads several tokens a pass where guesses hold; `BranchDecoder`
writes several texts, one token of each a pass. Both know tokens and logits; the generator decides
what they say, and when to stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lcursor.fim import drafts
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt
from lcursor.fim.slots import BRANCHES, Slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_GUESSES = 7
"""Most tokens that are guessed a pass, on any machine."""


class DraftVerifier:
    """Writes behind the prompt that the current seat holds, and what was read ahead with it.

    Args:
        context: gives the logits.
        seats: reads what is written.
        prompt: what stands before; its tokens are where guesses come from.
        written: tokens of suggestions of late, another source of guesses; the last one last.
        guesses: most tokens guessed a pass; 0 for none. With `MAX_GUESSES`, which only a GPU has,
            every batch is of 1 token or of `MAX_GUESSES` + 1.
        draft: the tokens that are likely to come first.
    """

    def __init__(
        self,
        context: Context,
        slots: Slots,
        prompt: Prompt,
        written: Sequence[Sequence[int]],
        guesses: int,
        draft: Sequence[int] = (),
    ) -> None:
        self._context, self._slots = context, slots
        self._guesses = guesses
        self._draft = list(draft)
        self._recent = list(prompt.before[-drafts.MAX_MATCH :])
        self._corpus: NDArray[np.int32] | None = None
        self._sources = (prompt.after, prompt.before, *written)
        self._ahead = slots.current.shadow.tail[len(prompt.middle) or 1 :]
        self._row = slots.current.row
        self.passes = 0
        """Times that the weights were read."""

    def read(self, token: int) -> NDArray[np.float32]:
        """Read a token that was chosen; return the logits behind it: a view [n_vocab].

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        self._recent.append(token)
        self._draft = self._draft[1:] if self._draft[:1] == [token] else []
        if self._ahead and self._ahead[0] == token:
            self._ahead.pop(0)
            self._row += 1
            return self._context.logits(self._row)
        self.discard_draft()
        guesses = self._guess()
        self._slots.append([token, *guesses])
        self.passes += 1
        self._ahead, self._row = guesses, 0
        return self._context.logits(0)

    def discard_draft(self) -> None:
        """Take away what was read ahead and is not wanted."""
        if self._ahead:
            cache = self._slots.current
            cache.truncate_tail(len(cache.shadow.tail) - len(self._ahead))
            self._ahead = []

    def _guess(self) -> list[int]:
        found = self._guess_freely()
        if self._guesses == MAX_GUESSES:
            # A batch of 8 costs a GPU about what one token costs, and graphs that it has recorded
            # are of use only for batches of the same width.
            found += found[-1:] * (MAX_GUESSES - len(found))
        return found

    def _guess_freely(self) -> list[int]:
        if not self._guesses:
            return []
        if self._draft:
            return self._draft[: self._guesses]
        if self._corpus is None:
            self._corpus = drafts.join(*self._sources)
        return drafts.guess(self._corpus, self._recent, self._guesses)


class BranchDecoder:
    """Writes several texts behind what the current seat holds, in sequences of their own.

    Args:
        context: gives the logits.
        seats: its current seat stays as it is.
        count: of the texts, at most `len(BRANCHES)`.
    """

    def __init__(self, context: Context, slots: Slots, count: int) -> None:
        self._context = context
        self._sequences = BRANCHES[:count]
        self._positions = [slots.current.shadow.end] * count
        for sequence in self._sequences:
            context.copy(slots.current.sequences.full, sequence, 0, slots.current.shadow.end)

    def read(self, tokens: Mapping[int, int]) -> dict[int, NDArray[np.float32]]:
        """Read the next token of some of the texts, by number; return the logits behind each.

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        self._context.decode_each(
            [
                (token, self._positions[number], self._sequences[number])
                for number, token in tokens.items()
            ]
        )
        for number in tokens:
            self._positions[number] += 1
        return {number: self._context.logits(row) for row, number in enumerate(tokens)}

    def discard_draft(self) -> None:
        """Take away what was written."""
        for sequence in self._sequences:
            self._context.remove(sequence, 0)
