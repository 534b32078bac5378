"""Recognize which part of a file some code is: the whole, definitions, or a range of lines.

Each reading has the resulting text, and whether it is certain. Pure; any thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lcursor.changes import diff
from lcursor.changes.apply import elision, similar, whole_file
from lcursor.changes.apply.indents import IndentMap
from lcursor.changes.apply.whole_file import Reading
from lcursor.changes.lines import indent_of, stripped, trim
from lcursor.changes.records import Lines
from lcursor.code import symbols
from lcursor.code.symbols import Symbol

MIN_PART: Final = 0.6
"""Minimum share of a part's lines that are in the text."""
MIN_GAP: Final = 0.15
"""Minimum lead of the best match over the next one."""
LONG_ROWS: Final = 8
MIN_LENGTH: Final = 0.5
"""Minimum length of a replacement, as a share of a long definition."""
IMPORT: Final = re.compile(
    r"(?:import\b|from\s+\S+\s+import\b|#include\b|use\s|using\s|require\b"
    r"|(?:local|const|var)\s+\w+\s*=\s*require\b)"
)
EMPTY: Final = frozenset({"...", "pass", "}", "end", "{", "});", "};"})
"""Lines of a definition without content."""


def readings(lines: Sequence[str], new: Sequence[str], language: str) -> list[Reading]:
    """Return the interpretations of code without elisions, the likeliest first."""
    whole = whole_file.read_whole(lines, new, language)
    if whole is not None and whole.is_certain:
        return [whole]
    found = [_read_symbols(lines, new, language), whole, _read_rows(lines, new)]
    made = [one for one in found if one is not None]
    if whole is not None and any(one.lines != whole.lines for one in made if one.is_certain):
        return [replace(one, is_certain=False) for one in made]
    if not made and symbols.top(new, language):
        made.append(_append(lines, new, language))
    return made


def put(lines: Sequence[str], pieces: Sequence[tuple[int, int, Sequence[str]]]) -> Lines | None:
    """Return a text with some rows replaced; None if these overlap."""
    result: list[str] = []
    row = 0
    for first, last, made in sorted(pieces, key=lambda one: one[:2]):
        if first < row:
            return None
        result += [*lines[row:first], *made]
        row = last
    return (*result, *lines[row:])


def merge_elided(lines: Sequence[str], new: Sequence[str], language: str) -> Lines | None:
    """Merge code with elision markers into a text: definitions, or the whole; None if unclear."""
    found = _read_symbols(lines, new, language)
    if found is not None and found.is_certain:
        return found.lines
    return elision.merge(lines, new, language)


def _read_symbols(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as definitions that replace those of the same names, elided or not."""
    rows = elision.markers(new, language, lines)
    named = symbols.top(elision.readable(new, rows, language), language, rows)
    definitions = symbols.all_of(lines, language)
    existing = set[str]() if rows else {*stripped(lines)}
    markers = {new[row].strip() for row in rows}
    loose = whole_file.loose_lines(new, named)
    added = [line for line in loose if line not in existing and line not in markers]
    versions = [_find_version(lines, definitions, new, symbol, language) for symbol in named]
    if any(rows or not IMPORT.match(line) for line in added) or not any(own for own, _ in versions):
        return None
    is_certain = all(sure for _, sure in versions) and not added
    pieces: list[tuple[int, int, Sequence[str]]] = []
    if added:  # after the existing imports; the user must confirm it
        last = max((row for row, line in enumerate(lines) if IMPORT.match(line)), default=-1)
        pieces.append((last + 1, last + 1, added))
    for number, (symbol, (own, _)) in enumerate(zip(named, versions, strict=True)):
        near = own or _neighbour([one for one, _ in versions], number)
        first, start = symbols.lead_rows(lines, near, new, symbol) if own else (0, symbol.first)
        end = symbol.last + (symbol.last in rows)  # a marker directly below elides its rest
        new_lines = _indented(lines, near, new[start:end], new[symbol.own_first])
        if new_lines is None or (own is None and rows):
            return None
        if own is None:
            pieces.append(_next_to(lines, near, new_lines, versions[:number], language))
            continue
        base = lines[first : own.last]
        if elision.markers(new_lines, language, base):
            heads = own.head_last - first, symbol.head_last - start
            merged = elision.merge(base, new_lines, language, heads)
            if merged is None:
                return None
            new_lines = [*merged]
        elif _loses_much(lines, own, new, symbol, language):
            is_certain = False
        pieces.append((first, own.last, new_lines))
    result = put(lines, pieces)
    if result is None or (rows and pieces != sorted(pieces, key=lambda one: one[:2])):
        return None
    is_certain = is_certain and symbols.parses_no_worse(lines, result, language)
    return Reading(result, f"it is {', '.join(symbol.name for symbol in named)}", is_certain)


def _neighbour(versions: Sequence[Symbol | None], number: int) -> Symbol:
    """Return the existing version of the definition above a new one, else of the one below."""
    return next(filter(None, [*reversed(versions[:number]), *versions[number:]]))


def _next_to(
    lines: Sequence[str],
    near: Symbol,
    made: Sequence[str],
    above: Sequence[tuple[Symbol | None, bool]],
    language: str,
) -> tuple[int, int, list[str]]:
    """Return the rows and lines of a new definition next to a known one."""
    blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
    if any(own is near for own, _ in above):
        return near.last, near.last, [*blanks, *made]
    return near.first, near.first, [*made, *blanks]


def _find_version(
    lines: Sequence[str], known: Sequence[Symbol], new: Sequence[str], symbol: Symbol, language: str
) -> tuple[Symbol | None, bool]:
    """Return the existing version of a definition, None if new, and whether that is certain."""
    same = [
        one
        for one in known
        if one.name == symbol.name and (not symbol.scope or one.scope == symbol.scope)
    ]
    if not same:
        return None, True
    head, indent = _head(new, symbol), indent_of(new[symbol.own_first])
    if len(same) > 1:
        exact = [one for one in same if _head(lines, one) == head]
        is_certain = len({one.scope for one in same}) == 1 and len(exact) == 1
        return (exact or same)[0], is_certain
    own = same[0]
    is_certain = own.kind == symbol.kind and _owner(lines, own) == _owner(new, symbol)
    if language == "python" and symbol.is_function:
        is_method = [_takes_self(_head(lines, own)), _takes_self(head)]
        is_level = own.is_top or indent_of(lines[own.own_first]) == indent
        is_certain = is_certain and (all(is_method) or (is_level and not any(is_method)))
    return own, is_certain


def _head(lines: Sequence[str], symbol: Symbol) -> list[str]:
    return [line.strip() for line in lines[symbol.first : symbol.head_last]]


def _takes_self(head: Sequence[str]) -> bool:
    inside = " ".join(head).partition("def ")[2].partition("(")[2].lstrip()
    return inside.startswith(("self", "cls")) or any("staticmethod" in line for line in head)


def _owner(lines: Sequence[str], symbol: Symbol) -> str:
    """Return the prefix of a name, such as `M.` in Lua."""
    head = " ".join(lines[symbol.own_first : symbol.head_last])
    found = re.search(rf"([\w.:]*[.:]){re.escape(symbol.name)}\b", head)
    return found[1] if found else ""


def _indented(
    lines: Sequence[str], own: Symbol, made: Sequence[str], head: str
) -> list[str] | None:
    """Return a definition with the indentation of the text."""
    existing = {line.strip(): line for line in lines[own.own_first : own.last]}
    heads = [(head, lines[own.own_first])]
    counts = Counter(line.strip() for line in made)
    common = [
        (line, existing[line.strip()])
        for line in made
        if line.strip() in existing and counts[line.strip()] == 1
    ]
    indents = IndentMap(lines, [*heads, *common], made)
    if not indents.is_consistent:
        indents = IndentMap(lines, heads, made)
    return indents.fit_all(made)


def _loses_much(
    lines: Sequence[str], own: Symbol, new: Sequence[str], other: Symbol, language: str
) -> bool:
    """Return whether a new version of a definition drops so much that the user must confirm it."""
    old_text, new_text = lines[own.own_first : own.last], new[other.own_first : other.last]
    before, after = len(stripped(old_text)), len(stripped(new_text))
    if before >= LONG_ROWS and after < MIN_LENGTH * before:
        return True
    body, present = new[other.head_last : other.last], lines[own.head_last : own.last]
    if {*stripped(body)} <= EMPTY and not {*stripped(present)} <= EMPTY:
        return True
    if not own.is_function:
        names, new_names = (
            {one.path for one in symbols.all_of(text, language)}
            for text in (lines[own.first : own.last], new[other.first : other.last])
        )
        if names - new_names:
            return True
    return not whole_file.has_end(old_text, new_text)


def _read_rows(lines: Sequence[str], new: Sequence[str]) -> Reading | None:
    """Read code as a range of lines whose first and last line are unchanged."""
    aligned = similar.align(lines, new)
    if not aligned or aligned[0].share < MIN_PART or not aligned[0].is_significant:
        return None
    chosen, pairs = aligned[0], dict(aligned[0].pairs)
    start, end = trim(new, 0, len(new))
    for at in (start, end - 1):
        if at not in pairs or lines[pairs[at]].strip() != new[at].strip():
            return None
    indents = IndentMap(lines, [(new[at], lines[row]) for at, row in chosen.pairs], new)
    fitted = indents.fit_all(new[start:end])
    if not indents.is_consistent or fitted is None:
        return None
    first, last = chosen.first_row, chosen.last_row
    is_certain = len(aligned) == 1 or chosen.share - aligned[1].share >= MIN_GAP
    is_certain = is_certain and all(
        len(stripped(change.new)) >= len(stripped(change.old))
        for change in diff.changes(lines[first:last], fitted)
    )
    result = (*lines[:first], *fitted, *lines[last:])
    return Reading(result, f"it is lines {first + 1} to {last}", is_certain)


def _append(lines: Sequence[str], new: Sequence[str], language: str) -> Reading:
    """Read code as new definitions at the end of the text."""
    end, start = trim(lines, 0, len(lines))[1], trim(new, 0, len(new))[0]
    blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
    return Reading((*lines[:end], *blanks, *new[start:], *lines[end:]), "new code at the end",
                   False)  # fmt: skip
