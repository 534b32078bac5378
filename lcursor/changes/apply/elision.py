"""Recognize elision markers (`... existing code ...`), and fill in the elided code.

    merge(["a = 1", "b = 2", "c = 3"], ["# ... existing code ...", "b = 2", "bb = 2", "c = 3"])
    -> ("a = 1", "b = 2", "bb = 2", "c = 3")

The lines next to a marker determine the elided code: each must be in the text exactly once, so that
nothing is guessed. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.changes import diff
from lcursor.changes.apply.whole_file import has_end
from lcursor.changes.lines import has_text, indent_of, stripped, trim
from lcursor.changes.records import Lines
from lcursor.code import symbols

MAX_ANCHOR_LINES: Final = 4
"""Maximum lines that distinguish equal positions."""

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
    """Return whether a line is an elision marker, such as `# ... existing code ...`."""
    if not ("." in line or "…" in line or _COMMENTED.match(line)):
        return False
    if _DOTTED.match(line):
        text = line.strip()
        if text in {"...", "…"} or _COMMENTED.match(text) or text[:1] in ".…[":
            return not re.match(r"^\.\.\.\w", text)  # spread or rest parameters
        return False
    return _PLAIN.match(line) is not None


def markers(lines: Sequence[str], language: str = "", base: Sequence[str] = ()) -> list[int]:
    """Return the rows of elision markers; lines of the base are not markers."""
    known = {line.strip() for line in base}
    found = [row for row, line in enumerate(lines) if is_marker(line) and line.strip() not in known]
    if language in {"python", ""} and not base:
        found = [row for row in found if not _is_body(lines, row)]
    return found


def _is_body(lines: Sequence[str], row: int) -> bool:
    """Return whether a bare `...` is the whole body of a definition in Python."""
    if lines[row].strip() != "...":
        return False
    above = next(filter(has_text, reversed(lines[:row])), "")
    below = next(filter(has_text, lines[row + 1 :]), "")
    deeper = len(indent_of(below)) >= len(indent_of(lines[row])) if below else False
    return above.rstrip().endswith((":", '"""', "'''")) and not deeper


def merge(
    base: Sequence[str], sketch: Sequence[str], language: str = "", heads: tuple[int, int] = (0, 0)
) -> Lines | None:
    """Return the base with the changes of a sketch; None if these are not certain.

    `heads` has the number of signature lines of each; the sketch replaces these lines.
    """
    rows = markers(sketch, language, base)
    merged = _merge_pieces(list(base), list(sketch), rows, language, heads)
    if merged is None:
        return None
    for change in diff.changes(base, merged):
        if len(stripped(change.old)) > len(stripped(change.new)):
            return None
    names = {one.path for one in symbols.all_of(merged, language)}
    required = {one.path for one in symbols.all_of(base[heads[0] :], language)}
    if not heads[0] and required - names:
        return None
    return tuple(merged) if symbols.parses_no_worse(base, merged, language) else None


def _merge_pieces(
    base: list[str], sketch: list[str], rows: Sequence[int], language: str, heads: tuple[int, int]
) -> list[str] | None:
    """Merge the pieces between the markers, in order."""
    result, row, start = sketch[: heads[1]], heads[0], heads[1]
    for stop in [*rows, len(sketch)]:
        piece, is_first, is_last = sketch[start:stop], start == heads[1], stop == len(sketch)
        start = stop + 1
        if not any(map(has_text, piece)):
            result += base[row:] if is_last else []
            continue
        if is_last and (new := _new_at_end(base, row, piece, language)) is not None:
            return result + new
        first = row if is_first else _anchor(base, row, piece, 1)
        if first is None:
            first = _symbol_row(base, row, piece, language, is_end=False)
        if first is None or (not is_first and not any(map(has_text, base[row:first]))):
            return None  # the marker elides nothing
        if is_first and not heads[1] and stripped(base)[:1] != stripped(piece)[:1]:
            return None
        if is_last:
            last = len(base) - 1 if _has_same_end(base, piece, language) else None
        elif (last := _anchor(base, row, piece, -1)) is None:
            last = _symbol_row(base, row, piece, language, is_end=True)
        if last is None or last < first:
            return None
        result += [*base[row:first], *_without_blank(piece, above=not is_first, below=not is_last)]
        row = last + 1
    return result


def _new_at_end(base: list[str], row: int, piece: Sequence[str], language: str) -> list[str] | None:
    """Return the rest of the base and a final piece, if the piece has only new definitions."""
    end, stop = len(base), len(piece)
    while end > row and stop and base[end - 1].strip() == piece[stop - 1].strip():
        if any(map(str.isalnum, piece[stop - 1])) and piece[stop - 1].strip() != "end":
            break
        end, stop = end - 1, stop - 1
    new = _without_blank(piece[:stop], above=True, below=True)
    named = symbols.top([line[len(indent_of(new[0])) :] for line in new], language) if new else ()
    known = {one.name for one in symbols.all_of(base, language)}
    if not named or known & {one.name for one in named}:
        return None
    inside = {at for one in named for at in range(one.first, one.last)}
    if any(has_text(line) and at not in inside for at, line in enumerate(new)):
        return None
    if 2 * len({*stripped(new)} & {*stripped(base)}) > len(stripped(new)):
        return None  # it may be a renamed existing definition
    end = max(trim(base, 0, end)[1], row)
    inner = symbols.within(base, language) if indent_of(new[0]) else symbols.top(base, language)
    blanks = [""] * symbols.blank_lines(base, inner)
    return [*base[row:end], *blanks, *new, *base[end:]]


def _has_same_end(base: Sequence[str], piece: Sequence[str], language: str) -> bool:
    """Return whether the last piece ends like the base, so that nothing is missing after it."""
    if stripped(base)[-1:] == stripped(piece)[-1:]:
        return True
    last = [one.name for one in symbols.top(piece, language)][-1:]
    return any(
        one.name in last and not any(map(has_text, base[one.last :]))
        for one in symbols.all_of(base, language)
    )


def _anchor(base: Sequence[str], row: int, piece: Sequence[str], step: int) -> int | None:
    """Return the only row of the base where a piece starts (step 1) or ends (step -1)."""
    wanted = [line for line in piece if has_text(line)][::step]
    rows = [at for at in range(row, len(base)) if base[at] == wanted[0]]
    for count in range(1, MAX_ANCHOR_LINES + 1):
        texts = stripped(wanted[:count])
        rest = {at: base[at:] if step > 0 else base[at::-1] for at in rows}
        rows = [at for at in rows if stripped(rest[at])[:count] == texts]
        if len(rows) == 1 and any(map(str.isalnum, "".join(texts))):
            return rows[0]
    return None


def _symbol_row(
    base: Sequence[str], row: int, piece: Sequence[str], language: str, *, is_end: bool
) -> int | None:
    """Return the first or last row of the definition that a piece starts or ends with."""
    indent = len(indent_of(next(filter(has_text, piece))))
    lines = [line[indent:] for line in piece]
    named = symbols.top(lines, language)
    if not named or any(
        map(has_text, lines[named[-1].last :] if is_end else lines[: named[0].first])
    ):
        return None
    new = named[-1 if is_end else 0]
    same = [one for one in symbols.all_of(base, language) if one.name == new.name]
    if len(same) != 1 or same[0].first < row:
        return None
    old = same[0]
    if not has_end(base[old.own_first : old.last], lines[new.own_first : new.last]):
        return None  # its end is elided as well
    first, _ = symbols.lead_rows(base, old, lines, new)
    return old.last - 1 if is_end else first


def _without_blank(piece: Sequence[str], *, above: bool, below: bool) -> Sequence[str]:
    """Return a piece without blank lines next to a marker, because the base has its own."""
    first, last = trim(piece, 0, len(piece))
    return piece[first if above else 0 : last if below else len(piece)]


def readable(sketch: Sequence[str], rows: Sequence[int], language: str) -> list[str]:
    """Return a sketch that a parser accepts, with the same number of lines."""
    sign = "..." if language == "python" else symbols.comment(language)
    lines = list(sketch)
    for row in rows:
        lines[row] = indent_of(lines[row]) + sign
    return lines
