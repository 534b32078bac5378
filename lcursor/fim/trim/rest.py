"""Handles suggestions that repeat the text right of the cursor: insert before it, or replace it.

Editors insert closing brackets and quotes there on their own, and a model may generate them again
and continue behind them: `a, b) -> int:` before `)`. Inserted as it is, that would double the
bracket.
"""

from __future__ import annotations

from lcursor.fim.trim import syntax
from lcursor.fim.trim.cursor import CursorContext
from lcursor.fim.trim.syntax import CLOSER, OPENER

MIN_LETTERS = 3
"""A rest with fewer letters may be repeated by chance."""


def cut_or_replace(text: str, cursor: CursorContext) -> tuple[str, int]:
    """Return what to insert of a finished text, and how many bytes right of the cursor it replaces.

    The text replaces the whole rest of the line or nothing.
    """
    tail = cursor.rest.strip()
    if not tail:
        return text, 0
    text = text.rstrip()
    at = len(text) - len(tail)
    if text.endswith(tail) and not _closes_own(text[:at], tail[0]):
        return text[:at], 0
    if "\n" in text:
        return text, 0
    if cursor.single_line and continues_past_rest(text, cursor):
        return text, len(cursor.rest.encode("utf-8", "surrogateescape"))
    return _without_part(text, tail), 0


def continues_past_rest(text: str, cursor: CursorContext) -> bool:
    """Whether a line repeats the rest and continues behind it.

    The rest must be repeated exactly, or the ghost text would differ from what is inserted. A text
    with balanced brackets and quotes is an insertion: `a) + (b` before `)`.
    """
    rest = cursor.rest
    if not rest or rest != rest.rstrip():
        return False
    at = text.find(rest)
    while at >= 0 and _closes_own(text[:at], rest.lstrip()[0]):
        at = text.find(rest, at + 1)
    if at < 0 or not text[at + len(rest) :].strip():
        return False
    closers = syntax.unopened(_marks(rest))
    if closers:
        return _surplus(text, closers[0][1]) > 0
    quotes = [char for char in rest if char in "\"'`"]
    if quotes:
        return text.count(quotes[0]) % 2 == 1
    return sum(char.isalnum() for char in rest) >= MIN_LETTERS


def held_back(text: str, cursor: CursorContext) -> str:
    """Remove from an unfinished line what may be a repetition of the rest, and all behind it."""
    tail = cursor.rest.strip()
    if not tail:
        return text
    text = text.rstrip()  # as it will be when it is finished
    closers = {char for char in tail if char in OPENER}
    for at, char in enumerate(text):
        is_rest = tail.startswith(text[at : at + len(tail)])
        if (is_rest or char in closers) and not _closes_own(text[:at], char):
            return text[:at]
    return text


def _without_part(text: str, tail: str) -> str:
    """Cut an end that repeats the beginning of the rest, or a bracket that the rest has."""
    closers = {char for char in tail if char in OPENER}
    for at, char in enumerate(text):
        if char in closers and not _closes_own(text[:at], char) and _surplus(text, char) > 0:
            return text[:at]
    for size in range(len(tail) - 1, 0, -1):
        part = tail[:size]
        is_part = text.endswith(part) and not any(char.isalnum() for char in part)
        if is_part and not _closes_own(text[:-size], part[0]):
            return text[:-size]
    return text


def _closes_own(before: str, char: str) -> bool:
    """Whether a closing bracket closes one that the text itself opened."""
    return char in OPENER and OPENER[char] in syntax.unclosed(_marks(before))


def _surplus(text: str, closer: str) -> int:
    return text.count(closer) - text.count(OPENER[closer])


def _marks(text: str) -> list[syntax.Mark]:
    return [(at, char) for at, char in enumerate(text) if char in CLOSER or char in OPENER]
