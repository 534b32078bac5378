"""Show rows of files to a model, with line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lcursor.agent.observe import numbered
from lcursor.agent.records import Shown
from lcursor.agent.tools.read_lines import ReadLines


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file."""

    path: str
    lines: Sequence[str]
    """Of the whole file."""
    first_row: int
    last_row: int


class Pages:
    """Renders rows of files, and records what was shown."""

    def __init__(self, seen: ReadLines) -> None:
        self._seen = seen

    def render(self, parts: Sequence[Rows]) -> list[list[str]]:
        """Return the numbered lines of each part. Records nothing."""
        return [numbered(part.lines, part.first_row, part.last_row) for part in parts]

    def record(self, parts: Sequence[Rows]) -> tuple[Shown, ...]:
        """Record that parts were shown as they were rendered last."""
        recorded: list[Shown] = []
        for part in parts:
            for span in self._spans(part):
                self._seen.show(part.path, part.lines, span.first_row, span.last_row)
                self.add_region(part.lines, span)
                recorded.append(span)
        return tuple(recorded)

    def add_region(self, lines: Sequence[str], span: Shown) -> None:
        """Give an id to rows that were shown, if regions have ids."""

    def _spans(self, part: Rows) -> list[Shown]:
        """Return the regions in some rows."""
        first, last = part.first_row, min(part.last_row, len(part.lines))
        return [Shown(part.path, first, last)] if first < last else []
