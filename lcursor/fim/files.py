"""Other files in a prompt: how their text becomes tokens, and how many there may be.

Pure but for a cache of tokens: a keystroke must not pay for files that it did not change. Which
files are worth it, `context_ring.py` decides. One `FileTokens` belongs to one thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcursor.fim.families import Resolved, Tokenize, parts

MAX_KEPT = 64
"""Files whose tokens are kept; more than a prompt has, so that a file may come back."""
TOP_LINES = 40

_IMPORT = re.compile(
    r"(import|from|use|using|require|require_once|include|package|mod|extern|pub use)\b"
    r"|#\s*include\b|(local|const|let|var)\b.*\brequire\b|(library|source)\b"
)


@dataclass(frozen=True, slots=True)
class File:
    """A piece of another file, under the path that the model shall see."""

    path: str
    text: str


def room_for_top(files_tokens: int) -> int:
    """Return what of the budget is for the top of the file itself, used or not.

    It is always kept free: else the files before it would be cut anew as the top comes and goes.
    """
    return files_tokens // 3


def room_for_files(files_tokens: int) -> int:
    """Return what of the budget is for other files."""
    return files_tokens - room_for_top(files_tokens)


class FileTokens:
    """The tokens of files, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[File, int], list[int]] = {}

    def fill(
        self, files: Sequence[File], family: Resolved, tokenize: Tokenize, most: int
    ) -> list[int]:
        """Return the tokens of files in their order, each in the family's template.

        The first that does not fit is cut at the end of a line, and none comes behind it.

        Args:
            files: what to show.
            family: its template and the ids of its markers.
            tokenize: the model's tokenizer; text of files is never read as markers.
            most: tokens of all of them.
        """
        read: list[int] = []
        if not takes_files(family):
            return read
        for file in files:
            tokens = self._slot(file, family, tokenize, -1)
            if len(read) + len(tokens) > most:
                return read + self._slot(file, family, tokenize, most - len(read))
            read += tokens
        return read

    def _slot(self, file: File, family: Resolved, tokenize: Tokenize, most: int) -> list[int]:
        """Return the tokens of one file, at most so many; -1 is all."""
        key = (file, most)
        tokens = self._made.pop(key, None)
        if tokens is None:
            tokens = _lay_out(file, family, tokenize, most)
        self._made[key] = tokens
        if len(self._made) > MAX_KEPT:
            del self._made[next(iter(self._made))]
        return tokens


def takes_files(family: Resolved) -> bool:
    """Whether the family's prompt has a place for other files, and the model its markers."""
    template = family.family.file
    known = all(name in family.ids for kind, name in parts(template) if kind == "marker")
    return "{files}" in family.template and bool(template) and known


def _lay_out(file: File, family: Resolved, tokenize: Tokenize, most: int) -> list[int]:
    before: list[int] = []
    after: list[int] = []
    read = before
    for kind, text in parts(family.family.file):
        if kind == "marker":
            read.append(family.ids[text])
        elif text == "code" and kind == "field":
            read = after
        else:
            read += tokenize(file.path if kind == "field" else text, False)
    code = tokenize(file.text, False)
    if most >= 0:
        room = most - len(before) - len(after)
        code = tokenize(
            cut(file.text, room, lambda text: len(tokenize(text, False)), len(code)), False
        )
        if not code:
            return []
    return [*before, *code, *after]


def cut(
    text: str,
    most: int,
    count: Callable[[str], int],
    tokens: int = -1,
    *,
    from_middle: bool = False,
) -> str:
    """Return whole lines of a text that are at most so many tokens, the first ones.

    Args:
        text: what to cut.
        most: tokens that may stay.
        count: counts the tokens of a text.
        tokens: of the whole text, where they are known.
        from_middle: return those around its middle.
    """
    tokens, most = count(text) if tokens < 0 else tokens, max(most, 0)
    lines = text.split("\n")
    while tokens > most and lines:
        fewer = min(len(lines) * most // tokens, len(lines) - 1)
        first = (len(lines) - fewer) // 2 if from_middle else 0
        lines = lines[first : first + fewer]
        tokens = count("\n".join(lines)) if lines else 0
    return "\n".join(lines)


def imports_of(lines: Sequence[str]) -> str:
    """Return the top of a file from its first import on; "" where nothing is imported."""
    for start, line in enumerate(lines[:TOP_LINES]):
        if _IMPORT.match(line):
            return "\n".join(lines[start:TOP_LINES]).rstrip()
    return ""
