"""Indent new lines for the text that they go to. Pure.

The indentation is learned from lines that are in both: the quoted lines of a reply that was moved
to the left, or has tabs instead of spaces, show how its new lines must be indented.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

from lcursor.edit.lines import has_text, indent_of


class IndentMap:
    """Maps the indentation of a reply to that of a text.

    Args:
        lines: of the text.
        known: pairs of a quoted line and that line in the text.
        new: the lines to be indented.
    """

    def __init__(
        self, lines: Sequence[str], known: Sequence[tuple[str, str]], new: Sequence[str]
    ) -> None:
        self._known: dict[str, str] = {}
        self.is_consistent = True
        """Whether the known lines can be mapped at all."""
        self._is_escaped = False
        trailing, is_kept = 0, False  # trailing space of quotes, and of the text
        for quoted, line in known:
            if not has_text(quoted) or not has_text(line):
                continue
            indent = self._known.setdefault(indent_of(quoted), indent_of(line))
            self.is_consistent &= indent == indent_of(line)
            if quoted.strip() != line.strip() == html.unescape(quoted.strip()):
                self._is_escaped = True
            trailing += quoted != quoted.rstrip() and line == line.rstrip()
            is_kept = is_kept or line != line.rstrip()
        self._strips_end = trailing > 0 and not is_kept
        self._is_same = all(one == other for one, other in self._known.items())
        for one, one_there in self._known.items():
            for other, other_there in self._known.items():
                if _width(one) < _width(other) and not _width(one_there) < _width(other_there):
                    self.is_consistent = False
        self._add = self._cut = ""
        self._is_shift = self._find_shift()
        self._units = unit([*(quoted for quoted, _ in known), *new]), unit(lines)

    def _find_shift(self) -> bool:
        """Find the prefix that is added or cut; return whether that explains all known lines."""
        if not self._known:
            return False
        here, there = min(self._known.items(), key=lambda pair: len(pair[0]))
        if there.endswith(here):
            self._add = there[: len(there) - len(here)]
        elif here.endswith(there):
            self._cut = here[: len(here) - len(there)]
        else:
            return False
        return all(
            there == self._add + here[len(self._cut) :] and here.startswith(self._cut)
            for here, there in self._known.items()
        )

    def fit_all(self, lines: Sequence[str]) -> list[str] | None:
        """Return new lines as they are indented in the text; None if that is not clear."""
        made = [self.fit(line) for line in lines]
        fitted = [line for line in made if line is not None]
        return fitted if len(fitted) == len(made) else None

    def fit(self, line: str) -> str | None:
        """Return a new line as it is indented in the text; None if that is not clear."""
        if not has_text(line):
            return line
        text = line.strip() if self._strips_end else line.lstrip()
        text = html.unescape(text) if self._is_escaped else text
        here = indent_of(line)
        if here in self._known:
            return self._known[here] + text
        one, other = self._units
        is_alike = not one or not other or one[0] == other[0]
        if self._is_same and (is_alike or len(self._known) > 1):
            return here + text
        if self._is_shift and is_alike:
            return self._add + here[len(self._cut) :] + text if here.startswith(self._cut) else None
        guess = self._scaled(here)
        return None if guess is None else guess + text

    def _scaled(self, here: str) -> str | None:
        """Return the indentation with the same number of levels."""
        one, other = self._units
        if not one or not other or not self._known:
            return None
        near = min(self._known, key=lambda known: abs(_width(known) - _width(here)))
        steps, odd = divmod(_width(here) - _width(near), _width(one))
        there = self._known[near]
        if odd:
            return None
        if steps >= 0:
            return there + other * steps
        cut = len(other) * -steps
        return there[: len(there) - cut] if there.endswith(other * -steps) else None


def unit(lines: Sequence[str]) -> str:
    """Return the indentation of one level in a text; "" if nothing is indented."""
    tabs = spaces = before = 0
    steps: Counter[int] = Counter()
    indents = [indent_of(line) for line in lines if has_text(line)]
    for indent in indents:
        tabs += indent.startswith("\t")
        spaces += indent != "" and not indent.startswith("\t")
        if "\t" not in indent:
            if len(indent) - before in {1, 2, 3, 4, 8}:
                steps[len(indent) - before] += 1
            before = len(indent)
    if tabs > spaces:
        return "\t"
    if not spaces:
        return ""
    if not steps:
        return " " * min(len(indent) for indent in indents if indent)
    # One extra space aligns comments and brackets.
    real = {size: count for size, count in steps.items() if size > 1} or steps
    return " " * max(real, key=lambda size: (real[size], -size))


def _width(indent: str) -> int:
    return len(indent.expandtabs(8))
