"""The model's tokens as bytes, and which of them may come next when text is already typed.

Token healing: the cursor is usually inside what the tokenizer would have made one token, and a
prompt that ends in half a token misleads the model. So the last piece is taken back, and what is
written must begin with its text. Pure once built; any thread.

Source: the idea and its name are Guidance's ("token healing").
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


PROBE = 'def F(x):\n\treturn "é – 日本 \U0001f600" + x  # 1e-9\n\n    if x != {}:  \r\n'
"""Text with what tokenizers are known to change: blanks, tabs, line ends, what is not ASCII."""


class Vocabulary:
    """All pieces of a model, sorted.

    Args:
        pieces: bytes of each token, b"" for markers.
    """

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        order = sorted(range(len(pieces)), key=pieces.__getitem__)
        order = order[bisect_right([pieces[token] for token in order], b"") :]
        self._texts = [pieces[token] for token in order]
        self._tokens = np.array(order, dtype=np.int64)
        self._exact = dict(zip(reversed(self._texts), reversed(order), strict=True))

    def starting_with(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens whose piece begins with `text`: [n]."""
        low = bisect_left(self._texts, text)
        high = bisect_left(self._texts, _after(text)) if _after(text) else len(self._texts)
        return self._tokens[low:high]

    def allowed(self, text: bytes) -> NDArray[np.int64]:
        """Return the tokens that may come next when `text` must be written first: [n].

        Those that begin with it, and those that are a beginning of it.
        """
        parts = [self._exact[text[:n]] for n in range(1, len(text)) if text[:n] in self._exact]
        return np.concatenate([self.starting_with(text), np.array(parts, dtype=np.int64)])

    def take_back(self, tokens: Sequence[int]) -> tuple[list[int], bytes]:
        """Take off the end of a prompt what may be the beginning of one longer token.

        As many tokens go as together begin a token of the vocabulary, so that typing on inside a
        word changes nothing of what stays. A line's end always stays.

        Returns:
            The tokens that stay, and the text that must be written first.
        """
        end, text = len(tokens), b""
        while end:
            piece = self.pieces[tokens[end - 1]]
            if not piece or piece.endswith((b"\n", b"\r")) or not self.begins(piece + text):
                break
            end, text = end - 1, piece + text
        return list(tokens[:end]), text

    def begins(self, text: bytes) -> bool:
        """Whether any token begins with `text`."""
        at = bisect_left(self._texts, text)
        return at < len(self._texts) and self._texts[at].startswith(text)


def gives_back(tokenize: Callable[[str], list[int]], piece: Callable[[int], bytes]) -> bool:
    """Whether tokens read back are the text that was read; else nothing can be taken back.

    A blank that a tokenizer puts before every text does no harm.
    """
    back = b"".join(map(piece, tokenize(PROBE)))
    return back.removeprefix(b" ") == PROBE.encode()


def _after(text: bytes) -> bytes:
    """Return the least bytes above all that begin with `text`; b"" when there are none."""
    while text and text[-1] == 0xFF:
        text = text[:-1]
    return text[:-1] + bytes([text[-1] + 1]) if text else b""
