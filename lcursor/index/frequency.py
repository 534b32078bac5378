"""How common words are, and which words of a question are worth looking for.

BM25 is reckoned for each chunk that has a word of the question: `self` alone is in half of them and
says nothing. So the rarest words find the candidates. Used by one reader, under its lock.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence

FLAT = re.compile(r'"\w+"(?: OR "\w+")*')
TERM = re.compile(r'"(\w+)"')
COMMON = 0.2
"""A word of more than this share of the chunks finds nothing by itself…"""
MOST_ROWS = 4000
"""…and the rarest words are looked for until so many chunks have one of them."""
FEW_CHUNKS = 10_000
"""With fewer chunks than this every word is looked for."""
KNOWN_WORDS = 20_000
NEWS = 0.1
"""Share of new chunks after which words are counted again."""

TABLE = "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, words, row)"


class Frequencies:
    """In how many chunks words are, about."""

    def __init__(self) -> None:
        self.chunks = 0
        self._newest = -1
        self._known: dict[str, int] = {}

    def of(self, base: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
        """Return the number of chunks that each word is in; as of a moment ago."""
        self._look(base)
        if len(self._known) > KNOWN_WORDS:
            self._known.clear()
        new = [term for term in terms if term not in self._known]
        if new:
            self._known.update(dict.fromkeys(new, 0))
            self._known.update(
                base.execute(
                    "SELECT term, doc FROM temp.vocabulary "
                    "WHERE term IN (SELECT value FROM json_each(?))",
                    (json.dumps(new),),
                )
            )
        return {term: self._known[term] for term in terms}

    def rarer(self, base: sqlite3.Connection, match: str) -> str:
        """Return a question without its common words, where it has others."""
        if not FLAT.fullmatch(match):
            return match
        self._look(base)
        if self.chunks < FEW_CHUNKS:
            return match
        having = self.of(base, TERM.findall(match))
        kept, rows = [], 0
        for term in sorted(having, key=having.__getitem__):
            many = having[term]
            if rows and (many > self.chunks * COMMON or rows + many > MOST_ROWS):
                break
            kept.append(term)
            rows += many
        return " OR ".join(f'"{term}"' for term in kept)

    def _look(self, base: sqlite3.Connection) -> None:
        """Forget how common words were once much is new."""
        newest = base.execute("SELECT max(id) FROM chunks").fetchone()[0] or 0
        if self._newest < 0 or abs(newest - self._newest) > self.chunks * NEWS:
            (self.chunks,) = base.execute("SELECT count(*) FROM chunks").fetchone()
            self._newest = newest
            self._known.clear()
