"""Recognize which part of a file code is: the whole, definitions, or some of its lines.

Each reading gives the resulting text, and whether it is certain. Pure; any thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from lcursor.code import symbols
from lcursor.code.symbols import Symbol
from lcursor.edit import diff
from lcursor.edit.apply import elision, similar, whole_file
from lcursor.edit.apply.indents import IndentMap
from lcursor.edit.apply.whole_file import Reading
from lcursor.edit.lines import contains_run, has_text, indent_of, stripped, trim
from lcursor.edit.records import Lines

MIN_PART: Final = 0.6
MIN_GAP: Final = 0.15
MUCH_SHORTER: Final = 0.5
LONG_ROWS: Final = 8
MIN_LIKE: Final = 0.5
IMPORT: Final = re.compile(
    r"(?:import\b|from\s+\S+\s+import\b|#include\b|use\s|using\s|require\b"
    r"|(?:local|const|var)\s+\w+\s*=\s*require\b)"
)
EMPTY: Final = frozenset({"...", "pass", "}", "end", "{", "});", "};"})
"""Lines of a definition without content."""


def readings(lines: Sequence[str], new: Sequence[str], language: str) -> list[Reading]:
    """Return how code without elisions may be read as a part of a text; the likeliest first."""
    whole = whole_file.read_whole(lines, new, language)
    if whole is not None and whole.is_certain:
        return [whole]
    found = [_read_symbols(lines, new, language), whole, _read_rows(lines, new)]
    made = [one for one in found if one is not None]
    certain = {one.lines for one in made if one.is_certain}
    if len(certain) == 1 and whole is not None and whole.lines not in certain:
        return [Reading(one.lines, one.why, False) for one in made]
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
    return _merge_elided_symbols(lines, new, language) or elision.merge(lines, new, language)


def _merge_elided_symbols(lines: Sequence[str], new: Sequence[str], language: str) -> Lines | None:
    """Merge definitions and markers into the definitions of the same names."""
    rows = elision.markers(new, language, lines)
    known = symbols.all_of(lines, language)
    named = symbols.top(elision.readable(new, rows, language), language, rows)
    inside = {*rows, *(row for one in named for row in range(one.first, one.last))}
    if not named or any(has_text(line) and row not in inside for row, line in enumerate(new)):
        return None
    pieces: list[tuple[int, int, Sequence[str]]] = []
    for symbol in named:
        own, is_certain = _find_version(lines, known, new, symbol, language)
        if own is None or not is_certain:
            return None
        first, start = symbols.lead_rows(lines, own, new, symbol)
        end = symbol.last + (symbol.last in rows)  # a marker right below leaves out its rest
        piece = _indented(lines, own, new[start:end], new[symbol.own_first])
        if piece is None or (pieces and first < pieces[-1][1]):
            return None
        base = lines[first : own.last]
        if elision.markers(piece, language, base):
            heads = own.head_last - first, symbol.head_last - start
            inner = elision.merge(base, piece, language, heads)
        else:
            lead = new[start : symbol.own_first]
            is_suspect = _loses_much(lines, first, own, piece, lead, new, symbol, language)
            inner = None if is_suspect else tuple(piece)
        if inner is None:
            return None
        pieces.append((first, own.last, inner))
    made = put(lines, pieces)
    return made if made and symbols.parses_no_worse(lines, made, language) else None


def _read_symbols(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as definitions that replace those of the same names."""
    named = symbols.top(new, language)
    known = symbols.all_of(lines, language)
    existing = {line.strip() for line in lines}
    added = [line for line in whole_file.loose_lines(new, named) if line not in existing]
    versions = [_find_version(lines, known, new, symbol, language) for symbol in named]
    if any(not IMPORT.match(line) for line in added) or not any(own for own, _ in versions):
        return None
    is_certain = all(sure for _, sure in versions) and _has_loose_runs(lines, new, named)
    pieces: list[tuple[int, int, Sequence[str]]] = []
    if added:  # after the present imports; not certain, so that the user sees it
        row = max((row for row, line in enumerate(lines) if IMPORT.match(line)), default=-1) + 1
        if row == 0 or any(one.first < row for one in known):
            return None
        pieces.append((row, row, added))
        is_certain = False
    for place, (symbol, (own, _)) in enumerate(zip(named, versions, strict=True)):
        if own is None:  # a new definition, next to a known one
            after = next((one for one, _ in versions[place + 1 :] if one), None)
            before = next((one for one, _ in reversed(versions[:place]) if one), None)
            near = before or after
            assert near is not None
            made = _indented(lines, near, new[symbol.first : symbol.last], new[symbol.own_first])
            if made is None:
                return None
            blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
            row = before.last if before else near.first
            pieces.append((row, row, [*blanks, *made] if before else [*made, *blanks]))
            continue
        first, start = symbols.lead_rows(lines, own, new, symbol)
        made = _indented(lines, own, new[start : symbol.last], new[symbol.own_first])
        if made is None:
            return None
        lead = new[start : symbol.own_first]
        is_certain = is_certain and not _loses_much(
            lines, first, own, made, lead, new, symbol, language
        )
        pieces.append((first, own.last, made))
    result = put(lines, pieces)
    if result is None:
        return None
    is_certain = is_certain and symbols.parses_no_worse(lines, result, language)
    return Reading(result, f"it is {', '.join(symbol.name for symbol in named)}", is_certain)


def _has_loose_runs(lines: Sequence[str], new: Sequence[str], named: Sequence[Symbol]) -> bool:
    """Return whether a text has the lines between definitions, without gaps."""
    edges = [0, *(row for one in named for row in (one.first, one.last)), len(new)]
    runs = (stripped(new[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))
    known = stripped(lines)
    return all(contains_run(known, run) for run in runs)


def _find_version(
    lines: Sequence[str],
    known: Sequence[Symbol],
    new: Sequence[str],
    symbol: Symbol,
    language: str,
) -> tuple[Symbol | None, bool]:
    """Return the present version of a definition, None for a new one, and if that is certain."""
    same = [one for one in known if one.name == symbol.name]
    if not same:
        return None, True
    if symbol.scope:
        same = [one for one in same if one.scope == symbol.scope] or same
    indent = indent_of(new[symbol.own_first])
    if len(same) > 1:
        head = _head(new, symbol)
        exact = [one for one in same if _head(lines, one) == head]
        is_one = len({one.scope for one in same}) == 1
        is_level = len(exact) == 1 and indent_of(lines[exact[0].own_first]) == indent
        if is_one and is_level:
            return exact[0], True
        return (exact or same)[0], False
    own = same[0]
    is_certain = own.kind == symbol.kind and own.scope.startswith(symbol.scope)
    is_certain = is_certain and _owner(lines, own) == _owner(new, symbol)
    is_level = indent_of(lines[own.own_first]) == indent
    if language == "python" and symbol.is_function:
        has_self = [_takes_self(_head(text, one)) for text, one in ((lines, own), (new, symbol))]
        is_certain = is_certain and has_self[0] == has_self[1]
        if not own.is_top and not any(has_self):
            is_certain = is_certain and is_level
    elif not own.is_top and not own.scope:
        is_certain = is_certain and is_level
    return own, is_certain


def _head(lines: Sequence[str], symbol: Symbol) -> list[str]:
    return [line.strip() for line in lines[symbol.first : symbol.head_last]]


def _takes_self(head: Sequence[str]) -> bool:
    inside = " ".join(head).partition("def ")[2].partition("(")[2].lstrip()
    return inside.startswith(("self", "cls")) or any("staticmethod" in line for line in head)


def _owner(lines: Sequence[str], symbol: Symbol) -> str:
    """Return the prefix of a name, as `M.` in Lua."""
    for line in lines[symbol.own_first : symbol.head_last]:
        if (at := line.find(symbol.name)) >= 0:
            prefix = re.search(r"[\w.:]*$", line[:at])
            return prefix[0] if prefix else ""
    return ""


def _indented(
    lines: Sequence[str], own: Symbol, made: Sequence[str], head: str
) -> list[str] | None:
    """Return a definition as it is indented in the text."""
    existing = {line.strip(): line for line in lines[own.own_first : own.last]}
    known = [(head, lines[own.own_first])]
    counts = Counter(line.strip() for line in made)
    common = [
        (line, existing[line.strip()])
        for line in made
        if line.strip() in existing and counts[line.strip()] == 1
    ]
    indents = IndentMap(lines, [*known, *common], made)
    if not indents.is_consistent:
        indents = IndentMap(lines, known, made)
    return indents.fit_all(made)


def _loses_much(
    lines: Sequence[str],
    first: int,
    own: Symbol,
    made: Sequence[str],
    lead: Sequence[str],
    new: Sequence[str],
    other: Symbol,
    language: str,
) -> bool:
    """Return whether a replacement loses so much of a definition that the user must confirm it.

    Args:
        lines: of the text.
        first: row from which on the definition is replaced.
        own: the definition.
        made: its replacement.
        lead: the lines of the replacement above the definition itself.
        new: the code of the reply.
        other: the definition in it.
        language: of both.
    """
    before = len(stripped(lines[own.own_first : own.last]))
    after = len(stripped(made)) - len(stripped(lead))
    if before >= LONG_ROWS and after < MUCH_SHORTER * before:
        return True
    body = {*stripped(new[other.head_last : other.last])}
    present = {*stripped(lines[own.head_last : own.last])}
    if body <= EMPTY and not present <= EMPTY:
        return True
    if not own.is_function:
        old_names, new_names = (
            {one.path for one in symbols.all_of(text, language)}
            for text in (lines[own.first : own.last], new[other.first : other.last])
        )
        if old_names - new_names:
            return True
    old_text, new_text = lines[own.own_first : own.last], new[other.own_first : other.last]
    if not whole_file.has_edges(old_text, new_text)[1]:
        return True
    comments, new_comments = (
        [line.strip() for line in part if not line.lstrip().startswith("@")]
        for part in (lines[first : own.own_first], lead)
    )
    if not comments or not lead:
        return False
    return not any(
        SequenceMatcher(None, one, other_line, autojunk=False).ratio() >= MIN_LIKE
        for one in comments
        for other_line in new_comments
    )


def _read_rows(lines: Sequence[str], new: Sequence[str]) -> Reading | None:
    """Read code as lines of the text, of which the first and the last are unchanged."""
    found = similar.align(lines, new)
    if not found or found[0].share < MIN_PART or not found[0].is_significant:
        return None
    chosen, pairs = found[0], dict(found[0].pairs)
    start, end = trim(new, 0, len(new))
    for at in (start, end - 1):
        if at not in pairs or lines[pairs[at]].strip() != new[at].strip():
            return None
    indents = IndentMap(lines, [(new[at], lines[row]) for at, row in chosen.pairs], new)
    made = indents.fit_all(new[start:end])
    if not indents.is_consistent or made is None:
        return None
    first, last = chosen.first_row, chosen.last_row
    is_certain = len(found) == 1 or chosen.share - found[1].share >= MIN_GAP
    is_certain = is_certain and all(
        len(stripped(change.new)) >= len(stripped(change.old))
        for change in diff.changes(lines[first:last], made)
    )
    result = (*lines[:first], *made, *lines[last:])
    return Reading(result, f"it is lines {first + 1} to {last}", is_certain)


def _append(lines: Sequence[str], new: Sequence[str], language: str) -> Reading:
    """Read code as new definitions at the end of the text."""
    end, start = trim(lines, 0, len(lines))[1], trim(new, 0, len(new))[0]
    blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
    return Reading((*lines[:end], *blanks, *new[start:], *lines[end:]), "it is new, at the end",
                   False)  # fmt: skip
