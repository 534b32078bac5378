"""Remember which rows of files a model has read, and the ids of regions.

When a file changes, unchanged rows stay read, at their new positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from lcursor.agent.records import Shown
from lcursor.changes import diff
from lcursor.changes.lines import stripped

MAX_PRINTED = 50_000
"""Maximum number of lines printed by commands that are remembered."""


class ReadLines:
    """What a model has read. For one thread."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[tuple[str, ...], bytearray]] = {}
        self._regions: dict[str, Shown] = {}
        self._paths: dict[str, None] = {}
        self._printed: set[str] = set()

    @property
    def paths(self) -> list[str]:
        """The files that were named, the newest last."""
        return list(self._paths)

    @property
    def regions(self) -> Mapping[str, Shown]:
        """The regions by id, as of the last time that their files were read."""
        return self._regions

    def name(self, paths: Iterable[str]) -> None:
        """Record that files were named."""
        for path in paths:
            self._paths.pop(path, None)
            self._paths[path] = None

    def print(self, lines: Sequence[str]) -> None:
        """Record lines that a command printed: they may be lines of any file."""
        if len(self._printed) < MAX_PRINTED:
            self._printed.update(stripped(lines))

    def show(self, path: str, lines: Sequence[str], first_row: int, last_row: int) -> Shown:
        """Record that rows were shown."""
        self.name([path])
        flags = self.update(path, lines)
        first_row, last_row = min(first_row, len(lines)), min(last_row, len(lines))
        flags[first_row:last_row] = b"\1" * (last_row - first_row)
        return Shown(path, first_row, last_row)

    def ids(self, regions: Sequence[Shown], names: Sequence[str]) -> list[str]:
        """Return the ids that regions will have once they are added in this order.

        Args:
            names: wanted ids; a number is appended to one that another region has.
        """
        id_of = {region: key for key, region in self._regions.items()}
        keys = {*self._regions}
        for region, name in zip(regions, names, strict=True):
            if region not in id_of:
                key = next(key for key in _numbered(name) if key not in keys)
                keys.add(key)
                id_of[region] = key
        return [id_of[region] for region in regions]

    def add_region(self, shown: Shown, name: str) -> None:
        """Give a region an id, unless the same rows have one."""
        (key,) = self.ids([shown], [name])
        self._regions[key] = shown

    def is_shown(self, path: str, lines: Sequence[str], first_row: int, last_row: int) -> bool:
        """Return whether all rows that are not blank were shown, as they are now."""
        flags = self.update(path, lines)
        rows = range(first_row, min(last_row, len(lines)))
        texts = (lines[row].strip() for row in rows if not flags[row])
        return all(not text or text in self._printed for text in texts)

    def update(self, path: str, lines: Sequence[str]) -> bytearray:
        """Move what is known of a file to its present text; return a flag for each row."""
        now = tuple(lines)
        if path not in self._rows:
            self._rows[path] = (now, bytearray(len(now)))
        was, flags = self._rows[path]
        if was == now:
            return flags
        moved, row, at = bytearray(len(now)), 0, 0
        changed = list(diff.spans(was, now))
        for first, last, start, end in [*changed, (len(was), len(was), len(now), len(now))]:
            moved[at:start] = flags[row:first]
            row, at = last, end
        self._rows[path] = (now, moved)
        for key, region in self._regions.items():
            if region.path == path:
                self._regions[key] = Shown(path, *_moved(region, changed))
        return moved


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _moved(region: Shown, changed: Sequence[diff.Span]) -> tuple[int, int]:
    """Return the rows of a region after some changes; changes inside of it belong to it."""
    start, end = region.first_row, region.last_row
    for first, last, new_first, new_last in changed:
        if last <= region.first_row:
            start = region.first_row + new_last - last
        elif first < region.first_row:
            start = new_first
        if last <= region.last_row and first < max(last, region.last_row):
            end = region.last_row + new_last - last
        elif first < region.last_row:
            end = new_last
    return start, max(end, start)
