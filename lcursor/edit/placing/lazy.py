"""Code that leaves out what stays, and what it stands for: `# ... existing code ...`.

What is left out is taken from the text that is there. Each end of an omission must be held by a
line, or a whole definition, that is there once; otherwise it is refused. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from lcursor.code import symbols
from lcursor.code.symbols import Symbol
from lcursor.edit import diff
from lcursor.edit.placing import omitted
from lcursor.edit.placing.omitted import Unsure, has_text
from lcursor.edit.records import Lines

MOST_DELETED: Final = 0.3
"""Share of a text that such code may remove; more, and it is likelier that a line is missing."""
MOST_SHARED: Final = 0.5
"""Share of lines that two definitions of different names may have in common."""
MOST_DEPTH: Final = 8

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


def is_omission(line: str) -> bool:
    """Return whether a line reads as one that stands for others."""
    if not ("." in line or "…" in line or _COMMENTED.match(line)):
        return False
    if _DOTTED.match(line):
        text = line.strip()
        if text in {"...", "…"} or _COMMENTED.match(text) or text[:1] in ".…[":
            return not re.match(r"^\.\.\.\w", text)  # a spread or the rest of parameters
        return False
    return _PLAIN.match(line) is not None


def is_lazy(lines: Sequence[str], language: str = "", base: Sequence[str] = ()) -> bool:
    """Return whether lines leave something out that the base does not leave out itself.

    Args:
        lines: what was written.
        language: theirs; a bare `...` is a statement of Python.
        base: a line that is one of these stands for itself.
    """
    return bool(_omissions(lines, language, base))


def _omissions(lines: Sequence[str], language: str, base: Sequence[str]) -> list[int]:
    known = {line.strip() for line in base}
    found = [
        row for row, line in enumerate(lines) if is_omission(line) and line.strip() not in known
    ]
    if language in {"python", ""} and not base:
        found = [row for row in found if not _is_body(lines, row)]
    return found


def _is_body(lines: Sequence[str], row: int) -> bool:
    """Return whether a bare `...` is all that a definition of Python has in it."""
    if lines[row].strip() != "...":
        return False
    above = next((line for line in reversed(lines[:row]) if line.strip()), "")
    below = next((line for line in lines[row + 1 :] if line.strip()), "")
    deeper = _indent(below) >= _indent(lines[row]) if below else False
    return above.rstrip().endswith((":", '"""', "'''")) and not deeper


def merge(
    base: Sequence[str], sketch: Sequence[str], language: str = "", *, is_bold: bool = False
) -> Lines | None:
    """Return the base with what the sketch changes, None where that cannot be told for sure.

    Args:
        base: all that the sketch is about.
        sketch: it, with omissions.
        language: theirs.
        is_bold: new lines beside an omission are taken for new, and not for the new form of old
            ones. That is a guess: somebody must look at it.
    """
    try:
        merged = _Merger(base, language, is_bold).text(list(base), list(sketch), 0)
    except Unsure:
        return None
    return _checked(base, merged, language)


def merge_symbol(
    base: Sequence[str],
    own: Symbol,
    sketch: Sequence[str],
    symbol: Symbol,
    language: str,
    *,
    is_bold: bool = False,
) -> Lines | None:
    """Return one definition with what its new form changes; None as in `merge`.

    Args:
        base: the definition, all of it.
        own: its rows, of which only the distances count.
        sketch: its new form, with omissions or without.
        symbol: the rows of that.
        language: theirs.
        is_bold: as in `merge`.
    """
    heads = (own.head_last - own.first, symbol.head_last - symbol.first)
    try:
        merger = _Merger(base, language, is_bold)
        merged = merger.symbol(list(base), list(sketch), *heads, 0)
    except Unsure:
        return None
    return _checked(base, merged, language)


def end_of(
    base: Sequence[str], own: Symbol, sketch: Sequence[str], symbol: Symbol, language: str
) -> int:
    """Return the row behind a definition of a sketch, with an omission of its own rest.

    What follows without an empty line leaves out the rest of this very definition; what follows
    with one does where the definition has no end yet.
    """
    gap = symbol.last
    while gap < len(sketch) and not has_text(sketch[gap]):
        gap += 1
    if gap == len(sketch) or not _omissions(sketch[gap : gap + 1], language, base):
        return symbol.last
    if gap == symbol.last:
        return gap + 1
    there = base[own.first : own.last]
    changes = diff.changes(there, sketch[symbol.first : symbol.last])
    if changes and not any(map(has_text, there[changes[-1].last_row :])):
        old, new = (sum(map(has_text, part)) for part in (changes[-1].old, changes[-1].new))
        return gap + 1 if new < old else symbol.last
    return symbol.last


def _checked(base: Sequence[str], merged: list[str], language: str) -> Lines | None:
    """Return what was merged, None where it looks as if it lost something."""
    if _omissions(merged, language, base):
        return None
    if omitted.deleted(base, merged) > MOST_DELETED * max(sum(map(has_text, base)), 1):
        return None
    if not symbols.parses_no_worse(base, merged, language):
        return None
    return tuple(merged)


class _Merger:
    """Merges definition by definition, and by lines where there are none. All raise `Unsure`."""

    def __init__(self, base: Sequence[str], language: str, is_bold: bool) -> None:
        self._language, self._is_bold = language, is_bold
        self._names = {one.name for one in symbols.all_of(base, language)}

    def text(self, base: list[str], sketch: list[str], depth: int) -> list[str]:
        """Merge a text of several definitions, or of none."""
        gaps = _omissions(sketch, self._language, base)
        if not gaps:
            return sketch
        named = symbols.top(readable(sketch, gaps, self._language), self._language, gaps)
        known = symbols.top(base, self._language)
        if not named or not known or depth > MOST_DEPTH:
            return self._lines(base, sketch)
        return self._walked(base, sketch, (0, 0), named, known, depth)

    def _walked(
        self,
        base: list[str],
        sketch: list[str],
        start: tuple[int, int],
        named: Sequence[Symbol],
        known: Sequence[Symbol],
        depth: int,
    ) -> list[str]:
        """Merge definition by definition, from a row of the base and one of the sketch on."""
        result: list[str] = []
        row, at = start  # behind what is done of both
        for place, symbol in enumerate(named):
            own = _same(base, known, sketch, symbol)
            if own is None:
                if symbol.name in self._names:
                    raise Unsure  # it is in something else
                _refuse_renamed(base, known, named, sketch, symbol)
                if at > start[1] and not any(map(has_text, sketch[at : symbol.first])):
                    result += sketch[at : symbol.last]  # right behind one that is there
                    at = symbol.last
                    continue
                if _leads(sketch, named[place:], base, known):
                    continue  # right above one that is there: it comes with that
                return result + self._fresh(base, row, sketch, at, named[place:], known)
            if own.first < row:
                raise Unsure  # it moved
            first, begin = symbols.lead_rows(base, own, sketch, symbol)
            ahead = place
            while ahead > 0 and named[ahead - 1].first >= at:
                ahead -= 1
            new = named[ahead].first if ahead < place else begin
            result += self._between(base[row:first], sketch[at:new])
            result += sketch[new:begin]
            end = end_of(base, own, sketch, symbol, self._language)
            result += self.symbol(
                base[first : own.last],
                sketch[begin:end],
                own.head_last - first,
                symbol.head_last - begin,
                depth,
            )
            row, at = own.last, symbol.last
        return result + self._between(base[row:], sketch[at:], is_end=True)

    def _fresh(
        self,
        base: list[str],
        row: int,
        sketch: list[str],
        at: int,
        new: Sequence[Symbol],
        known: Sequence[Symbol],
    ) -> list[str]:
        """Add definitions that are new at the end, behind an omission of all else."""
        if any(one.name == other.name for one in new for other in known):
            raise Unsure
        if any(map(has_text, sketch[new[-1].last :])):
            raise Unsure
        for one, other in pairwise(new):
            if any(map(has_text, sketch[one.last : other.first])):
                raise Unsure
        head = sketch[at : new[0].first]
        while head and not has_text(head[-1]):
            head.pop()
        if not head or not self._gaps(head[-1:], base):
            raise Unsure
        kept = self._between(base[row:], head, is_end=True)
        tail = len(kept)
        while tail and not has_text(kept[tail - 1]):
            tail -= 1
        blank = [""] * symbols.blank_lines(base, known)
        return kept[:tail] + blank + sketch[new[0].first : new[-1].last] + kept[tail:]

    def _between(self, base: list[str], sketch: list[str], *, is_end: bool = False) -> list[str]:
        """Merge what stands between two definitions; the base may have others in it."""
        gaps = self._gaps(sketch, base)
        said = [line for row, line in enumerate(sketch) if has_text(line) and row not in gaps]
        if not gaps:
            there = [line for line in base if has_text(line)]
            if not there:
                return sketch if said or not is_end else base
            if there == said:
                return base
            raise Unsure
        return self._lines(base, sketch, is_held=not is_end) if said else base

    def symbol(
        self, base: list[str], sketch: list[str], base_head: int, head: int, depth: int
    ) -> list[str]:
        """Merge a definition with its new form: the head as it is written, then what is in it."""
        gaps = self._gaps(sketch, base)
        if not gaps:
            changes = diff.changes(base, sketch)
            gone = any(has_text(line) for one in changes for line in one.old)
            if gone and not any(has_text(line) for one in changes for line in one.new):
                raise Unsure  # it may have been cut, too
            return sketch
        if gaps[0] < head:
            raise Unsure
        named = symbols.within(readable(sketch, gaps, self._language), self._language, gaps)
        known = symbols.within(base, self._language)
        start = (base_head, head)
        if not named or not known or named[0].own_first < head or depth > MOST_DEPTH:
            return sketch[:head] + self._lines(base[base_head:], sketch[head:])
        if all(_same(base, known, sketch, one) for one in named):
            return sketch[:head] + self._walked(base, sketch, start, named, known, depth + 1)
        tail_at, tail = _closing(sketch, named[-1].last), _closing(base, known[-1].last)
        if [one.strip() for one in sketch[tail_at:]] != [one.strip() for one in base[tail:]]:
            raise Unsure
        inner = self._walked(base[:tail], sketch[:tail_at], start, named, known, depth + 1)
        return sketch[:head] + inner + base[tail:]

    def _lines(self, base: list[str], sketch: list[str], *, is_held: bool = False) -> list[str]:
        gaps = self._gaps(sketch, base)
        return omitted.merged(base, sketch, gaps, is_bold=self._is_bold, is_held=is_held)

    def _gaps(self, sketch: Sequence[str], base: Sequence[str]) -> list[int]:
        return _omissions(sketch, self._language, base)


def _same(
    base: Sequence[str], known: Sequence[Symbol], sketch: Sequence[str], symbol: Symbol
) -> Symbol | None:
    """Return the one definition that another is the new form of, None where it is new.

    Raises:
        Unsure: there are several.
    """
    same = [one for one in known if one.name == symbol.name]
    if len(same) > 1:
        head = _head(sketch, symbol)
        same = [one for one in same if _head(base, one) == head]
        if len(same) != 1:
            raise Unsure
    if same and same[0].kind != symbol.kind:
        raise Unsure
    return same[0] if same else None


def _leads(
    sketch: Sequence[str], named: Sequence[Symbol], base: Sequence[str], known: Sequence[Symbol]
) -> bool:
    """Return whether new definitions stand right above one that is there."""
    for one, other in pairwise(named):
        if any(map(has_text, sketch[one.last : other.first])):
            return False
        if _same(base, known, sketch, other) is not None:
            return True
    return False


def _refuse_renamed(
    base: Sequence[str],
    known: Sequence[Symbol],
    named: Sequence[Symbol],
    sketch: Sequence[str],
    symbol: Symbol,
) -> None:
    """Raise `Unsure` where a new definition may be one that is there, with another name."""
    names = {one.name for one in named}
    body = {line.strip() for line in sketch[symbol.head_last : symbol.last] if has_text(line)}
    for one in known:
        there = {line.strip() for line in base[one.head_last : one.last] if has_text(line)}
        shared = len(body & there)
        if one.name not in names and shared > max(1, MOST_SHARED * min(len(body), len(there))):
            raise Unsure


def _closing(lines: Sequence[str], row: int) -> int:
    """Return the row of the brackets that close what lines are of, behind a row."""
    last = len(lines)
    while last > row and lines[last - 1].strip() in {"}", "};", "end", "})", "});", ""}:
        last -= 1
    return last


def readable(sketch: Sequence[str], gaps: Sequence[int], language: str) -> list[str]:
    """Return a sketch that a parser can read, with as many lines."""
    sign = symbols.comment(language)
    lines = list(sketch)
    for row in gaps:
        indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
        lines[row] = f"{indent}..." if language == "python" else f"{indent}{sign}"
    return lines


def _head(lines: Sequence[str], symbol: Symbol) -> list[str]:
    return [line.strip() for line in lines[symbol.first : symbol.head_last]]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
