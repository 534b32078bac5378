"""Other files in a prompt: their tokens, and the budget for them.

Pure functions, and a cache of tokens: a keystroke does not tokenize files that have not changed.
`context_ring.py` decides which files are shown. A `FileTokens` belongs to one thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcursor.fim.families import Resolved, Tokenize, parts

MAX_KEPT = 64
"""Files whose tokens are kept; more than a prompt has, so that a file may return."""
TOP_LINES = 40

_IMPORT = re.compile(
    r"(import|from|use|using|require|require_once|include|package|mod|extern|pub use)\b"
    r"|#\s*include\b|(local|const|let|var)\b.*\brequire\b|(library|source)\b"
)


@dataclass(frozen=True, slots=True)
class File:
    """A piece of another file, with the path that the model sees."""

    path: str
    text: str


def file_top_budget(files_tokens: int) -> int:
    """Return the part of the budget that is reserved for the imports of the file itself.

    It is always reserved: else the files before them would be cut differently as they come and go.
    """
    return files_tokens // 3


def other_files_budget(files_tokens: int) -> int:
    """Return the part of the budget for other files."""
    return files_tokens - file_top_budget(files_tokens)


class FileTokens:
    """A cache of the tokens of files."""

    def __init__(self) -> None:
        self._made: dict[tuple[File, int], list[int]] = {}

    def fill(
        self, files: Sequence[File], family: Resolved, tokenize: Tokenize, limit: int
    ) -> list[int]:
        """Return the tokens of files in their order, each in the family's template.

        The first file that does not fit is cut at the end of a line, and ends the list.

        Args:
            files: what to show.
            family: its template and the ids of its markers.
            tokenize: the model's tokenizer; text of files is never tokenized as markers.
            limit: most tokens of all files.
        """
        read: list[int] = []
        if not takes_files(family):
            return read
        for file in files:
            tokens = self._tokens(file, family, tokenize, -1)
            if len(read) + len(tokens) > limit:
                return read + self._tokens(file, family, tokenize, limit - len(read))
            read += tokens
        return read

    def _tokens(self, file: File, family: Resolved, tokenize: Tokenize, limit: int) -> list[int]:
        """Return the tokens of one file, at most `limit`; -1 is all."""
        key = (file, limit)
        tokens = self._made.pop(key, None)
        if tokens is None:
            tokens = _lay_out(file, family, tokenize, limit)
        self._made[key] = tokens
        if len(self._made) > MAX_KEPT:
            del self._made[next(iter(self._made))]
        return tokens


def takes_files(family: Resolved) -> bool:
    """Whether the family's template has a place for other files, and the model the markers."""
    template = family.family.file
    known = all(name in family.ids for kind, name in parts(template) if kind == "marker")
    return "{files}" in family.template and bool(template) and known


def _lay_out(file: File, family: Resolved, tokenize: Tokenize, limit: int) -> list[int]:
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
    if limit >= 0:
        left = limit - len(before) - len(after)
        code = tokenize(
            cut(file.text, left, lambda text: len(tokenize(text, False)), len(code)), False
        )
        if not code:
            return []
    return [*before, *code, *after]


def cut(
    text: str,
    limit: int,
    count: Callable[[str], int],
    tokens: int = -1,
    *,
    from_middle: bool = False,
) -> str:
    """Return the first lines of a text that have at most `limit` tokens.

    Args:
        text: what to cut.
        limit: tokens that may stay.
        count: counts the tokens of a text.
        tokens: tokens of the whole text, if known.
        from_middle: return the lines around its middle instead.
    """
    tokens, limit = count(text) if tokens < 0 else tokens, max(limit, 0)
    lines = text.split("\n")
    while tokens > limit and lines:
        fewer = min(len(lines) * limit // tokens, len(lines) - 1)
        first = (len(lines) - fewer) // 2 if from_middle else 0
        lines = lines[first : first + fewer]
        tokens = count("\n".join(lines)) if lines else 0
    return "\n".join(lines)


def imports_of(lines: Sequence[str]) -> str:
    """Return the top of a file from its first import on; "" if nothing is imported."""
    for start, line in enumerate(lines[:TOP_LINES]):
        if _IMPORT.match(line):
            return "\n".join(lines[start:TOP_LINES]).rstrip()
    return ""
