"""Bound the text of observations by tokens, and store full outputs.

Nothing is left out without a note: each function states what it omits. Outputs are files of mode
0600 in the run's folder, named `out:1`, `out:2`, ….
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.project.reading import open_regular
from lcursor.storage.folders import make_private, write_file

SHARE: Final = 16
"""The limit of an observation, as a divisor of the context."""
MIN_TOKENS: Final = 400
MAX_TOKENS: Final = 4000
MAX_LINE_CHARS: Final = 500
HEAD_SHARE: Final = 0.3
"""Share of the lines that are taken from the beginning of a long output; the rest is its end."""
MAX_TOKEN_CHARS: Final = 16
"""Texts with more characters a token are shortened before their tokens are counted."""
NAME: Final = "out:"

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def limit_tokens(context_tokens: int) -> int:
    """Return the limit of one observation for a model's context."""
    return max(MIN_TOKENS, min(context_tokens // SHARE, MAX_TOKENS))


@dataclass(frozen=True, slots=True)
class Limit:
    """The token limit of an observation."""

    tokens: int
    count: Callable[[str], int]

    def fit(self, make: Callable[[int], str], most: int) -> str:
        """Return `make(n)` for a large `n <= most` whose text is within the limit.

        Args:
            make: returns the text with n items, and a note on the others.
        """
        number = most
        while True:
            text = make(number)
            used = self._used(text)
            if used <= self.tokens:
                return text
            if number <= 0:
                return self.cut(text)
            number = max(min(number - 1, int(number * self.tokens / used * 0.97)), 0)

    def cut(self, text: str) -> str:
        """Return the beginning of a text, and the number of characters left out."""
        size, whole = len(text), text
        while self._used(text) > self.tokens:
            size = size * 3 // 4
            text = f"{whole[:size]}\n… {len(whole) - size:,} more characters"
        return text

    def _used(self, text: str) -> int:
        """Return the tokens of a text, or an estimate if it is far too long or surely fits."""
        if len(text) > MAX_TOKEN_CHARS * self.tokens:
            return len(text) // MAX_TOKEN_CHARS + self.tokens
        size = len(text.encode("utf-8", "surrogatepass"))
        return size if size < self.tokens else self.count(text)  # a token has at least a byte


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def cut_line(line: str) -> str:
    """Return a line without what exceeds `MAX_LINE_CHARS`, and the length of that."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]} … {len(line) - MAX_LINE_CHARS:,} more characters"


def numbered(lines: Sequence[str], first_row: int, last_row: int) -> list[str]:
    """Return rows of a text with their line numbers."""
    rows = range(first_row, min(last_row, len(lines)))
    return [f"{row + 1:6d}\t{cut_line(printable(lines[row]))}" for row in rows]


def printable(text: str) -> str:
    """Return a text without escape sequences, control characters and surrogates."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def lines_of(data: bytes) -> list[str]:
    """Return the printable lines of an output; of a line that was overwritten, the last version."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line
             for line in text.split("\n")]  # fmt: skip
    if lines and not lines[-1]:
        lines.pop()
    return [printable(line) for line in lines]


def ends_of(lines: Sequence[str], number: int) -> list[str]:
    """Return some lines of the beginning and the end, and between them how many are left out."""
    if number >= len(lines):
        return [cut_line(line) for line in lines]
    head = int(number * HEAD_SHARE)
    tail = lines[len(lines) - (number - head) :]
    rest = counted(len(lines) - number, "line")
    return [*map(cut_line, lines[:head]), f"… {rest} left out …", *map(cut_line, tail)]


class Outputs:
    """The stored outputs of a run. Each number is used once.

    Args:
        folder: made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = make_private(folder)
        known = [int(name) for name in os.listdir(folder) if name.isdigit()]
        self._last = max(known, default=0)

    def store(self, lines: Sequence[str]) -> str:
        """Store an output and return its name.

        Raises:
            OSError: it cannot be written.
        """
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        write_file(self._folder / str(self._last + 1), data)
        self._last += 1
        return f"{NAME}{self._last}"

    def read(self, name: str) -> list[str] | None:
        """Return the lines of an output; None if there is none of that name."""
        number = name.removeprefix(NAME)
        if not number.isascii() or not number.isdigit():
            return None
        try:
            with open_regular(self._folder / str(int(number)), follows_links=False) as file:
                return lines_of(file.read())
        except OSError:
            return None
