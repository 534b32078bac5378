"""The texts that an edit may read: from the editor, else from disk.

Resolves paths, and checks for files outside of the project and secrets. Reads each file once.
Thread: any.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from lcursor.changes import text
from lcursor.changes.records import FileChange, Lines, lines_of, to_wire
from lcursor.errors import EditRejected, LcursorError
from lcursor.project import listing
from lcursor.project.names import printable
from lcursor.project.reading import Reader
from lcursor.project.root import root_of
from lcursor.protocol.edit import EditBuffer, EditFile

DISK = -1
"""The tick of a text on disk."""


def project_of(path: str) -> Path:
    """Return the root of the project of a path."""
    return root_of(Path(path or ".").absolute())


class Sources:
    """The texts of a project, in buffers, most relevant first, and on disk.

    Files that match the globs `secrets`, or the built-in ones, are never read.
    """

    def __init__(
        self,
        root: Path,
        buffers: Sequence[EditBuffer] = (),
        current: str = "",
        secrets: Sequence[str] = (),
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._current, self._secrets = current, tuple(secrets)
        self._buffers = {os.path.realpath(each["path"]): each for each in buffers if each["path"]}
        self._texts = {path: lines_of(each["text"]) for path, each in self._buffers.items()}
        self._paths = tuple(each["path"] for each in buffers if each["path"])
        self._read: dict[str, Lines | None] = {}
        self._all: list[str] | None = None
        self._reader: Reader | None = None
        self._lock = threading.Lock()

    @classmethod
    def for_path(
        cls, path: str, buffers: Sequence[EditBuffer], current: str, secrets: Sequence[str]
    ) -> Sources:
        """Return the texts of the project of a file or folder."""
        return cls(project_of(path), buffers, current, secrets)

    def current(self) -> str:
        """Return the path of the current file; "" for none."""
        return self._current

    def buffers(self) -> Sequence[str]:
        """Return the paths of the editor's texts, most relevant first."""
        return self._paths

    def unsaved(self) -> dict[str, Lines]:
        """Return the editor's texts by absolute path."""
        return dict(self._texts)

    def absolute(self, path: str) -> str:
        """Return the absolute form of a path that is relative to the project's root."""
        return os.path.normpath(self.root / path)

    def name(self, path: str) -> str:
        """Return a path for display, relative to the project's root if inside."""
        whole = self.absolute(path)
        if self.is_outside(whole):
            return printable(whole)
        inside = os.path.relpath(_real_path(whole), self.root)
        return printable(inside.replace(os.sep, "/"))

    def is_outside(self, path: str) -> bool:
        """Return whether a file, or the target of a link, is outside of the project."""
        real = os.path.realpath(self.absolute(path))
        return not Path(real).is_relative_to(self.root)

    def tick(self, path: str) -> int:
        """Return the tick of a buffer, -1 for a file on disk."""
        found = self._buffers.get(os.path.realpath(self.absolute(path)))
        return found["tick"] if found else DISK

    def to_wire(self, change: FileChange, tick: int | None = None) -> EditFile:
        """Return a change for a message; the tick is the buffer's by default."""
        message = {
            **to_wire(change),
            "name": self.name(change.path),
            "unneeded": [
                index for index, each in enumerate(change.changes) if each.key in change.unneeded
            ],
            "tick": self.tick(change.path) if tick is None else tick,
            "is_outside": any(map(self.is_outside, filter(None, (change.path, change.to)))),
        }
        return cast("EditFile", message)

    def read(self, path: str) -> Lines | None:
        """Return the lines of a buffer or of a file in the project; None for any other path.

        Secret and binary files, and those outside of the project, count as missing.
        """
        try:
            return self.require(path, is_own=True)
        except LcursorError:
            return None

    def require(self, path: str, *, is_own: bool = False) -> Lines:
        """Return the lines of a file that the user named, or raise `EditRejected`.

        With `is_own`, also raise it for files outside of the project that are in no buffer.
        """
        whole = self.absolute(path)
        self.require_public(whole)
        real = os.path.realpath(whole)
        found = self._texts.get(real)
        if found is not None:
            return found
        if is_own and self.is_outside(whole):
            raise EditRejected(f"{whole} is outside of the project", "Open it first")
        with self._lock:
            if real not in self._read:
                self._read[real] = _disk(real)
            lines = self._read[real]
        if lines is None:
            raise EditRejected(f"there is no file {self.name(whole)}", "Check its spelling")
        return lines

    def base(self, path: str) -> Lines:
        """Return the lines that a change refers to, which were read before."""
        real = os.path.realpath(self.absolute(path))
        found = self._texts.get(real)
        return found if found is not None else self._read.get(real) or ()

    def require_public(self, path: str) -> None:
        """Raise `EditRejected` if a file's name shows that it contains secrets."""
        if self._reader is None:
            self._reader = Reader(self.root, self._secrets)
        why = self._reader.secret(self.absolute(path))
        if why:
            raise EditRejected(
                f"{self.name(path)} is not sent to a model: {why}",
                "Edit it by hand, or change privacy.exclude",
            )

    def all(self) -> Sequence[str]:
        """Return the paths of all files of the project, relative to its root."""
        if self._all is None:
            try:
                self._all = [each.path for each in listing.survey(self.root).files]
            except LcursorError:
                self._all = []
        return self._all


def _real_path(path: str) -> str:
    """Return a path; links are resolved in its folder, not in the file itself."""
    parent, name = os.path.split(path)
    return os.path.join(os.path.realpath(parent), name)


def _disk(path: str) -> Lines | None:
    """Return a file's lines, None if there is no file; raise `LcursorError` if it is not text."""
    return text.read(path).lines if os.path.exists(path) else None
