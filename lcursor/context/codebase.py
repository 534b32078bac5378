"""Finding what of a project has to do with a question: the protocol, and a plain search behind it.

The plain search asks git, then ripgrep, else reads the files itself; it needs no index and keeps
nothing. Blocks; any thread. The index answers in indexed.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from lcursor.context import grep
from lcursor.context.items import Definition, Piece, Receipt
from lcursor.index import chunk, words
from lcursor.process.run import Cancel
from lcursor.project import filetypes
from lcursor.project.reading import Reader

CHARACTERS_PER_TOKEN = 3.2
MOST_S = 5.0
MOST_FILES = 24
"""From which rows are taken."""
SHARE_OF_FILE = 0.3
"""Of its file's score, that a piece has besides its own."""
MOST_OF_A_FILE = 0.5
"""Of the tokens, for further pieces of one file where others have been found."""
MOST_DEFINING = 40
"""Files that are parsed for a definition."""


class Codebase(Protocol):
    """What knows a project."""

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> Receipt:
        """Return what has to do with a text, within a number of tokens. Never fails."""

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[Definition]:
        """Return the definitions of a name, or of names that begin so, the likeliest first."""


class Grep:
    """A plain search by words.

    Args:
        root: of the project.
        secrets: globs that the user calls secret.
    """

    def __init__(self, root: Path, secrets: Sequence[str] = ()) -> None:
        self._root = Path(os.path.realpath(root))
        self._secrets = tuple(secrets)

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> Receipt:
        """Return the rows in which most of a text's words stand; the rarest words count most."""
        words = grep.words_of(text)
        if not words:
            return Receipt(note="there is no word to look for in the question")
        reader = Reader(self._root, self._secrets, cancel=cancel, max_s=MOST_S)
        rows, more = grep.search(self._root, words, reader)
        pieces: list[Piece] = []
        weight = grep.weights(rows, words)
        for path, of_file, matches in grep.best(rows, words)[:MOST_FILES]:
            found = reader.read(self._root / path)
            if not found.text or _is_skipped(path, found.text):
                continue
            lines = found.text.split("\n")
            for first, end, there in grep.windows(path, lines, matches, words):
                why = f"{', '.join(grep.as_asked(word, text) for word in there)} in it"
                part = "\n".join(lines[first:end])
                own = grep.score(lines[first:end], words, weight) * grep.worth(path)
                score = own * (len(there) / len(words)) ** 0.5 + SHARE_OF_FILE * of_file
                pieces.append(Piece(path, first, end, part, why, "", score))
        pieces.sort(key=lambda piece: (-piece.score, piece.path, piece.first_row))
        used, left_out, total = [], [], 0
        spent: dict[str, int] = {}
        several = len({piece.path for piece in pieces}) > 1
        for piece in pieces:
            cost = int(len(piece.text) / CHARACTERS_PER_TOKEN) + 9
            of_it = spent.get(piece.path, 0) + cost
            why = "no room left" if total + cost > tokens else ""
            if not why and several and cost < of_it > MOST_OF_A_FILE * tokens:
                why = "enough of its file is used"
            if why:
                where = (piece.path, piece.first_row, piece.end_row)
                left_out.append(Piece(*where, "", why, "", piece.score))
                continue
            used.append(piece)
            spent[piece.path] = of_it
            total += cost
        note = "found by words alone: the project is not indexed"
        note = f"{note}; {more}" if more else note
        return Receipt(tuple(used), tuple(left_out), total, note)

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> list[Definition]:
        """Return definitions in the files that have the name in them."""
        last = words.last_name(name)
        if not last:
            return []
        reader = Reader(self._root, self._secrets, cancel=cancel, max_s=MOST_S)
        rows, _ = grep.search(
            self._root, [last], reader, is_whole=not prefix, keeps_case=not prefix
        )
        found: list[Definition] = []
        for path in grep.likely_defining(rows, last)[:MOST_DEFINING]:
            read = reader.read(self._root / path)
            if not read.text or _is_skipped(path, read.text):
                continue
            for symbol in chunk.read(path, read.text).symbols:
                is_begun = prefix and symbol.name.lower().startswith(last.lower())
                if symbol.name == last or is_begun:
                    there = (symbol.first_row, symbol.end_row)
                    found.append(Definition(path, symbol.name, symbol.kind, *there, symbol.scope))
        found.sort(key=lambda one: (len(one.name), one.path, one.first_row))
        return meant(found, name)[:limit]


def meant(found: Sequence[Definition], name: str) -> list[Definition]:
    """Return the definitions that a qualified name means: those in its scope, else in its file.

    `Turn.stop` is not the `stop` of another class; where no scope fits, all are returned.
    """
    around = [part.lower() for part in words.scope_names(name)]
    if not around:
        return list(found)
    scopes = [set(one.scope.lower().split(" > ")) for one in found]
    fits = [one for one, scope in zip(found, scopes, strict=True) if scope.issuperset(around)]
    if not fits:
        places = [f"{one.path} {one.scope}".lower() for one in found]
        fits = [
            one
            for one, there in zip(found, places, strict=True)
            if all(part in there for part in around)
        ]
    return fits or list(found)


def _is_skipped(path: str, text: str) -> bool:
    """Return whether a file says nothing about a project: a lock file, something minified."""
    return bool(
        filetypes.by_name(path, len(text)) or filetypes.by_content(text.encode("utf-8", "replace"))
    )
