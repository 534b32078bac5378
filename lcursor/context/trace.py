"""Find the file positions in stack traces and compiler messages. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX = 40
_PYTHON: Final = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<row>\d+)')
_LOCATION: Final = re.compile(
    r"(?<![\w/.@~+-])(?:file://)?(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+\-\[\]]+/)*"
    r"[\w@+\-\[\]][\w.@+\-\[\]]*\.[A-Za-z]\w{0,7}):(?P<row>\d+)(?!\w)"
)
_MAX_LINE = 2000


class Frame(NamedTuple):
    """A position in a file."""

    path: str
    """The path as printed."""
    row: int


def frames(text: str) -> list[Frame]:
    """Return the positions in a text, in order, each once."""
    found: dict[Frame, None] = {}
    for line in text.splitlines():
        part = line[:_MAX_LINE]
        for pattern in (_PYTHON, _LOCATION):
            for match in pattern.finditer(part):
                found[Frame(match["path"], max(int(match["row"]) - 1, 0))] = None
            if pattern is _PYTHON and _PYTHON.search(part):
                break
        if len(found) >= MAX:
            break
    return list(found)[:MAX]
