"""Adapt the indentation of new lines to the text. Pure.

A reply may be shifted to the left, or have tabs instead of spaces. Its quoted lines, which are also
in the text, show how to indent its new lines.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from textwrap import dedent

from lcursor.changes.lines import has_text, indent_of


class IndentMap:
    """Maps the indentation of a reply to the indentation of a text.

    `known` has pairs of a quoted line and the same line in the text.
    """

    def __init__(
        self, lines: Sequence[str], known: Sequence[tuple[str, str]], new: Sequence[str]
    ) -> None:
        known = [(quoted, line) for quoted, line in known if has_text(quoted) and has_text(line)]
        self._known: dict[str, str] = {}
        for quoted, line in known:
            self._known.setdefault(indent_of(quoted), indent_of(line))
        widths = sorted((_width(here), _width(there)) for here, there in self._known.items())
        self.is_consistent = all(
            self._known[indent_of(quoted)] == indent_of(line) for quoted, line in known
        ) and all(one[1] < other[1] or one[0] == other[0] for one, other in pairwise(widths))
        """Whether the mapping of indentations is unique and monotonic."""
        self._is_escaped = any(
            quoted.strip() != line.strip() == html.unescape(quoted.strip())
            for quoted, line in known
        )
        self._strips_end = any(
            quoted.rstrip() != quoted and line.rstrip() == line for quoted, line in known
        )
        reply = dedent("\n".join([*(quoted for quoted, _ in known), *new])).split("\n")
        self._units = unit(reply), unit(lines)

    def fit_all(self, lines: Sequence[str]) -> list[str] | None:
        """Return new lines with the indentation of the text; None if that is ambiguous."""
        made = [self._fit(line) for line in lines]
        fitted = [line for line in made if line is not None]
        return fitted if len(fitted) == len(made) else None

    def _fit(self, line: str) -> str | None:
        if not has_text(line):
            return line
        text = line.strip() if self._strips_end else line.lstrip()
        text = html.unescape(text) if self._is_escaped else text
        indent = self._indent(indent_of(line))
        return None if indent is None else indent + text

    def _indent(self, here: str) -> str | None:
        """Return the text's indentation for an indentation of the reply."""
        if not self._known:
            return here
        if here in self._known:
            return self._known[here]
        one, other = self._units
        near = min(self._known, key=lambda known: abs(_width(known) - _width(here)))
        there = self._known[near]
        if one == other or (near == there and one[:1] == other[:1]) or not (one and other):
            if here.startswith(near):
                return there + here[len(near) :]
            cut = near[len(here) :]
        else:
            levels, odd = divmod(_width(here) - _width(near), _width(one))
            if odd:
                return None
            if levels > 0:
                return there + other * levels
            cut = other * -levels
        return there.removesuffix(cut) if there.endswith(cut) else None


def unit(lines: Sequence[str]) -> str:
    """Return the indentation of one level; "" if nothing is indented."""
    indents = [indent_of(line) for line in lines if has_text(line)]
    tabs = sum(indent.startswith("\t") for indent in indents)
    widths = [len(indent) for indent in indents if not indent.startswith("\t")]
    if tabs > sum(width > 0 for width in widths):
        return "\t"
    steps = Counter(b - a for a, b in zip([0, *widths], widths, strict=False) if 1 < b - a <= 8)
    if not steps:
        return " " * min(filter(None, widths), default=0)
    return " " * max(steps, key=lambda size: (steps[size], -size))


def _width(indent: str) -> int:
    return len(indent.expandtabs(8))
