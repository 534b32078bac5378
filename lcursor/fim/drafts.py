"""Guesses of the next tokens that cost no model: what followed the same text the last time.

Pure. A guess that is right saves a pass over the weights; one batch checks all of them.
Source: prompt-lookup decoding, with the longest match and the newest of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lcursor.fim.kv import common

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_MATCH, MAX_MATCH = 2, 4
"""Tokens that must be the same before a guess is worth a wider batch, and that are compared."""
MIN_SAME_BYTES = 2
"""Bytes before the cursor that must be the same for a suggestion to be resumed."""
MAX_SAME_BYTES = 64
SEPARATOR = -1


@dataclass(frozen=True, slots=True)
class Generated:
    """A suggestion that was written."""

    before: bytes
    """The end of the text before it."""
    tokens: Sequence[int]
    pieces: Sequence[bytes]
    """The bytes of each token."""


def join(*parts: Sequence[int]) -> NDArray[np.int32]:
    """Return a corpus to guess from: [n]. The newest part comes last."""
    tokens: list[int] = []
    for part in parts:
        tokens += [*part, SEPARATOR]
    return np.array(tokens, dtype=np.int32)


def guess(corpus: NDArray[np.int32], recent: Sequence[int], most: int) -> list[int]:
    """Return what came after the last tokens where they stood before.

    Args:
        corpus: see `join`.
        recent: the tokens just read, the last one last.
        most: how many to guess.

    Returns:
        At most `most` tokens, none where the last `MIN_MATCH` tokens stand nowhere else.

    Cost:
        Some 10 µs for 2,000 tokens.
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
    part = [int(token) for token in corpus[start : start + most]]
    return part[: part.index(SEPARATOR)] if SEPARATOR in part else part


def resume(written: Generated, before: bytes, heal: bytes) -> list[int]:
    """Return the rest of a suggestion, from the place where typed text agrees with it again.

    `find(a, b)` was suggested and `find(x, ` typed: the rest is `b)`.

    Args:
        written: the suggestion.
        before: the end of the text before the next token.
        heal: what the next tokens must begin with.
    """
    text, start = written.before + b"".join(written.pieces), len(written.before)
    best, rest = MIN_SAME_BYTES - 1, 0
    behind = before[: -MAX_SAME_BYTES - 1 : -1]
    for number, piece in enumerate(written.pieces):
        if text.startswith(heal, start):
            held = text[max(start - MAX_SAME_BYTES, 0) : start][::-1]
            same = common(held, behind) + len(heal)
            if same > best:
                best, rest = same, len(written.tokens) - number
        start += len(piece)
    return list(written.tokens[len(written.tokens) - rest :])
