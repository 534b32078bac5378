"""Choose the context of a prompt: search hits within a token limit, or for a completion.

`choose` is for questions. `find_around` is for completions, whose prompts are short: of definitions
it returns only signatures. On the search thread.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lcursor.code.headers import signature_end
from lcursor.index import words
from lcursor.index.reader import Reader
from lcursor.index.records import Hit, StoredSymbol
from lcursor.index.search import Searcher

MAX_HITS = 30
MIN_SCORE = 0.1
"""Hits with a smaller share of the best score are not worth their tokens."""
MIN_TOKENS = 24
"""Minimum size of a truncated hit; smaller ones are left out."""
MAX_FILE_SHARE = 0.6
"""Maximum share of the tokens for one file, if there are hits in others."""
HEADER_TOKENS = 8
"""Tokens of the path and the fence of a hit in a prompt."""

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


class Retrieved(NamedTuple):
    """The hits for a prompt."""

    used: list[Hit]
    """Used hits, best first; the last one may be truncated."""
    left_out: list[tuple[Hit, str]]
    """The other hits, each with the reason."""
    tokens: int
    """Tokens of `used`, including headers."""


def choose(hits: Sequence[Hit], *, tokens: int, count: Callable[[str], int]) -> Retrieved:
    """Return the hits that fit into a number of tokens, best first."""
    used: list[Hit] = []
    left_out: list[tuple[Hit, str]] = []
    spent: dict[str, int] = {}
    total = 0
    has_several_files = len({hit.path for hit in hits}) > 1
    min_score = hits[0].score * MIN_SCORE if hits else 0.0
    for hit in hits:
        size = count(hit.text) + HEADER_TOKENS
        room = tokens - total
        if has_several_files and hit.path in spent:
            room = min(room, int(tokens * MAX_FILE_SHARE) - spent[hit.path])
        if hit.score < min_score:
            left_out.append((hit, "score far below the best"))
            continue
        if any(_contains(one, hit) for one in used):
            left_out.append((hit, "part of another hit"))
            continue
        part = hit if size <= room else _cut(hit, room - HEADER_TOKENS, count)
        if part is None:
            is_full = room == tokens - total
            left_out.append(
                (hit, "token limit reached" if is_full else "limit for one file reached")
            )
            continue
        used.append(part)
        size = count(part.text) + HEADER_TOKENS
        total += size
        spent[hit.path] = spent.get(hit.path, 0) + size
    return Retrieved(used, left_out, total)


def _contains(outer: Hit, hit: Hit) -> bool:
    is_inside = outer.first_row <= hit.first_row and hit.end_row <= outer.end_row
    return outer.path == hit.path and is_inside


def _cut(hit: Hit, tokens: int, count: Callable[[str], int]) -> Hit | None:
    """Return the first lines of a hit that fit; None if they are too few."""
    if tokens < MIN_TOKENS:
        return None
    lines = hit.text.split("\n")
    sizes = range(len(lines) + 1)
    fitting = bisect_right(sizes, tokens, key=lambda size: count("\n".join(lines[:size]))) - 1
    text = "\n".join(lines[:fitting])
    return replace(hit, text=text, end_row=hit.first_row + fitting) if text else None


# Around a cursor


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


def find_definitions(reader: Reader, path: str, names: Iterable[str]) -> list[Hit]:
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


def _signature(reader: Reader, one: StoredSymbol) -> list[str]:
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
