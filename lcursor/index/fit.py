"""Choose the hits of a search that fit into a prompt, in a number of tokens. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lcursor.code import estimate
from lcursor.index.rank import penalties
from lcursor.index.records import Hit

MIN_SCORE = 0.1
"""Hits with a smaller share of the best score are not worth their tokens."""
MIN_TOKENS = 24
"""Minimum size of a truncated hit; smaller ones are left out."""
MAX_FILE_SHARE = 0.6
"""Maximum share of the tokens for one file, if there are hits in others."""
HEADER_TOKENS = 8
"""Tokens of the path and the fence of a hit in a prompt."""


class Fitting(NamedTuple):
    """The hits for a prompt."""

    used: list[Hit]
    """Used hits: the best one in code, then the others, best first; some may be truncated."""
    left_out: list[tuple[Hit, str]]
    """The other hits, each with the reason."""
    tokens: int
    """Tokens of `used`, including headers."""


def choose(hits: Sequence[Hit], tokens: int) -> Fitting:
    """Return the hits that fit into a number of tokens.

    The best hit in code is first, so that documents and tests never take its tokens.
    """
    used: list[Hit] = []
    left_out: list[tuple[Hit, str]] = []
    spent: dict[str, int] = {}
    total = 0
    has_several_files = len({hit.path for hit in hits}) > 1
    min_score = hits[0].score * MIN_SCORE if hits else 0.0
    best = next((hit for hit in hits if not penalties(hit.path)), None)
    for hit in sorted(hits, key=lambda hit: hit is not best):
        size = estimate.tokens(hit.text) + HEADER_TOKENS
        room = tokens - total
        if has_several_files and hit.path in spent:
            room = min(room, int(tokens * MAX_FILE_SHARE) - spent[hit.path])
        if hit.score < min_score:
            left_out.append((hit, "score far below the best"))
            continue
        if any(_contains(one, hit) for one in used):
            left_out.append((hit, "part of another hit"))
            continue
        part = hit if size <= room else _cut(hit, room - HEADER_TOKENS)
        if part is None:
            is_full = room == tokens - total
            left_out.append(
                (hit, "token limit reached" if is_full else "limit for one file reached")
            )
            continue
        used.append(part)
        size = estimate.tokens(part.text) + HEADER_TOKENS
        total += size
        spent[hit.path] = spent.get(hit.path, 0) + size
    return Fitting(used, left_out, total)


def _contains(outer: Hit, hit: Hit) -> bool:
    """Return whether a hit has the lines of another one; an outline lacks some of its lines."""
    is_whole = outer.text.count("\n") + 1 >= outer.end_row - outer.first_row
    is_inside = outer.first_row <= hit.first_row and hit.end_row <= outer.end_row
    return is_whole and outer.path == hit.path and is_inside


def _cut(hit: Hit, tokens: int) -> Hit | None:
    """Return the first lines of a hit that fit; None if they are too few."""
    if tokens < MIN_TOKENS:
        return None
    lines = hit.text.split("\n")
    sizes = range(len(lines) + 1)
    fitting = (
        bisect_right(sizes, tokens, key=lambda size: estimate.tokens("\n".join(lines[:size]))) - 1
    )
    text = "\n".join(lines[:fitting])
    return replace(hit, text=text, end_row=hit.first_row + fitting) if text else None
