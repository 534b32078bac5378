"""The texts that one edit is about: what the editor has first, then what is on disk.

Owns what a path means, whether it is inside of the project, and that secrets are not read. Reads
files, each once; changes nothing. Thread: of who asks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from lcursor.edit.checkpoints import text
from lcursor.edit.records import FileChange, Lines, lines_of
from lcursor.errors import EditRefused, LcursorError
from lcursor.project import listing
from lcursor.project.reading import Reader
from lcursor.project.root import root_of
from lcursor.protocol_edit import EditBuffer, EditFile

DISK = -1
"""The tick of a text that is the disk's."""


def project_of(path: str) -> Path:
    """Return the root of the project that a path is in."""
    return root_of(Path(path or ".").absolute())


class Sources:
    """What an edit may read.

    Args:
        root: of the project.
        buffers: what the editor has and the disk has not, or what is looked at.
        here: absolute, of the file one is in; "" for none.
        secrets: globs of files that are never read, besides the built-in ones.
    """

    def __init__(
        self,
        root: Path,
        buffers: Sequence[EditBuffer] = (),
        here: str = "",
        secrets: Sequence[str] = (),
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._here, self._secrets = here, tuple(secrets)
        self._buffers = {os.path.realpath(each["path"]): each for each in buffers if each["path"]}
        self._texts = {path: lines_of(each["text"]) for path, each in self._buffers.items()}
        self._ends = [each["path"] for each in buffers if each["path"]]
        self._read: dict[str, Lines | None] = {}
        self._all: list[str] | None = None
        self._reader: Reader | None = None
        self._lock = threading.Lock()

    def current(self) -> str:
        """Return the path of the file one is in; "" for none."""
        return self._here

    def buffers(self) -> Sequence[str]:
        """Return the paths of the editor's texts, the likeliest first."""
        return tuple(self._ends)

    def unsaved(self) -> dict[str, Lines]:
        """Return the editor's texts by absolute path."""
        return dict(self._texts)

    def absolute(self, path: str) -> str:
        """Return a path, which counts from the project's root, as an absolute one."""
        return os.path.normpath(self.root / path)

    def name(self, path: str) -> str:
        """Return a path as it is shown: from the project's root where it is inside of it."""
        whole = self.absolute(path)
        if self.is_outside(whole):
            return whole
        inside = os.path.relpath(_real_place(whole), self.root)
        return inside.replace(os.sep, "/")

    def is_outside(self, path: str) -> bool:
        """Return whether a file, or what it links to, is not in the project."""
        real = os.path.realpath(self.absolute(path))
        return not Path(real).is_relative_to(self.root)

    def tick(self, path: str) -> int:
        """Return the tick of a buffer, -1 where the text is the disk's."""
        found = self._buffers.get(os.path.realpath(self.absolute(path)))
        return found["tick"] if found else DISK

    def to_wire(self, change: FileChange, tick: int | None = None) -> EditFile:
        """Return a change of a file as a message has it.

        Args:
            change: of the file.
            tick: of the buffer that was read; None for what the editor said last.
        """
        return {
            "path": change.path,
            "name": self.name(change.path),
            "kind": change.kind,
            "to": change.to,
            "base": change.base,
            "tick": self.tick(change.path) if tick is None else tick,
            "changes": [
                {
                    "first_row": each.first_row,
                    "last_row": each.last_row,
                    "old": list(each.old),
                    "new": list(each.new),
                }
                for each in change.changes
            ],
            "checks": [
                {"name": each.name, "is_ok": each.is_ok, "text": each.text}
                for each in change.checks
            ],
            "is_outside": any(map(self.is_outside, filter(None, (change.path, change.to)))),
        }

    def read(self, path: str) -> Lines | None:
        """Return the lines of a file of the project, or of a buffer; None where there is none.

        A file that is secret, binary, or outside of the project and in no buffer is as good as
        none: a model that names it shall not get it.
        """
        try:
            return self.demand(path, is_own=True)
        except LcursorError:
            return None

    def demand(self, path: str, *, is_own: bool = False) -> Lines:
        """Return the lines of a file that the user named.

        Args:
            path: absolute, or counted from the root.
            is_own: only where it is inside of the project, or in a buffer.

        Raises:
            EditRefused: it is a secret, or outside; or it is not there, or no text.
        """
        whole = self.absolute(path)
        self.refuse(whole)
        real = os.path.realpath(whole)
        found = self._texts.get(real)
        if found is not None:
            return found
        if is_own and self.is_outside(whole):
            raise EditRefused(f"{whole} is outside of the project", "Open it first")
        with self._lock:
            if real not in self._read:
                self._read[real] = _disk(real)
            lines = self._read[real]
        if lines is None:
            raise EditRefused(f"there is no file {self.name(whole)}", "See how it is spelled")
        return lines

    def base(self, path: str) -> Lines:
        """Return the lines that a change was made for: those that were read before."""
        real = os.path.realpath(self.absolute(path))
        found = self._texts.get(real)
        return found if found is not None else self._read.get(real) or ()

    def refuse(self, path: str) -> None:
        """Raise `EditRefused` where a file's name says that it holds secrets."""
        if self._reader is None:
            self._reader = Reader(self.root, self._secrets)
        why = self._reader.secret(self.absolute(path))
        if why:
            raise EditRefused(
                f"{self.name(path)} is not given to a model: {why}",
                "Edit it by hand, or change completion.secrets",
            )

    def all(self) -> Sequence[str]:
        """Return the paths of all files of the project, relative to its root."""
        if self._all is None:
            try:
                self._all = [each.path for each in listing.survey(self.root).files]
            except LcursorError:
                self._all = []
        return self._all


def _real_place(path: str) -> str:
    """Return a path whose folder is resolved, and the file itself is not: it may be a link."""
    place, name = os.path.split(path)
    return os.path.join(os.path.realpath(place), name)


def _disk(path: str) -> Lines | None:
    """Return a file's lines; None where there is no file.

    Raises:
        LcursorError: it is no text, or cannot be read.
    """
    if not os.path.exists(path):
        return None
    return tuple(text.read(Path(path)).lines)
