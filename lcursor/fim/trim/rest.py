"""Handle suggestions that repeat the text right of the cursor: insert before it, or replace it.

Editors insert closing brackets and quotes there automatically, and a model may generate them again
and continue after them: `a, b) -> int:` before `)`. An unmodified insertion would double the
bracket.
"""

from __future__ import annotations

from lcursor.fim.trim import syntax
from lcursor.fim.trim.cursor import CursorContext
from lcursor.fim.trim.syntax import CLOSER, OPENER

MIN_ALPHANUMERIC = 3
"""A rest with fewer letters and digits may be repeated by chance."""


def cut_or_replace(text: str, cursor: CursorContext) -> tuple[str, int]:
    """Return the part of a finished text to insert, and the number of bytes that it replaces.

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
    """Return whether a line repeats the rest and continues after it.

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
    return sum(char.isalnum() for char in rest) >= MIN_ALPHANUMERIC


def held_back(text: str, cursor: CursorContext) -> str:
    """Remove a possible repetition of the rest, and the text after it, from an unfinished line."""
    tail = cursor.rest.strip()
    if not tail:
        return text
    text = text.rstrip()  # as in the finished text
    closers = {char for char in tail if char in OPENER}
    for at, char in enumerate(text):
        is_rest = tail.startswith(text[at : at + len(tail)])
        if (is_rest or char in closers) and not _closes_own(text[:at], char):
            return text[:at]
    return text


def _without_part(text: str, tail: str) -> str:
    """Remove an end that repeats the start of the rest, or a bracket of the rest."""
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
    """Return whether the text itself opened a closing bracket."""
    return char in OPENER and OPENER[char] in syntax.unclosed(_marks(before))


def _surplus(text: str, closer: str) -> int:
    return text.count(closer) - text.count(OPENER[closer])


def _marks(text: str) -> list[syntax.Mark]:
    return [(at, char) for at, char in enumerate(text) if char in CLOSER or char in OPENER]
