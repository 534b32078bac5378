"""What of the project goes into a prompt: hits within a number of tokens, and a receipt.

Chooses among what `search` found; writes no prompt. Runs on the thread of who searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lcursor.index.records import Hit, Mode
from lcursor.index.search import Searcher

LIMIT = 30
LEAST_SHARE = 0.1
"""Of the best score: what is below is not worth its tokens."""
LEAST_TOKENS = 24
"""A piece with less room than this is left out rather than cut."""
MOST_OF_A_FILE = 0.6
"""Of the tokens, for further pieces of one file where others have been found."""
HEADER_TOKENS = 8
"""What a reader of hits writes around one: its path, a fence."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A hit that was not used, and why."""

    hit: Hit
    reason: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was used of what was found."""

    used: tuple[Hit, ...]
    """The best first; of the last one perhaps only the beginning."""
    left_out: tuple[LeftOut, ...]
    tokens: int
    """Of the texts of `used`, with what stands around them."""


def retrieve(
    searcher: Searcher,
    text: str,
    *,
    tokens: int,
    count: Callable[[str], int],
    mode: Mode = "hybrid",
    recent: Sequence[str] = (),
    overlay: Mapping[str, str] | None = None,
    is_stale: Callable[[str], bool] | None = None,
    seen: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    limit: int = LIMIT,
    is_code: bool = False,
) -> Receipt:
    """Return what of the project helps with a text, within a number of tokens.

    Args:
        searcher: asked once.
        text: a question, or code.
        tokens: most.
        count: returns how many a text has.
        mode: which lists are asked.
        recent: paths of what was looked at, newest first.
        overlay: texts of unsaved buffers by path.
        is_stale: tells whether a file has changed since it was read.
        seen: rows that the prompt has already, first and end, by path.
        limit: most hits.
        is_code: whether the text is code: then no filters are in it.
    """
    hits = searcher.search(
        text,
        limit=limit,
        mode=mode,
        recent=recent,
        overlay=overlay,
        is_stale=is_stale,
        has_filters=not is_code,
    )
    return choose(hits, tokens=tokens, count=count, seen=seen or {})


def choose(
    hits: Sequence[Hit],
    *,
    tokens: int,
    count: Callable[[str], int],
    seen: Mapping[str, Sequence[tuple[int, int]]],
) -> Receipt:
    """Return which hits are used within a number of tokens; they come the best first."""
    used: list[Hit] = []
    left_out: list[LeftOut] = []
    spent: dict[str, int] = {}
    total = 0
    files = len({hit.path for hit in hits})
    least = hits[0].score * LEAST_SHARE if hits else 0.0
    for hit in hits:
        reason = ""
        size = count(hit.text) + HEADER_TOKENS
        room = tokens - total
        if files > 1 and hit.path in spent:
            room = min(room, int(tokens * MOST_OF_A_FILE) - spent[hit.path])
        if hit.score < least:
            reason = "far less like it than the best"
        elif _is_in(hit, seen.get(hit.path, ())):
            reason = "in the prompt already"
        elif _is_in(hit, [(one.first_row, one.end_row) for one in used if one.path == hit.path]):
            reason = "part of what is used"
        elif size > room:
            whole = hit
            hit = _cut(hit, room - HEADER_TOKENS, count)
            if not hit.text:
                is_full = room == tokens - total
                reason = "no room left" if is_full else "enough of its file is used"
                hit = whole
            size = count(hit.text) + HEADER_TOKENS
        if reason:
            left_out.append(LeftOut(hit, reason))
            continue
        used.append(hit)
        total += size
        spent[hit.path] = spent.get(hit.path, 0) + size
    return Receipt(tuple(used), tuple(left_out), total)


def _is_in(hit: Hit, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= hit.first_row and hit.end_row <= end for first, end in ranges)


def _cut(hit: Hit, room: int, count: Callable[[str], int]) -> Hit:
    """Return the first lines of a hit that fit; none where too little would be left."""
    from dataclasses import replace

    if room < LEAST_TOKENS:
        return replace(hit, text="")
    lines = hit.text.split("\n")
    few, many = 0, len(lines)
    while few < many:  # the most lines that fit
        middle = (few + many + 1) // 2
        if count("\n".join(lines[:middle])) <= room:
            few = middle
        else:
            many = middle - 1
    return replace(hit, text="\n".join(lines[:few]), end_row=hit.first_row + few)
