"""Find the text that an edit replaces. Pure.

Only exact text, and lines that differ in indentation, trailing blanks or blank lines, are replaced,
and only if there is one match. Everything else is a problem with the nearest lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from lcursor.changes.apply import match, similar
from lcursor.changes.apply.match import Several

MAX_LISTED: Final = 20
MAX_COMPARED: Final = 5_000
"""Maximum number of lines that a quote is compared with for similarity."""
MIN_RATIO: Final = 0.6
MIN_CHARS: Final = 8
"""Shorter new texts may be in the file by chance."""
AROUND_ROWS: Final = 3
_NUMBER: Final = re.compile(r"^\s*\d+\t")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Rows of a text and the lines that replace them."""

    first_row: int
    last_row: int
    new: tuple[str, ...]
    note: str = ""
    """How the match differs from the quote."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing was replaced, and the rows that help."""

    text: str
    first_row: int = 0
    last_row: int = 0


def find(lines: Sequence[str], old: str, new: str) -> Replacement | Problem:
    """Return the replacement of a quoted text by another one.

    Cost: below a millisecond for an exact quote; for one that is nowhere see `match.find`.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        return Problem("old_str is empty; use insert, or create for a new file")
    if old == new:
        return Problem("old_str and new_str are equal, so nothing would change")
    body = "".join(f"{line}\n" for line in lines)
    note = ""
    if old not in body:
        bare_old, bare_new = without_numbers(old), without_numbers(new)
        if bare_old is not None:
            old, new = bare_old, new if bare_new is None else bare_new
            note = "the line numbers in old_str were ignored"
    count = body.count(old)
    if count == 1:
        return _exact(body, old, new, note)
    if count > 1:
        return _several(f"old_str is in the file {count} times", _rows_of(body, old))
    replacement = _tolerant(lines, old, new, note)
    if isinstance(replacement, Problem) and len(new.strip()) >= MIN_CHARS and new in body:
        row = _rows_of(body, new)[0]
        return Problem(
            f"old_str is not in the file, but new_str is, at line {row + 1}: "
            "the change seems to be made already",
            row,
            row + len(new.splitlines()),
        )
    return replacement


def without_numbers(text: str) -> str | None:
    """Return a text without the line numbers of a view; None if not all its lines have one."""
    lines = text.split("\n")
    bare = [_NUMBER.sub("", line, count=1) for line in lines]
    if any(line == without for line, without in zip(lines, bare, strict=True) if line.strip()):
        return None
    return "\n".join(bare) if text.strip() else None


def _exact(body: str, old: str, new: str, note: str) -> Replacement:
    start_index = body.index(old)
    first = body.count("\n", 0, start_index)
    start = body.rfind("\n", 0, start_index) + 1
    stop = start_index + len(old)
    if stop > start and body[stop - 1] == "\n":  # only whole lines at the end
        end, tail = stop, ""
    else:
        end = body.index("\n", stop) + 1
        tail = body[stop:end]
    made = body[start:start_index] + new + tail
    if made.endswith("\n"):
        made = made[:-1]
        rows = made.split("\n")
    else:
        rows = made.split("\n") if made else []
    return Replacement(first, first + body.count("\n", start, end), tuple(rows), note)


def _rows_of(body: str, text: str) -> list[int]:
    rows, at = list[int](), body.find(text)
    while at >= 0 and len(rows) <= MAX_LISTED:
        rows.append(body.count("\n", 0, at))
        at = body.find(text, at + len(text))
    return rows


def _several(why: str, rows: Sequence[int]) -> Problem:
    listed = ", ".join(str(row + 1) for row in rows[:MAX_LISTED])
    more = " and others" if len(rows) > MAX_LISTED else ""
    return Problem(f"{why}, at the lines {listed}{more}; quote more lines around the right one")


def _tolerant(lines: Sequence[str], old: str, new: str, note: str) -> Replacement | Problem:
    wanted = old.removesuffix("\n").split("\n")
    matched = match.find(lines, wanted, new.removesuffix("\n").split("\n") if new else [])
    if isinstance(matched, Several):
        if len(matched.matches) > 1:
            return _several(matched.why, [one.first_row for one in matched.matches])
        (one,) = matched.matches
        return _nearest(one.first_row, one.last_row, matched.why)
    if matched is None:
        span = _similar(lines, wanted)
        if span is None:
            return Problem("old_str is not in the file, and no line is similar; view the file")
        return _nearest(*span, "")
    if matched.tier not in ("exact", "whitespace"):
        return _nearest(matched.first_row, matched.last_row, "")
    blanks = "it was found with other blanks or indentation"
    return Replacement(matched.first_row, matched.last_row, matched.new,
                       "; ".join(filter(None, (note, blanks))))  # fmt: skip


def _nearest(first: int, last: int, why: str) -> Problem:
    text = f"old_str is not in the file as quoted{why and f': {why}'}; the nearest lines:"
    return Problem(text, first, last)


def _similar(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """Return the rows most like some lines."""
    if aligned := similar.align(lines, wanted):
        return aligned[0].first_row, aligned[0].last_row
    quote = max((line.strip() for line in wanted), key=len)
    texts = [line.strip() for line in lines[:MAX_COMPARED]]
    near = get_close_matches(quote, dict.fromkeys(texts), 1, MIN_RATIO) if quote else []
    if not near:
        return None
    row = texts.index(near[0])
    return max(row - AROUND_ROWS, 0), min(row + AROUND_ROWS + 1, len(lines))
