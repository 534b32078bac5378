"""Files in, store out: what is known of each, what is read, what is written together.

Owns the picture of what the store knows. Used on the pipeline's thread alone, but for `store`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lcursor.index import chunk, reading, skip
from lcursor.index.records import FileState, Parsed
from lcursor.index.rows import Entry
from lcursor.index.store import Store

NOTHING = Parsed("", (), ())
"""Of a file that holds nothing to find: its state is kept, so that it is not read again."""


@dataclass(slots=True)
class Batch:
    """What is written together."""

    taken: int = 0
    """Files looked at."""
    bytes: int = 0
    parts: list[Entry] = field(default_factory=list)
    touched: list[tuple[str, FileState]] = field(default_factory=list)
    """Their time is another, their content is not."""
    gone: list[str] = field(default_factory=list)


class Filler:
    """Reads files of a project into its store.

    Args:
        root: of the project.
        store: that is filled.
    """

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.store = root, store
        self.known: dict[str, FileState] = {}
        self.is_untidy = True
        """Whether something was written since the store was tidied."""
        self._identity = ""

    def load(self) -> None:
        """Look what the store knows, unless that was done; anew where it was begun anew."""
        identity = self.store.identity
        if identity != self._identity:
            self.known = dict(self.store.files())
            self._identity = identity

    @property
    def is_anew(self) -> bool:
        """Whether the store was damaged and has begun anew since `load`."""
        return self.store.identity != self._identity

    def take(self, path: str, batch: Batch) -> None:
        """Read and parse one file into what is to be written."""
        batch.taken += 1
        found = reading.read(self.root, path)
        if isinstance(found, reading.Refusal):
            if path in self.known and not found.is_restless:
                batch.gone.append(path)
            return
        known = self.known.get(path)
        if known is not None and known.digest == found.state.digest:
            if known != found.state:
                batch.touched.append((path, found.state))
            return
        parsed = NOTHING
        if not skip.by_content(found.data):
            parsed = chunk.read(path, skip.decode(found.data))
        batch.parts.append((path, found.state, parsed))
        batch.bytes += len(found.data)

    def write(self, batch: Batch) -> None:
        """Bring a batch into the store."""
        if batch.parts:
            self.store.put_many(batch.parts)
            self.known.update((path, state) for path, state, _ in batch.parts)
            self.is_untidy = True
        if batch.touched:
            self.store.touch(batch.touched)
            self.known.update(batch.touched)
        self.forget(batch.gone)

    def forget(self, paths: Sequence[str]) -> None:
        """Take files out of the store."""
        if paths:
            self.store.remove(paths)
            for path in paths:
                self.known.pop(path, None)

    def forget_below(self, unknown: Iterable[str]) -> None:
        """Of what is not there, some may have been directories: forget what was in them."""
        folders = {path for path in unknown if not os.path.lexists(os.path.join(self.root, path))}
        if folders:
            self.forget([path for path in self.known if not folders.isdisjoint(_above(path))])

    def tidy(self) -> bool:
        """Put the store in order, a bit; return whether there is more to do."""
        self.is_untidy = self.is_untidy and self.store.tidy()
        return self.is_untidy


def _above(path: str) -> Iterator[str]:
    """Yield the directories that a path is in, without the root."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
