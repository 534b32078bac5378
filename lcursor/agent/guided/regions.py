"""Show rows of files with the ids of regions, so that a small model can choose one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from lcursor.agent.observe import numbered
from lcursor.agent.records import Shown
from lcursor.agent.tools.pages import Pages, Rows
from lcursor.code import languages, symbols

MAX_REGION_ROWS = 60
"""Text between functions is divided into regions of at most so many rows."""


class RegionPages(Pages):
    """Gives functions, and the text between them, ids."""

    def render(self, parts: Sequence[Rows]) -> list[list[str]]:
        """Return the numbered lines of each part. Records nothing."""
        spans = [self._spans(part) for part in parts]
        names = [names_of(part.lines, part.path, inside)
                 for part, inside in zip(parts, spans, strict=True)]  # fmt: skip
        ids = iter(self._seen.ids([*chain(*spans)], [*chain(*names)]))
        pages = []
        for part, inside in zip(parts, spans, strict=True):
            lines = list[str]()
            for span in inside:
                lines.append(f"{next(ids)}:")
                lines += numbered(part.lines, span.first_row, span.last_row)
            pages.append(lines)
        return pages

    def add_region(self, lines: Sequence[str], span: Shown) -> None:
        """Give an id to rows that were shown."""
        (name,) = names_of(lines, span.path, [span])
        self._seen.add_region(span, name)

    def _spans(self, part: Rows) -> list[Shown]:
        path, first, last = part.path, part.first_row, min(part.last_row, len(part.lines))
        cut = [(max(a, first), min(b, last)) for a, b in regions(part.lines, path)]
        return [Shown(path, a, b) for a, b in cut if a < b]


def regions(lines: Sequence[str], path: str) -> list[tuple[int, int]]:
    """Divide a text into its functions and the rows between them."""
    language = languages.detect(path, lines[0] if lines else "")
    functions = [each for each in symbols.all_of(lines, language) if each.is_function]
    spans: list[tuple[int, int]] = []
    row = 0
    ends = [(each.first, each.last) for each in symbols.outermost(functions)]
    for first, last in [*ends, (len(lines), len(lines))]:
        spans += ((at, min(at + MAX_REGION_ROWS, first))
                  for at in range(row, first, MAX_REGION_ROWS))  # fmt: skip
        if last > first:
            spans.append((first, last))
        row = max(last, row)
    return _trimmed(lines, spans)


def names_of(lines: Sequence[str], path: str, spans: Sequence[Shown]) -> list[str]:
    """Return a name for each region: `a.py#load` for its first definition, else its position.

    A small model chooses the right one of several names more often than of several numbers.
    """
    definitions = symbols.all_of(lines, languages.detect(path, lines[0] if lines else ""))
    names = []
    for span in spans:
        rows = range(span.first_row, span.last_row)
        other = f"line{span.first_row + 1}" if span.first_row else "top"
        names.append(
            f"{path}#{next((each.name for each in definitions if each.first in rows), other)}"
        )
    return names


def _trimmed(lines: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans without blank lines at their ends, and no blank ones."""
    trimmed = []
    for first, last in spans:
        rows = [row for row in range(first, last) if lines[row].strip()]
        if rows:
            trimmed.append((rows[0], rows[-1] + 1))
    return trimmed
