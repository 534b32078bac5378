"""Code in a fence, and what part of a file it is: all of it, definitions, or lines of it.

Each way in which it could be read gives the text that would come of it, and says whether that is
sure. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from lcursor.code import symbols
from lcursor.code.symbols import Symbol
from lcursor.edit import diff
from lcursor.edit.apply import align, elision, whole_file
from lcursor.edit.apply.indents import Indents, indent_of
from lcursor.edit.apply.whole_file import Reading
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
"""Lines that a definition without anything in it has."""


def readings(lines: Sequence[str], new: Sequence[str], language: str) -> list[Reading]:
    """Return how code may be read as a part of a text; the likeliest first.

    Args:
        lines: of the text.
        new: the code, without omissions.
        language: of both.
    """
    whole = whole_file.whole(lines, new, language)
    if whole is not None and whole.is_sure:
        return [whole]
    found = [_symbols(lines, new, language), whole, _around(lines, new)]
    made = [one for one in found if one is not None]
    sure = {one.lines for one in made if one.is_sure}
    if len(sure) == 1:
        if whole is None or whole.is_sure or whole.lines in sure:
            return made
        return [Reading(one.lines, one.why, False) for one in made]
    if not made and symbols.top(new, language):
        made.append(_appended(lines, new, language))
    return made


def merge_elided(lines: Sequence[str], new: Sequence[str], language: str) -> Lines | None:
    """Return a text with code taken over that leaves something out; None where that is unclear.

    Args:
        lines: of the text.
        new: the code: definitions of the text, or all of it, with markers of omission.
        language: of both.
    """
    return _elided_symbols(lines, new, language) or elision.merge(lines, new, language)


def _elided_symbols(lines: Sequence[str], new: Sequence[str], language: str) -> Lines | None:
    """Merge code that is definitions and markers into the definitions of their names."""
    rows = elision.markers(new, language, lines)
    known = symbols.all_of(lines, language)
    named = symbols.top(elision.readable(new, rows, language), language, rows)
    inside = {row for one in named for row in range(one.first, one.last)}
    if not named or any(
        line.strip() and row not in inside and row not in rows for row, line in enumerate(new)
    ):
        return None
    result: list[str] = []
    row = 0
    for symbol in named:
        own, is_sure = _match(lines, known, new, symbol, language)
        if own is None or not is_sure:
            return None
        first, start = symbols.lead_rows(lines, own, new, symbol)
        end = symbol.last + (symbol.last in rows)  # a marker right below leaves out its rest
        piece = _fitted(lines, own, new[start:end], new[symbol.own_first])
        if piece is None or first < row:
            return None
        base = lines[first : own.last]
        if elision.markers(piece, language, base):
            heads = own.head_last - first, symbol.head_last - start
            inner = elision.merge(base, piece, language, heads)
        else:
            lead = new[start : symbol.own_first]
            is_suspect = _is_suspect(lines, first, own, piece, lead, new, symbol, language)
            inner = None if is_suspect else tuple(piece)
        if inner is None:
            return None
        result += [*lines[row:first], *inner]
        row = own.last
    made = (*result, *lines[row:])
    return made if symbols.parses_no_worse(lines, made, language) else None


def _symbols(lines: Sequence[str], new: Sequence[str], language: str) -> Reading | None:
    """Read code as definitions that take the place of those of their names."""
    named = symbols.top(new, language)
    if not named:
        return None
    known = symbols.all_of(lines, language)
    there = {line.strip() for line in lines}
    added = [line for line in whole_file.loose(new, named) if line not in there]
    if any(not IMPORT.match(line) for line in added):
        return None
    matches = [_match(lines, known, new, symbol, language) for symbol in named]
    if not any(own for own, _ in matches):
        return None
    is_sure = all(sure for _, sure in matches) and _runs_are_there(lines, new, named)
    pieces: list[tuple[int, int, list[str]]] = []
    if added:  # behind those that are there: a guess, so that somebody looks at it
        row = max((row for row, line in enumerate(lines) if IMPORT.match(line)), default=-1) + 1
        if row == 0 or any(one.first < row for one in known):
            return None
        pieces.append((row, row, added))
        is_sure = False
    for place, (symbol, (own, _)) in enumerate(zip(named, matches, strict=True)):
        if own is None:
            near = next((one for one, _ in matches[place + 1 :] if one), None)
            before = next((one for one, _ in reversed(matches[:place]) if one), None)
            beside = before or near
            assert beside is not None
            made = _fitted(lines, beside, new[symbol.first : symbol.last], new[symbol.own_first])
            if made is None:
                return None
            blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
            row = before.last if before else beside.first
            pieces.append((row, row, [*blanks, *made] if before else [*made, *blanks]))
            continue
        first, start = symbols.lead_rows(lines, own, new, symbol)
        made = _fitted(lines, own, new[start : symbol.last], new[symbol.own_first])
        if made is None:
            return None
        is_sure = is_sure and not _is_suspect(
            lines, first, own, made, new[start : symbol.own_first], new, symbol, language
        )
        pieces.append((first, own.last, made))
    result = _put(lines, pieces)
    if result is None:
        return None
    is_sure = is_sure and symbols.parses_no_worse(lines, result, language)
    names = ", ".join(symbol.name for symbol in named)
    return Reading(tuple(result), f"it is {names}", is_sure)


def _runs_are_there(lines: Sequence[str], new: Sequence[str], named: Sequence[Symbol]) -> bool:
    """Return whether loose lines between definitions are in the text as they are, none missing."""
    rows = [line.strip() for line in lines if line.strip()]
    edges = [0, *(row for one in named for row in (one.first, one.last)), len(new)]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        run = [line.strip() for line in new[first:last] if line.strip()]
        count = len(run)
        if run and not any(rows[at : at + count] == run for at in range(len(rows) - count + 1)):
            return False
    return True


def _put(lines: Sequence[str], pieces: list[tuple[int, int, list[str]]]) -> list[str] | None:
    result: list[str] = []
    row = 0
    for first, last, made in sorted(pieces, key=lambda one: one[:2]):
        if first < row:
            return None
        result += lines[row:first]
        result += made
        row = last
    return [*result, *lines[row:]]


def _match(
    lines: Sequence[str],
    known: Sequence[Symbol],
    new: Sequence[str],
    symbol: Symbol,
    language: str,
) -> tuple[Symbol | None, bool]:
    """Return what a definition is the new form of, and whether that is sure.

    None and sure where it is new.
    """
    same = [one for one in known if one.name == symbol.name]
    if not same:
        return None, True
    if symbol.scope:
        same = [one for one in same if one.scope == symbol.scope] or same
    if len(same) > 1:
        head = _head(new, symbol)
        level = [
            one
            for one in same
            if indent_of(lines[one.own_first]) == indent_of(new[symbol.own_first])
        ]
        exact = [one for one in same if _head(lines, one) == head]
        is_one = len({one.scope for one in same}) == 1
        if len(exact) == 1 and exact[0] in level and is_one:
            return exact[0], True
        return (exact or same)[0], False
    own = same[0]
    is_sure = own.kind == symbol.kind and own.scope.startswith(symbol.scope)
    is_sure = is_sure and _owner(lines, own) == _owner(new, symbol)
    is_level = indent_of(lines[own.own_first]) == indent_of(new[symbol.own_first])
    if language == "python" and symbol.is_function:
        has_self = [_takes_self(_head(text, one)) for text, one in ((lines, own), (new, symbol))]
        is_sure = is_sure and has_self[0] == has_self[1]
        if not own.is_top and not any(has_self):
            is_sure = is_sure and is_level
    elif not own.is_top and not own.scope:
        is_sure = is_sure and is_level
    return own, is_sure


def _head(lines: Sequence[str], symbol: Symbol) -> list[str]:
    return [line.strip() for line in lines[symbol.first : symbol.head_last]]


def _takes_self(head: Sequence[str]) -> bool:
    text = " ".join(head)
    inside = text.partition("def ")[2].partition("(")[2].lstrip()
    return inside.startswith(("self", "cls")) or any("staticmethod" in line for line in head)


def _owner(lines: Sequence[str], symbol: Symbol) -> str:
    """Return what stands before a name, as `M.` in Lua."""
    for row in range(symbol.own_first, symbol.head_last):
        at = lines[row].find(symbol.name)
        if at >= 0:
            start = at
            while start > 0 and (lines[row][start - 1].isalnum() or lines[row][start - 1] in "_.:"):
                start -= 1
            return lines[row][start:at]
    return ""


def _fitted(lines: Sequence[str], own: Symbol, made: Sequence[str], head: str) -> list[str] | None:
    """Return a definition as it is indented in the text."""
    there = {line.strip(): line for line in lines[own.own_first : own.last]}
    known = [(head, lines[own.own_first])]
    indents = Indents(lines, [*known, *_common(made, there)], made)
    if not indents.is_sound:
        indents = Indents(lines, known, made)
    fitted = [indents.fit(line) for line in made]
    return (
        None
        if any(line is None for line in fitted)
        else [line for line in fitted if line is not None]
    )


def _common(made: Sequence[str], there: dict[str, str]) -> list[tuple[str, str]]:
    counts: dict[str, int] = {}
    for line in made:
        counts[line.strip()] = counts.get(line.strip(), 0) + 1
    return [
        (line, there[line.strip()])
        for line in made
        if line.strip() in there and counts[line.strip()] == 1
    ]


def _is_suspect(
    lines: Sequence[str],
    first: int,
    own: Symbol,
    made: Sequence[str],
    lead: Sequence[str],
    new: Sequence[str],
    other: Symbol,
    language: str,
) -> bool:
    """Return whether too much of a definition would go for it to be meant without a word.

    Args:
        lines: of the text.
        first: row of it from which on the definition is replaced.
        own: the definition in it.
        made: what takes its place.
        lead: those lines of that which stand above the definition itself.
        new: the code that it is from.
        other: the definition in that.
        language: of all.
    """
    before = sum(map(_has_text, lines[own.own_first : own.last]))
    after = sum(map(_has_text, made)) - sum(map(_has_text, lead))
    if before >= LONG_ROWS and after < MUCH_SHORTER * before:
        return True
    body = {line.strip() for line in new[other.head_last : other.last] if line.strip()}
    there = {line.strip() for line in lines[own.head_last : own.last] if line.strip()}
    if body <= EMPTY and not there <= EMPTY:
        return True
    if not own.is_function:
        names = [
            {one.path for one in symbols.all_of(text, language)}
            for text in (lines[own.first : own.last], new[other.first : other.last])
        ]
        if names[0] - names[1]:
            return True
    if not whole_file.edges(lines[own.own_first : own.last], new[other.own_first : other.last])[1]:
        return True
    told = [line.strip() for line in lines[first : own.own_first] if not _is_decorator(line)]
    says = [line.strip() for line in lead if not _is_decorator(line)]
    if not told or not lead:
        return False
    return not any(
        SequenceMatcher(None, one, other_line, autojunk=False).ratio() >= MIN_LIKE
        for one in told
        for other_line in says
    )


def _is_decorator(line: str) -> bool:
    return line.lstrip().startswith("@")


def _around(lines: Sequence[str], new: Sequence[str]) -> Reading | None:
    """Read code as lines of the text, of which the first and the last are as they were."""
    found = align.best(lines, new)
    if not found or found[0].share < MIN_PART or not found[0].is_telling:
        return None
    chosen = found[0]
    marks = [at for at, line in enumerate(new) if line.strip()]
    pairs = dict(chosen.pairs)
    for at in (marks[0], marks[-1]):
        if at not in pairs or lines[pairs[at]].strip() != new[at].strip():
            return None
    indents = Indents(lines, [(new[at], lines[row]) for at, row in chosen.pairs], new)
    if not indents.is_sound:
        return None
    made = [indents.fit(line) for line in new[marks[0] : marks[-1] + 1]]
    texts = [line for line in made if line is not None]
    if len(texts) < len(made):
        return None
    first, last = chosen.first_row, chosen.last_row
    is_sure = len(found) == 1 or chosen.share - found[1].share >= MIN_GAP
    for change in diff.changes(lines[first:last], texts):
        gone, came = (sum(map(_has_text, one)) for one in (change.old, change.new))
        is_sure = is_sure and came >= gone
    result = (*lines[:first], *texts, *lines[last:])
    return Reading(result, f"it is lines {first + 1} to {last}", is_sure)


def _appended(lines: Sequence[str], new: Sequence[str], language: str) -> Reading:
    """Read code as new definitions at the end."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    blanks = [""] * symbols.blank_lines(lines, symbols.top(lines, language))
    made = [*new]
    while made and not made[0].strip():
        del made[0]
    return Reading((*lines[:end], *blanks, *made, *lines[end:]), "it is new, at the end", False)


def _has_text(line: str) -> bool:
    return bool(line.strip())
