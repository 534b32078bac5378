"""Find where a fence of Markdown begins and ends, line by line. Pure.

A fence within a fence, as in a document or a docstring, does not end the outer one if that can be
seen: it is indented deeper, has fewer marks, or begins with a language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_OPEN: Final = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+|>[ \t]?)?)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$"
)
_CLOSE: Final = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]?)?)(?P<marks>`{3,}|~{3,})[ \t]*$")


@dataclass(slots=True)
class Fence:
    """An open fence."""

    marks: str
    indent: int
    info: str
    _inner: list[str] = field(default_factory=list)

    def is_end(self, line: str) -> bool:
        """Return whether a line ends the fence; to be called for each line, in order."""
        close = _CLOSE.match(line)
        if close:
            marks = close["marks"]
            if self._inner and marks.startswith(self._inner[-1]):
                self._inner.pop()
                return False
            is_long = marks.startswith(self.marks)
            return not self._inner and is_long and len(close["indent"]) <= self.indent
        opened = _OPEN.match(line)
        if opened and re.fullmatch(r"\s*[\w+#.-]+\s*", opened["info"]):
            marks = opened["marks"]
            if marks[0] == self.marks[0] and len(opened["indent"]) <= self.indent:
                self._inner.append(marks)
        return False

    def unindent(self, line: str) -> str:
        """Return a line without the indentation of the fence."""
        cut = 0
        while cut < min(self.indent, len(line)) and line[cut] in " \t>":
            cut += 1
        return line[cut:]


def opening(line: str) -> Fence | None:
    """Return the fence that a line opens, None if it opens none."""
    found = _OPEN.match(line)
    return Fence(found["marks"], len(found["indent"]), found["info"].strip()) if found else None
