"""What the code at a cursor leans on: definitions of the names in use there, and pieces like it.

For completion, which has room for little: of a definition comes the head alone, those of one file
together. Runs on the thread of who searches; writes no prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from lcursor.code.headers import signature_end
from lcursor.index import words
from lcursor.index.reader import Reader
from lcursor.index.records import Hit, StoredSymbol
from lcursor.index.search import Searcher

LINES_BEFORE, LINES_AFTER = 14, 4
"""Lines at the cursor whose names are looked up."""
LIKE_LINES = 6
"""Lines before the cursor that pieces are to be like."""
MOST_NAMES = 24
MOST_HOMES = 2
"""A name that is defined in more places says nothing about which of them is meant."""
MOST_LIKE = 4
HEAD_LINES = 8
CLASS_LINES = 12
LEAST_NAME = 3
CONTAINERS = frozenset({"class", "interface", "struct", "trait", "enum", "object", "module"})
"""Kinds of which the outline is shown, not only the first lines."""

_NAME = re.compile(r"[^\W\d]\w*")


def around(
    searcher: Searcher,
    path: str,
    before: str,
    after: str,
    *,
    recent: Sequence[str] = (),
    overlay: Mapping[str, str] | None = None,
) -> list[Hit]:
    """Return what belongs to a place in the code: definitions first, then pieces like it.

    Args:
        searcher: of the project.
        path: of the file that the place is in; nothing of it is returned.
        before: the text up to the cursor, or its last lines.
        after: the text behind it, or its first lines.
        recent: paths of what was looked at, newest first.
        overlay: texts of unsaved buffers by path.

    Cost:
        About a millisecond for the names, and one lexical search.
    """
    near = before.split("\n")[-LINES_BEFORE:]
    names = used(near, after.split("\n")[:LINES_AFTER])
    hits = definitions(searcher.reader, path, names)
    like = "\n".join(near[-LIKE_LINES:])
    found = searcher.search(
        like,
        limit=MOST_LIKE * 2,
        mode="lexical",
        recent=recent,
        overlay=overlay,
        has_filters=False,
    )
    return hits + [hit for hit in found if hit.path != path][:MOST_LIKE]


def used(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the names in some lines, those nearest to the cursor first, each once."""
    nearest = [name for line in reversed(before) for name in reversed(_NAME.findall(line))]
    behind = [name for line in after for name in _NAME.findall(line)]
    names = [name for name in nearest + behind if len(name) >= LEAST_NAME]
    said = words.STOP | words.DULL
    return [name for name in dict.fromkeys(names) if name.lower() not in said][:MOST_NAMES]


def definitions(reader: Reader, path: str, names: Iterable[str]) -> list[Hit]:
    """Return the heads of what names mean, a hit for each file, the nearest name's first."""
    homes: dict[str, list[tuple[StoredSymbol, list[str]]]] = {}
    for name in names:
        found = [one for one in reader.symbols(name, MOST_HOMES + 2) if one.symbol.name == name]
        if len(found) > MOST_HOMES or any(one.path == path for one in found):
            continue
        for one in found:
            lines = _head(reader, one)
            if lines:
                homes.setdefault(one.path, []).append((one, lines))
    return [_hit(home) for home in homes.values()]


def _hit(found: list[tuple[StoredSymbol, list[str]]]) -> Hit:
    found.sort(key=lambda each: each[0].symbol.first_row)
    first, last = found[0][0], found[-1][0]
    text = "\n".join(line for _, lines in found for line in lines)
    return Hit(
        path=first.path,
        first_row=first.symbol.first_row,
        end_row=last.symbol.first_row + len(found[-1][1]),
        scope=first.symbol.scope,
        language=first.language,
        text=text,
        score=1.0,
        parts={"head": 1.0},
    )


def _head(reader: Reader, one: StoredSymbol) -> list[str]:
    """Return the lines of a definition that say how it is used."""
    row = one.symbol.first_row
    chunks = reader.chunks_at(one.path, row)
    if one.symbol.kind in CONTAINERS:
        for stored in chunks:
            if stored.chunk.kind == "outline" and stored.chunk.first_row == row:
                return stored.chunk.text.split("\n")[:CLASS_LINES]
    for stored in chunks:
        if stored.chunk.kind != "outline":
            lines = stored.chunk.text.split("\n")[row - stored.chunk.first_row :]
            lines = lines[: max(one.symbol.end_row - row, 1)]
            return lines[: signature_end(lines, 0, HEAD_LINES)]
    return []
