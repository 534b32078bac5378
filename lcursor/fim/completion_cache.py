"""What was suggested before: the same place again, or further on in a text that is being typed.

Owns finished suggestions, the newest last. Pure but for that; used on the engine's thread alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lcursor.fim.prompt import Source
from lcursor.fim.result import Reason

MAX_ENTRIES = 256
SUFFIX_CHARS = 768
"""How much of the text behind the cursor must be the same: about what the model is shown."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A finished suggestion and where it was made."""

    source: Source
    single_line: bool
    text: str
    confidence: float
    replace_bytes: int
    reason: Reason
    is_ahead: bool
    """Whether it was made before anyone asked."""


class CompletionCache:
    """The suggestions of late."""

    def __init__(self) -> None:
        self._known: deque[Entry] = deque(maxlen=MAX_ENTRIES)

    def add(self, known: Entry) -> None:
        """Keep a suggestion, an empty one too: then the model had nothing to say there."""
        self._known.append(known)

    def find(self, source: Source, single_line: bool) -> tuple[str, Entry] | None:
        """Return what is left of a known suggestion at this place; the newest that fits."""
        for known in reversed(self._known):
            rest = _rest(known, source, single_line)
            if rest is not None:
                return rest, known
        return None

    def clear(self) -> None:
        """Forget all, because what the model is shown besides has changed."""
        self._known.clear()

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._known)


def _rest(known: Entry, source: Source, single_line: bool) -> str | None:
    old = known.source
    is_here = (
        old.path == source.path
        and old.repo == source.repo
        and old.first_row == source.first_row
        and known.single_line == single_line
        and old.suffix[:SUFFIX_CHARS] == source.suffix[:SUFFIX_CHARS]
        and source.prefix.startswith(old.prefix)
    )
    if not is_here:
        return None
    typed = source.prefix[len(old.prefix) :]
    if not typed:
        return known.text
    rest = known.text[len(typed) :] if known.text.startswith(typed) else ""
    return rest if rest.strip() else None
