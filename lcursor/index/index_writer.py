"""Write the files of a project to its store, and track the store's content.

Only the pipeline's thread uses it, except for `store`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lcursor.index.parse import ParseResult, parse_file
from lcursor.index.records import FileState
from lcursor.index.store import Entry, Store
from lcursor.project.hard_links import HardLinks
from lcursor.project.listing import Found, Survey, folders_of
from lcursor.project.secrets import SecretGlobs


@dataclass(slots=True)
class WriteBatch:
    """Changes that are written together."""

    count: int = 0
    """Number of files that were read."""
    bytes: int = 0
    parts: list[Entry] = field(default_factory=list)
    touched: list[tuple[str, FileState]] = field(default_factory=list)
    """Files with a new time and unchanged content."""
    gone: list[str] = field(default_factory=list)


def difference(known: Mapping[str, FileState], survey: Survey) -> tuple[list[Found], list[str]]:
    """Return the files to read, newest first, and the paths of deleted files.

    Any different size or time is a change, not only a newer one: a stash restores older times.
    """
    changed = [
        file
        for file in survey.files
        if (state := known.get(file.path)) is None
        or (state.size_bytes, state.mtime_ns) != (file.size_bytes, file.mtime_ns)
    ]
    changed.sort(key=lambda file: -file.mtime_ns)
    there = {file.path for file in survey.files}
    return changed, sorted(known.keys() - there)


class IndexWriter:
    """Writes parsed files to the store of a project.

    Args:
        between: called between two files of a transaction, to give way to others.
    """

    def __init__(
        self,
        root: Path,
        store: Store,
        secret_globs: SecretGlobs,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        self.root, self.store = root, store
        self._secret_globs, self._between = secret_globs, between
        self._hard_links = self._find_hard_links()
        self.known: dict[str, FileState] = {}
        self.is_untidy = True
        """Whether something was written since `tidy`."""
        self._identity = ""

    def load(self) -> bool:
        """Load the store's file list once; return True if it was rebuilt since the last call."""
        self._hard_links = self._find_hard_links()
        identity = self.store.revision.identity
        if identity == self._identity:
            return False
        is_rebuilt = bool(self._identity)
        self.known = dict(self.store.files())
        self._identity = identity
        return is_rebuilt

    @property
    def is_rebuilt(self) -> bool:
        """Whether the store was damaged and rebuilt since `load`."""
        return self.store.revision.identity != self._identity

    def parse(self, path: str, batch: WriteBatch) -> None:
        """Read and parse one file, if it is not secret, and add it to a batch."""
        if self.is_secret(path):
            self.add(ParseResult(path, is_gone=True), batch)
        else:
            self.add(parse_file(self.root, path, self.digest_of(path)), batch)

    def digest_of(self, path: str) -> bytes | None:
        """Return the digest of a file's stored content; None for an unknown file."""
        known = self.known.get(path)
        return known.digest if known else None

    def add(self, found: ParseResult, batch: WriteBatch) -> None:
        """Add the result for one file to a batch."""
        batch.count += 1
        path, state = found.path, found.state
        if found.is_gone or self.is_secret(path):
            batch.gone += [path] if path in self.known else []
        elif state is not None and found.parsed is not None:
            batch.parts.append((path, state, found.parsed))
            batch.bytes += state.size_bytes
        elif state is not None and state != self.known.get(path):
            batch.touched.append((path, state))

    def write(self, batch: WriteBatch) -> None:
        """Write a batch to the store."""
        if batch.parts:
            self.store.put_many(batch.parts, self._between)
            self.known.update((path, state) for path, state, _ in batch.parts)
            self.is_untidy = True
        if batch.touched:
            self.store.touch(batch.touched)
            self.known.update(batch.touched)
        self.forget(batch.gone)

    def _find_hard_links(self) -> HardLinks:
        """Return the hard links to secret files, found as the folders are now."""

        def is_secret(path: str) -> bool:
            return bool(self._secret_globs.name_reason(os.path.relpath(path, self.root)))

        return HardLinks(self.root, is_secret)

    def forget_secrets(self) -> None:
        """Remove files that have become secret."""
        if self._secret_globs.globs:
            self.forget([path for path in self.known if self._secret_globs.reason(path)])

    def is_secret(self, path: str) -> bool:
        """Return whether the user's globs mark a file as secret, or it is a hard link to one."""
        if self._secret_globs.reason(path):
            return True
        try:
            status = os.lstat(self.root / path)
        except OSError:
            return False
        return self._hard_links.is_secret(self.root / path, status)

    def forget(self, paths: Sequence[str]) -> None:
        """Remove files from the store."""
        if paths:
            self.store.remove(paths)
            for path in paths:
                self.known.pop(path, None)

    def forget_below(self, unknown: Iterable[str]) -> None:
        """Remove the files below missing paths, which may have been directories."""
        folders = {path for path in unknown if not os.path.lexists(os.path.join(self.root, path))}
        if folders:
            self.forget([path for path in self.known if not folders.isdisjoint(folders_of(path))])

    def tidy(self) -> None:
        """Clean up the store if it was written to."""
        if self.is_untidy:
            self.is_untidy = False
            self.store.tidy()
