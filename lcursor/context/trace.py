"""Places in files that a stack trace or a compiler names. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MOST = 40
_PYTHON: Final = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<row>\d+)')
_PLACE: Final = re.compile(
    r"(?<![\w/.@~+-])(?:file://)?(?P<path>(?:~|\.{1,2})?/?(?:[\w.@+\-\[\]]+/)*"
    r"[\w@+\-\[\]][\w.@+\-\[\]]*\.[A-Za-z]\w{0,7}):(?P<row>\d+)(?!\w)"
)
_MOST_LINE = 2000


class Frame(NamedTuple):
    """One place."""

    path: str
    """As it is named there."""
    row: int


def frames(text: str) -> list[Frame]:
    """Return the places that are named, in their order, each once."""
    found: dict[Frame, None] = {}
    for line in text.splitlines():
        part = line[:_MOST_LINE]
        for pattern in (_PYTHON, _PLACE):
            for match in pattern.finditer(part):
                found[Frame(match["path"], max(int(match["row"]) - 1, 0))] = None
            if pattern is _PYTHON and _PYTHON.search(part):
                break
        if len(found) >= MOST:
            break
    return list(found)[:MOST]
