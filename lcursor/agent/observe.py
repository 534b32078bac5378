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

from lcursor.agent.records import Observation
from lcursor.project.reading import open_regular
from lcursor.storage.folders import make_private, write_file
from lcursor.workspace.outputs import cut_line, ends_of, lines_of, printable
from lcursor.workspace.shell import MAX_BYTES, CommandResult

SHARE: Final = 16
"""The limit of an observation, as a divisor of the context."""
MIN_TOKENS: Final = 400
MAX_TOKENS: Final = 4000
MAX_TOKEN_CHARS: Final = 16
"""Texts with more characters a token are shortened before their tokens are counted."""
NAME: Final = "out:"
MAX_TOKEN_LINES: Final = 16
"""Empty lines that one token may stand for."""
OFFLINE: Final = re.compile(
    r"could not resolve host|name resolution|network is unreachable|getaddrinfo|ENOTFOUND",
    re.IGNORECASE,
)


def limit_tokens(context_tokens: int) -> int:
    """Return the limit of one observation for a model's context."""
    return max(MIN_TOKENS, min(context_tokens // SHARE, MAX_TOKENS))


@dataclass(frozen=True, slots=True)
class TokenLimit:
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


def numbered(lines: Sequence[str], first_row: int, last_row: int) -> list[str]:
    """Return rows of a text with their line numbers."""
    rows = range(first_row, min(last_row, len(lines)))
    return [f"{row + 1:6d}\t{cut_line(printable(lines[row]))}" for row in rows]


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


def command_observation(
    result: CommandResult,
    command: str,
    limit: TokenLimit,
    outputs: Outputs,
    remarks: Sequence[str] = (),
) -> Observation:
    """Return what the model reads of a command: within the limit, and its full output stored."""
    notes = [*remarks]
    if result.jobs:
        noun = "a background job was" if result.jobs == 1 else f"{result.jobs} background jobs were"
        notes.append(f"{noun} killed at the end; run it together with what needs it")
    if result.is_cut:
        notes.append(f"output after the first {MAX_BYTES >> 20} MB was dropped")
    if not result.is_ok and any(map(OFFLINE.search, result.lines[-50:])):
        notes.append("commands have no network")
    head = f"{result.head} · {result.seconds:.1f} s"
    first = command.strip().partition("\n")[0]
    lines, name = result.lines, ""

    def make(number: int) -> str:
        stored = [f"full output: {name}, {len(lines):,} lines"] if name else []
        return "\n".join([head, *ends_of(lines, number), *notes, *stored])

    most = min(len(lines), limit.tokens * MAX_TOKEN_LINES)
    text = limit.fit(make, most)
    if text != "\n".join([head, *lines, *notes]):
        try:
            name = outputs.store(lines)
        except OSError as error:
            notes.append(f"the full output could not be stored: {error.strerror}")
        text = limit.fit(make, most)
    return Observation(
        text,
        is_error=not result.is_ok,
        target=cut_line(first),
        result=result.brief,
        output=name,
        status=result.status,
    )
