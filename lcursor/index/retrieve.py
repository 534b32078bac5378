"""Find code that is relevant at a cursor, for completions. On the search thread.

Their prompts are short: of definitions it returns only signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lcursor.code.headers import signature_end
from lcursor.index import words
from lcursor.index.reader import IndexReader
from lcursor.index.records import Hit, StoredSymbol
from lcursor.index.search import Searcher

LINES_BEFORE, LINES_AFTER = 14, 4
"""Lines around the cursor whose names are looked up."""
SIMILAR_LINES = 6
"""Lines before the cursor for which similar code is searched."""
MAX_SIMILAR = 4
MAX_NAMES = 24
MIN_NAME_CHARS = 3
MAX_DEFINITIONS = 2
"""A name with more definitions is ambiguous and left out."""
SIGNATURE_LINES = 8
CLASS_LINES = 12
CONTAINERS = frozenset({"class", "interface", "struct", "trait", "enum", "object", "module"})
"""Kinds for which the outline is returned."""

_NAME = re.compile(r"[^\W\d]\w*")


def find_around(
    searcher: Searcher,
    path: str,
    before: str,
    after: str,
    *,
    recent: Sequence[str] = (),
    overlay: Mapping[str, str] | None = None,
) -> list[Hit]:
    """Return hits for the code around a cursor: definitions first, then similar code.

    The file with the cursor is excluded. Takes about a millisecond for the names, and one lexical
    search.
    """
    near = before.split("\n")[-LINES_BEFORE:]
    names = names_near(near, after.split("\n")[:LINES_AFTER])
    hits = find_definitions(searcher.reader, path, names)
    similar = searcher.search(
        "\n".join(near[-SIMILAR_LINES:]),
        limit=MAX_SIMILAR * 2,
        mode="lexical",
        recent=recent,
        overlay=overlay,
        has_filters=False,
    )
    return hits + [hit for hit in similar if hit.path != path][:MAX_SIMILAR]


def names_near(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the names in some lines, each once, nearest to the cursor first."""
    found = [name for line in reversed(before) for name in reversed(_NAME.findall(line))]
    found += [name for line in after for name in _NAME.findall(line)]
    unique = dict.fromkeys(name for name in found if len(name) >= MIN_NAME_CHARS)
    ignored = words.STOP | words.DULL
    return [name for name in unique if name.lower() not in ignored][:MAX_NAMES]


def find_definitions(reader: IndexReader, path: str, names: Iterable[str]) -> list[Hit]:
    """Return the signatures of the definitions of names, one hit per file, nearest name first."""
    by_path: dict[str, list[tuple[StoredSymbol, list[str]]]] = {}
    for name in names:
        found = [one for one in reader.symbols(name, MAX_DEFINITIONS + 2) if one.name == name]
        if len(found) > MAX_DEFINITIONS or any(one.path == path for one in found):
            continue
        for one in found:
            lines = _signature(reader, one)
            if lines:
                by_path.setdefault(one.path, []).append((one, lines))
    return [_hit(found) for found in by_path.values()]


def _hit(found: list[tuple[StoredSymbol, list[str]]]) -> Hit:
    found.sort(key=lambda each: each[0].first_row)
    first, (last, last_lines) = found[0][0], found[-1]
    return Hit(
        path=first.path,
        first_row=first.first_row,
        end_row=last.first_row + len(last_lines),
        scope=first.scope,
        language=first.language,
        text="\n".join(line for _, lines in found for line in lines),
        score=1.0,
        parts={"head": 1.0},
    )


def _signature(reader: IndexReader, one: StoredSymbol) -> list[str]:
    """Return the signature of a definition, or the outline of a class."""
    row = one.first_row
    chunks = reader.chunks_at(one.path, row)
    if one.kind in CONTAINERS:
        for chunk in chunks:
            if chunk.kind == "outline" and chunk.first_row == row:
                return chunk.text.split("\n")[:CLASS_LINES]
    for chunk in chunks:
        if chunk.kind != "outline":
            lines = chunk.text.split("\n")[row - chunk.first_row :]
            lines = lines[: max(one.end_row - row, 1)]
            return lines[: signature_end(lines, 0, SIGNATURE_LINES)]
    return []
