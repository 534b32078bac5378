"""What may be printed on a terminal."""

from __future__ import annotations

import unicodedata

ORDINARY = "\n\t\u00ad\u200c\u200d"
"""Control and format characters of ordinary text: the last ones hyphenate, separate and join."""


def safe(text: str) -> str:
    """Replace control characters: a terminal would execute those that a model writes."""
    return "".join(
        c if c in ORDINARY or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "�"
        for c in text
    )
