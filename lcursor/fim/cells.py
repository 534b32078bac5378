"""Which token sits where in the KV cache: the shadow of one sequence, kept in Python.

Pure bookkeeping; calls nothing of llama.cpp. The engine asks it what can stay, does so, and tells
it what was read. After an abort the cache is the truth and the shadow is cut to it.
"""

from __future__ import annotations

from collections.abc import Sequence


class Cells:
    """The tokens of one sequence, at positions 0, 1, 2, ..."""

    def __init__(self) -> None:
        self._tokens: list[int] = []

    def __len__(self) -> int:
        return len(self._tokens)

    def common(self, tokens: Sequence[int]) -> int:
        """Return how many of `tokens` are here already, from the start.

        At least the last one is always left to read: logits come only from reading.
        """
        most = min(len(self._tokens), len(tokens) - 1)
        for i in range(most):
            if self._tokens[i] != tokens[i]:
                return i
        return max(most, 0)

    def cut(self, length: int) -> None:
        """Forget everything from position `length` on."""
        del self._tokens[length:]

    def add(self, tokens: Sequence[int]) -> None:
        """Note that these were read behind the last one."""
        self._tokens.extend(tokens)
