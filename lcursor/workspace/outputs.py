"""Compare the outputs of a command before and after a change. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_DIGITS: Final = re.compile(r"\d+")


def new_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines of an output that were not in an earlier one; numbers do not count."""
    left = Counter(_DIGITS.sub("", line) for line in before)
    found = []
    for line in after:
        key = _DIGITS.sub("", line)
        if left[key] > 0:
            left[key] -= 1
        elif line.strip():
            found.append(line)
    return found
