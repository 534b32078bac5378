"""Search a project for code relevant to a question, with its index or, without one, by words.

Blocks; any thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from lcursor.context import grep
from lcursor.context.items import SearchHit, SearchResult, SymbolLocation
from lcursor.errors import Cancelled, LcursorError
from lcursor.index import chunk, words
from lcursor.index.client import Client
from lcursor.index.fit import choose
from lcursor.index.records import Hit, hit_of
from lcursor.process.run import Cancel
from lcursor.project import filetypes
from lcursor.project.reading import Reader

MAX_S = 5.0
MAX_FILES = 24
"""Maximum number of files with hits."""
FILE_SHARE = 0.3
"""Share of a file's score that is added to the score of each hit."""
MAX_PARSED = 40
"""Maximum number of files that are parsed to find a definition."""
ANSWER_S = 8.0
REASONS = {
    "lexical": "matching words",
    "vector": "similar meaning",
    "symbol": "a named definition",
    "recent": "viewed recently",
}
"""Components of the index's score that explain a hit; the others are adjustments."""
MIN_REASON_SHARE = 0.1
"""Minimum share of the largest component for a component to be named."""


class Codebase(Protocol):
    """Searches a project."""

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        """Return code relevant to a text, within a number of tokens. Never fails."""

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[SymbolLocation]:
        """Return the definitions of a name, or of names with that prefix, likeliest first."""


class GrepSearch:
    """Searches by words."""

    def __init__(self, root: Path, secrets: Sequence[str] = ()) -> None:
        self._root = Path(os.path.realpath(root))
        self._secrets = tuple(secrets)

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        """Return the lines with the most words of a text; rare words have more weight."""
        wanted = grep.words_of(text)
        if not wanted:
            return SearchResult(note="the question has no words to search for")
        reader = Reader(self._root, self._secrets, cancel=cancel, max_s=MAX_S)
        rows, more = grep.search(self._root, wanted, reader)
        hits: list[Hit] = []
        reasons: dict[tuple[str, int], str] = {}
        weight = grep.weights(rows, wanted)
        for path, file_score, matches in grep.best(rows, wanted)[:MAX_FILES]:
            found = reader.read(self._root / path)
            if not found.text or _is_skipped(path, found.text):
                continue
            lines = found.text.split("\n")
            for first, end, matched in grep.windows(path, lines, matches, wanted):
                why = f"contains {', '.join(grep.full_word(word, text) for word in matched)}"
                own = grep.score(lines[first:end], wanted, weight) * grep.worth(path)
                score = own * (len(matched) / len(wanted)) ** 0.5 + FILE_SHARE * file_score
                part = "\n".join(lines[first:end])
                hits.append(Hit(path, first, end, "", "", part, score))
                reasons[path, first] = why
        hits.sort(key=lambda hit: (-hit.score, hit.path, hit.first_row))
        note = "full-text search only: the project is not indexed"
        fitting = choose(hits, tokens)
        return SearchResult(
            tuple(_search_hit(hit, reasons[hit.path, hit.first_row]) for hit in fitting.used),
            tuple(_search_hit(replace(hit, text=""), why) for hit, why in fitting.left_out),
            fitting.tokens,
            f"{note}; {more}" if more else note,
        )

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> list[SymbolLocation]:
        """Return definitions in the files that contain the name."""
        last = words.last_name(name)
        if not last:
            return []
        reader = Reader(self._root, self._secrets, cancel=cancel, max_s=MAX_S)
        rows, _ = grep.search(
            self._root, [last], reader, is_whole=not prefix, keeps_case=not prefix
        )
        found: list[SymbolLocation] = []
        for path in grep.likely_defining(rows, last)[:MAX_PARSED]:
            read = reader.read(self._root / path)
            if not read.text or _is_skipped(path, read.text):
                continue
            for symbol in chunk.read(path, read.text).symbols:
                has_prefix = prefix and symbol.name.lower().startswith(last.lower())
                if symbol.name == last or has_prefix:
                    span = (symbol.first_row, symbol.end_row)
                    found.append(
                        SymbolLocation(path, symbol.name, symbol.kind, *span, symbol.scope)
                    )
        found.sort(key=lambda one: (len(one.name), one.path, one.first_row))
        return filter_by_scope(found, name)[:limit]


class IndexSearch:
    """Searches the index, or with a fallback while the index does not answer.

    Args:
        client: of the project's worker; several searches may share it.
    """

    def __init__(self, client: Client, fallback: Codebase) -> None:
        self._client, self._fallback = client, fallback

    @classmethod
    def open(cls, root: Path, *, start: bool = False, secrets: Sequence[str] = ()) -> IndexSearch:
        """Return the search of a project for the command line."""
        client = Client(root, start=start)
        if secrets:
            client.notify("secrets", globs=list(secrets))
        return cls(client, GrepSearch(root, secrets))

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        """Return the index's hits, else the fallback's hits with the reason."""
        try:
            found = self._call(cancel, "retrieve", text=text, tokens=tokens, mode="hybrid")
            note = self._progress_note(cancel)
        except Cancelled:
            raise
        except LcursorError as error:
            result = self._fallback.find(text, tokens, cancel)
            note = f"full-text search only: {error.message}"
            return SearchResult(result.hits, result.omitted, result.tokens, note)
        hits = tuple(_search_hit(hit, _reason(hit)) for hit in map(hit_of, found["used"]))
        omitted = tuple(_search_hit(hit_of(row), row["reason"]) for row in found["left_out"])
        return SearchResult(hits, omitted, found["tokens"], note)

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[SymbolLocation]:
        """Return the definitions in the index, else the fallback's definitions."""
        last = words.last_name(name)
        try:
            answer = self._call(cancel, "symbols", name=last, limit=limit * 4, prefix=prefix)
        except Cancelled:
            raise
        except LcursorError:
            return self._fallback.symbols(name, limit, prefix=prefix, cancel=cancel)
        fields = ("path", "name", "kind", "first_row", "end_row", "scope")
        found = [SymbolLocation(*(one[field] for field in fields)) for one in answer["symbols"]]
        return filter_by_scope(found, name)[:limit]

    def overlay(self, path: str, text: str | None) -> None:
        """Search a text instead of a file of the project, until it is None."""
        self._client.notify("buffer", path=path, text=text)

    def _call(self, cancel: Cancel | None, method: Any, **params: Any) -> Mapping[str, Any]:
        return self._client.call(method, timeout_s=ANSWER_S, cancel=cancel, **params)

    def _progress_note(self, cancel: Cancel | None) -> str:
        """Return a note if the index is still incomplete."""
        state = self._call(cancel, "status")
        phase, done, total = state.get("phase"), state.get("done", 0), state.get("total", 0)
        if phase in {"surveying", "reading"}:
            return f"only {done} of {total} files are indexed yet"
        if phase == "embedding":
            return f"only {done} of {total} chunks are embedded yet"
        return ""


def filter_by_scope(found: Sequence[SymbolLocation], name: str) -> list[SymbolLocation]:
    """Return the definitions in the scope of a qualified name such as `Turn.stop`.

    If there are none, return the definitions in its file, else all.
    """
    scope = [part.lower() for part in words.scope_names(name)]
    if not scope:
        return list(found)
    fits = [one for one in found if set(one.scope.lower().split(" > ")).issuperset(scope)]
    if not fits:
        fits = [
            one for one in found if all(part in f"{one.path} {one.scope}".lower() for part in scope)
        ]
    return fits or list(found)


def _is_skipped(path: str, text: str) -> bool:
    """Return whether a file is generated, such as a lock file or minified code."""
    return bool(
        filetypes.by_name(path, len(text)) or filetypes.by_content(text.encode("utf-8", "replace"))
    )


def _search_hit(hit: Hit, why: str) -> SearchHit:
    return SearchHit(
        hit.path, hit.first_row, hit.end_row, hit.text, why, hit.scope, score=hit.score
    )


def _reason(hit: Hit) -> str:
    """Return the components of a score as text, the largest first."""
    parts = {name: value for name, value in hit.parts.items() if name in REASONS}
    largest = max(parts.values(), default=0.0)
    named = sorted(
        (name for name, value in parts.items() if value > MIN_REASON_SHARE * largest),
        key=lambda name: -parts[name],
    )
    why = ", ".join(REASONS[name] for name in named) or "like the question"
    return f"{why}; the file has changed since" if hit.is_stale else why
