"""The likeliest text behind the current prompt, token by token, several a pass where guesses hold.

Owns what was read ahead of the token that is asked for. Knows tokens and logits; what they say, and
when to stop, is the engine's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lcursor.fim import drafts
from lcursor.fim.llama import Context
from lcursor.fim.prompt import Prompt
from lcursor.fim.seats import Seats

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST = 7
"""Tokens besides the chosen one that a batch may give logits for."""


class Writer:
    """Writes behind the prompt that the current seat holds.

    Args:
        context: gives the logits.
        seats: reads what is written.
        prompt: what stands before; its tokens are where guesses come from.
        before: tokens of the last suggestion, another source of guesses.
        guesses: most tokens guessed a pass; 0 for none.
        script: tokens that will be written, whatever is likely.
    """

    def __init__(
        self,
        context: Context,
        seats: Seats,
        prompt: Prompt,
        before: Sequence[int],
        guesses: int,
        script: Sequence[int] = (),
    ) -> None:
        self._context, self._seats = context, seats
        self._guesses = guesses
        self._script = list(script)
        self._recent = list(prompt.before[-drafts.MATCH :])
        self._corpus: NDArray[np.int32] | None = None
        self._sources = (prompt.after, prompt.before, before)
        self._ahead: list[int] = []
        self._row = 0
        self.passes = 0
        """Times that the weights were read."""

    def read(self, token: int) -> NDArray[np.float32]:
        """Read a token that was chosen; return the logits behind it: a view [n_vocab].

        Raises:
            Cancelled, EngineFailed, OutOfMemory: see `llama.Context.decode`.
        """
        self._recent.append(token)
        self._script = self._script[1:]
        if self._ahead and self._ahead[0] == token:
            self._ahead.pop(0)
            self._row += 1
            return self._context.logits(self._row)
        self.drop()
        guesses = self._guess()
        self._seats.write([token, *guesses])
        self.passes += 1
        self._ahead, self._row = guesses, 0
        return self._context.logits(0)

    def drop(self) -> None:
        """Take away what was read ahead and is not wanted."""
        if self._ahead:
            cache = self._seats.current
            cache.forget_written(len(cache.cells.tail) - len(self._ahead))
            self._ahead = []

    def _guess(self) -> list[int]:
        if self._script:
            return self._script[:MOST]
        if not self._guesses:
            return []
        if self._corpus is None:
            self._corpus = np.fromiter(
                (token for part in self._sources for token in part), dtype=np.int32
            )
        return drafts.guess(self._corpus, self._recent, self._guesses)
