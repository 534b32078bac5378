"""What a server guesses of an answer from what it has read: the same words, in fewer passes.

A table and nothing else. Text that was copied this far is copied on: of the two ways, the first
takes long runs where much is the same, and the other goes on behind a word that was changed. What
is guessed is looked at by the model in one pass, so the answer is what it would have been; what is
wrong costs about a quarter of a pass a token without a GPU.

Simulated with 40 functions of this project as commits changed them, rewritten whole, in passes for
each token and in the time of a machine on which a guessed token costs a quarter of a pass (what
servers then did is in `bench edit`):

| | passes | time |
|---|--:|--:|
| `ngram-mod` 24, 48 to 64 | 3.7 × fewer | 2.06 × |
| `ngram-simple` 12, 48, the program's own default | 5.0 × | 2.26 × |
| `ngram-simple` 6, 24 | 5.8 × | 2.31 × |
| `ngram-simple` 16, 48 and `ngram-map-k` 4, 8 | 6.9 × | 2.49 × |

The prose of a chat is hardly guessed and hardly helped: beside 652 tokens of four answers 240 were
guessed and 67 of those were right, 0.98 × the speed. Neither `llama-server` nor `xllamacpp` lets a
single request choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["ngram-simple", "ngram-map-k", "ngram-mod"]


@dataclass(frozen=True, slots=True)
class Guess:
    """One way of guessing."""

    kind: Kind
    match_tokens: int
    """Last tokens that are looked for."""
    guess_tokens: int
    """Taken of what followed them; with the one before they must fit into a batch."""

    @property
    def room_tokens(self) -> int:
        """What a batch must have room for, and a little more.

        Else the server aborts: `GGML_ASSERT(add_ok && "batch must be large enough to hold the
        sampled and draft tokens")`.
        """
        return self.guess_tokens + 8


GUESSES: Final = (Guess("ngram-simple", 16, 48), Guess("ngram-map-k", 4, 8))
"""Asked in this order, which is the program's own."""
ALONE: Final = (Guess("ngram-simple", 6, 24), Guess("ngram-mod", 24, 64))
"""For a program that takes only one way, the first of these that it knows."""
