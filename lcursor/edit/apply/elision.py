"""Code that leaves out what stays, and what it stands for.

    merge(["a = 1", "b = 2", "c = 3"], ["# ... existing code ...", "b = 2", "bb = 2", "c = 3"])
    -> ("a = 1", "b = 2", "bb = 2", "c = 3")

What is left out is taken from the text that is there. The lines beside a marker say where: each
must stand there exactly once. All else is refused: nothing is guessed. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.code import symbols
from lcursor.edit import diff
from lcursor.edit.apply.indents import indent_of
from lcursor.edit.apply.whole_file import edges
from lcursor.edit.records import Lines

MAX_ANCHOR_LINES: Final = 4
"""By which a line is told from others that are equal."""

_OPEN: Final = r"(?:#+|//+|/\*+|--+|<!--|;+|%+|\{/\*|\(\*|\"|\{-)"
_CLOSE: Final = r"(?:\*+/\}?|-->|\*\)|-\})?"
_DOTS: Final = r"(?:\.{3,}|…|\[\.{3}\])"
_WHAT: Final = (
    r"(?:existing|rest|remaining|remainder|unchanged|previous|other|omitted|same|original|"
    r"as before|keep|kept|unmodified|and so on|etc|more|code|implementation|methods?|functions?|"
    r"imports?|here|above|below|body|content)"
)
_DOTTED: Final = re.compile(
    rf"^\s*(?:{_OPEN}\s*)?[\[(<]?(?:{_DOTS}(?:.*\b{_WHAT}\b.*)?|.*\b{_WHAT}\b.*{_DOTS})[\])>]?"
    rf"\s*{_CLOSE}\s*$",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(
    rf"^\s*{_OPEN}\s*[\[(]?(?:"
    r"(?:the\s+)?(?:rest|remainder|remaining (?:part|code|methods|functions|lines))\b.*"
    r"(?:code|file|function|method|class|implementation|module|body|unchanged|same|before)\b.*|"
    r"(?:existing|previous|original|unchanged|other existing) "
    r"(?:code|methods?|functions?|imports?|implementation|lines|logic|fields|tests)"
    r"(?: (?:here|unchanged|above|below|remains?.*|stays?.*|goes here))?|"
    r"(?:code )?(?:unchanged|omitted|same as before|as before|no changes?(?: here)?)"
    rf")[\])]?[.:]?\s*{_CLOSE}\s*$",
    re.IGNORECASE,
)
_COMMENTED: Final = re.compile(rf"^\s*{_OPEN}")


def is_marker(line: str) -> bool:
    """Return whether a line stands for others, as `# ... existing code ...` does."""
    if not ("." in line or "…" in line or _COMMENTED.match(line)):
        return False
    if _DOTTED.match(line):
        text = line.strip()
        if text in {"...", "…"} or _COMMENTED.match(text) or text[:1] in ".…[":
            return not re.match(r"^\.\.\.\w", text)  # a spread or the rest of parameters
        return False
    return _PLAIN.match(line) is not None


def markers(lines: Sequence[str], language: str = "", base: Sequence[str] = ()) -> list[int]:
    """Return the rows of lines that stand for others.

    Args:
        lines: what was written.
        language: theirs; a bare `...` is a statement of Python.
        base: a line that is one of these stands for itself.
    """
    known = {line.strip() for line in base}
    found = [row for row, line in enumerate(lines) if is_marker(line) and line.strip() not in known]
    if language in {"python", ""} and not base:
        found = [row for row in found if not _is_body(lines, row)]
    return found


def _is_body(lines: Sequence[str], row: int) -> bool:
    """Return whether a bare `...` is all that a definition of Python has in it."""
    if lines[row].strip() != "...":
        return False
    above = next((line for line in reversed(lines[:row]) if line.strip()), "")
    below = next((line for line in lines[row + 1 :] if line.strip()), "")
    deeper = len(indent_of(below)) >= len(indent_of(lines[row])) if below else False
    return above.rstrip().endswith((":", '"""', "'''")) and not deeper


def merge(
    base: Sequence[str], sketch: Sequence[str], language: str = "", heads: tuple[int, int] = (0, 0)
) -> Lines | None:
    """Return the base with what a sketch of it changes, None where that is not certain.

    Args:
        base: all that the sketch is about.
        sketch: it, with markers or without.
        language: theirs.
        heads: how many lines of each are a signature, which the sketch replaces as it is.
    """
    rows = markers(sketch, language, base)
    if not rows:
        return tuple(sketch)
    if rows[0] < heads[1]:
        return None
    merged = _merge_pieces(list(base), list(sketch), rows, language, heads)
    if merged is None or markers(merged, language, base) or _deleted(base, merged):
        return None
    names = {one.path for one in symbols.all_of(merged, language)}
    kept = {one.path for one in symbols.all_of(base[heads[0] :], language)}
    if not heads[0] and kept - names:
        return None
    return tuple(merged) if symbols.parses_no_worse(base, merged, language) else None


def _merge_pieces(
    base: list[str], sketch: list[str], rows: Sequence[int], language: str, heads: tuple[int, int]
) -> list[str] | None:
    result, row, start = sketch[: heads[1]], heads[0], heads[1]
    for stop in [*rows, len(sketch)]:
        piece, is_first, is_last = sketch[start:stop], start == heads[1], stop == len(sketch)
        start = stop + 1
        if not any(map(_has_text, piece)):
            result += base[row:] if is_last else []
            continue
        if is_last and (new := _new_at_end(base, row, piece, language)) is not None:
            return result + new
        first = row if is_first else _anchor(base, row, piece, 1)
        if first is None:
            first = _symbol_row(base, row, piece, language, is_end=False)
        if first is None or (not is_first and not any(map(_has_text, base[row:first]))):
            return None  # nothing is left out where something should be
        if is_first and not heads[1] and _texts(base)[:1] != _texts(piece)[:1]:
            return None
        last = _anchor(base, row, piece, -1)
        if last is None:
            last = _symbol_row(base, row, piece, language, is_end=True)
        if is_last:
            last = len(base) - 1 if _ends_alike(base, piece, language) else None
        if last is None or last < first:
            return None
        result += [*base[row:first], *_bare(piece, above=not is_first, below=not is_last)]
        row = last + 1
    return result


def _new_at_end(base: list[str], row: int, piece: Sequence[str], language: str) -> list[str] | None:
    """Return the rest of the base with new definitions at its end, where a piece is just that."""
    end, stop = len(base), len(piece)
    while end > row and stop and base[end - 1].strip() == piece[stop - 1].strip():
        if any(map(str.isalnum, piece[stop - 1])) and piece[stop - 1].strip() != "end":
            break
        end, stop = end - 1, stop - 1
    new = _bare(piece[:stop], above=True, below=True)
    named = symbols.top([line[len(indent_of(new[0])) :] for line in new], language) if new else ()
    known = symbols.all_of(base, language)
    is_all_new = named and not {one.name for one in named} & {one.name for one in known}
    loose = [
        line
        for at, line in enumerate(new)
        if _has_text(line) and not any(one.first <= at < one.last for one in named)
    ]
    shared = {*_texts(new)} & {*_texts(base)}
    if not is_all_new or loose or 2 * len(shared) > len(_texts(new)):
        return None  # it may be one that is there, with another name
    while end > row and not _has_text(base[end - 1]):
        end -= 1
    inner = symbols.within(base, language) if indent_of(new[0]) else symbols.top(base, language)
    parting = [""] * symbols.blank_lines(base, inner)
    return [*base[row:end], *parting, *new, *base[end:]]


def _ends_alike(base: Sequence[str], piece: Sequence[str], language: str) -> bool:
    """Return whether a last piece ends where the base does: nothing is missing behind it."""
    if _texts(base)[-1:] == _texts(piece)[-1:]:
        return True
    last = [one.name for one in symbols.top(piece, language)][-1:]
    return any(
        one.name in last and not any(map(_has_text, base[one.last :]))
        for one in symbols.all_of(base, language)
    )


def _anchor(base: Sequence[str], row: int, piece: Sequence[str], step: int) -> int | None:
    """Return the one row of the base where a piece begins, or ends.

    The lines beside it, inwards, tell it from others that are equal.
    """
    wanted = [line for line in piece if _has_text(line)][::step]
    places = [at for at in range(row, len(base)) if base[at] == wanted[0]]
    for count in range(1, MAX_ANCHOR_LINES + 1):
        texts = _texts(wanted[:count])
        places = [at for at in places if _texts(_run(base, at, step, count)) == texts]
        if len(places) == 1 and any(map(str.isalnum, "".join(texts))):
            return places[0]
    return None


def _symbol_row(
    base: Sequence[str], row: int, piece: Sequence[str], language: str, *, is_end: bool
) -> int | None:
    """Return the row where the definition begins, or ends, that a piece begins, or ends, with."""
    indent = len(indent_of(next(line for line in piece if _has_text(line))))
    lines = [line[indent:] for line in piece]
    named = symbols.top(lines, language)
    if not named or any(
        map(_has_text, lines[named[-1].last :] if is_end else lines[: named[0].first])
    ):
        return None
    new = named[-1 if is_end else 0]
    same = [one for one in symbols.all_of(base, language) if one.name == new.name]
    if len(same) != 1 or same[0].first < row:
        return None
    old = same[0]
    if not edges(base[old.own_first : old.last], lines[new.own_first : new.last])[1]:
        return None  # its end was left out, too
    first, _ = symbols.lead_rows(base, old, lines, new)
    return old.last - 1 if is_end else first


def _run(base: Sequence[str], row: int, step: int, count: int) -> list[str]:
    """Return so many lines with text, from a row on in one direction."""
    rest = base[row:] if step > 0 else base[row::-1]
    return [line for line in rest if _has_text(line)][:count]


def _bare(piece: Sequence[str], *, above: bool, below: bool) -> Sequence[str]:
    """Return a piece without empty lines beside a marker: those of the base are there."""
    first, last = 0, len(piece)
    while above and first < last and not _has_text(piece[first]):
        first += 1
    while below and last > first and not _has_text(piece[last - 1]):
        last -= 1
    return piece[first:last]


def _deleted(base: Sequence[str], made: Sequence[str]) -> int:
    """Return how many lines are gone that no others took the place of."""
    return sum(
        max(len(_texts(change.old)) - len(_texts(change.new)), 0)
        for change in diff.changes(base, made)
    )


def readable(sketch: Sequence[str], rows: Sequence[int], language: str) -> list[str]:
    """Return a sketch that a parser can read, with as many lines."""
    sign = "..." if language == "python" else symbols.comment(language)
    lines = list(sketch)
    for row in rows:
        lines[row] = indent_of(lines[row]) + sign
    return lines


def _texts(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if _has_text(line)]


def _has_text(line: str) -> bool:
    return bool(line.strip())
