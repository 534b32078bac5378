"""How sure the model is of what it writes, and from which token on it is better to say nothing.

Pure. The confidence of a line is the probability of all its tokens together; it can only fall while
the line is written, so what is shown while it is high enough need never be taken back.
"""

from __future__ import annotations


class Judge:
    """Follows one suggestion.

    Args:
        threshold: least confidence of a line, 0 to 1; 0 lets everything pass.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._lines = 0
        self._line = 1.0
        self.confidence = 1.0
        """Of the first line as far as it was judged."""

    def allows(self, share: float) -> bool:
        """Take the probability of the next token; return whether it may stand."""
        self._line *= share
        if not self._lines:
            self.confidence = self._line
        return self._line >= self._threshold

    def newline(self) -> None:
        """The token that was taken last ended a line; the next line is judged by itself."""
        self._lines += 1
        self._line = 1.0


def sure_part(text: str) -> str:
    """Return what may be shown of a text that ends where the model became unsure.

    Its whole lines; of a first line alone, as far as it goes, if that is more than one character.
    """
    lines, _, last = text.rpartition("\n")
    if lines:
        return lines
    return last if len(last.strip()) > 1 else ""
