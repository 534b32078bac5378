"""How lines are indented where they come from, and how they must be where they go. Pure.

Learned from lines that are in both: a reply that was moved to the left, or has tabs for blanks,
says by what it quotes how what it adds is to be indented.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence


class Indents:
    """Fits new lines to a text.

    Args:
        lines: of the text.
        known: lines as they were quoted, and as they are in the text.
        new: lines that are to be fitted, for what they are indented by.
    """

    def __init__(
        self, lines: Sequence[str], known: Sequence[tuple[str, str]], new: Sequence[str]
    ) -> None:
        self._known: dict[str, str] = {}
        self.is_sound = True
        """Whether the lines that are known can be understood at all."""
        self._is_escaped = False
        is_loose, is_kept = [0, 0], False  # blanks at the ends of lines
        for here, there in known:
            if not here.strip() or not there.strip():
                continue
            one, other = indent_of(here), indent_of(there)
            if self._known.setdefault(one, other) != other:
                self.is_sound = False
            if here.strip() != there.strip() == html.unescape(here.strip()):
                self._is_escaped = True
            is_loose[here != here.rstrip()] += there == there.rstrip()
            is_kept = is_kept or there != there.rstrip()
        self._is_bare = is_loose[1] > 0 and not is_kept
        self._is_same = all(one == other for one, other in self._known.items())
        for one, one_there in self._known.items():
            for other, other_there in self._known.items():
                if _wide(one) < _wide(other) and not _wide(one_there) < _wide(other_there):
                    self.is_sound = False
        self._add = self._cut = ""
        self._is_shift = False
        self._find_shift()
        self._units = (unit([*(here for here, _ in known), *new]), unit(lines))

    def _find_shift(self) -> None:
        pairs = list(self._known.items())
        if not pairs:
            return
        here, there = min(pairs, key=lambda pair: len(pair[0]))
        if there.endswith(here):
            self._add = there[: len(there) - len(here)]
        elif here.endswith(there):
            self._cut = here[: len(here) - len(there)]
        else:
            return
        self._is_shift = all(
            there == self._add + here[len(self._cut) :] and here.startswith(self._cut)
            for here, there in pairs
        )

    def fit(self, line: str) -> str | None:
        """Return a new line as it is indented in the text; None where that cannot be told."""
        if not line.strip():
            return line
        text = line.strip() if self._is_bare else line.lstrip()
        text = html.unescape(text) if self._is_escaped else text
        here = indent_of(line)
        if here in self._known:
            return self._known[here] + text
        one, other = self._units
        is_kin = not one or not other or one[0] == other[0]
        if self._is_same and (is_kin or len(self._known) > 1):
            return here + text
        if self._is_shift and is_kin:
            return self._add + here[len(self._cut) :] + text if here.startswith(self._cut) else None
        guess = self._scaled(here)
        return None if guess is None else guess + text

    def _scaled(self, here: str) -> str | None:
        """Return indentation that was not quoted, by steps of what both are indented by."""
        one, other = self._units
        if not one or not other or not self._known:
            return None
        near = min(self._known, key=lambda known: abs(_wide(known) - _wide(here)))
        steps, odd = divmod(_wide(here) - _wide(near), _wide(one))
        there = self._known[near]
        if odd:
            return None
        if steps >= 0:
            return there + other * steps
        cut = len(other) * -steps
        return there[: len(there) - cut] if there.endswith(other * -steps) else None


def unit(lines: Sequence[str]) -> str:
    """Return what a text is indented by, step by step; "" where nothing is indented."""
    tabs = blanks = 0
    steps: Counter[int] = Counter()
    before = 0
    for line in lines:
        if not line.strip():
            continue
        own = indent_of(line)
        if own.startswith("\t"):
            tabs += 1
        elif own:
            blanks += 1
        if "\t" not in own:
            if len(own) - before in {1, 2, 3, 4, 8}:
                steps[len(own) - before] += 1
            before = len(own)
    if tabs > blanks:
        return "\t"
    if not blanks:
        return ""
    if not steps:
        least = min(len(indent_of(line)) for line in lines if indent_of(line) and line.strip())
        return " " * least
    # One blank more is how comments and brackets are lined up.
    real = {size: count for size, count in steps.items() if size > 1} or steps
    return " " * max(real, key=lambda size: (real[size], -size))


def indent_of(line: str) -> str:
    """Return what a line is indented by."""
    return line[: len(line) - len(line.lstrip())]


def _wide(indent: str) -> int:
    return len(indent.expandtabs(8))
