"""The text of a file: its lines, line ends and encoding, so that it can be restored. Any thread."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lcursor.changes import diff
from lcursor.changes.records import Change, Lines, digest
from lcursor.errors import EditMissing, EditRejected, EditStale, EditUnsaved
from lcursor.project.reading import NotRegularFile, open_regular

MAX_BYTES = 16 << 20
"""Maximum size of an edited file."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of a file.

    If only some lines end with CR LF, the CR is part of the line, as in the editor.
    """

    lines: Lines
    newline: str = "\n"
    has_bom: bool = False
    ends: bool = True
    """Whether the last line has a line end."""
    encoding: str = "utf-8"
    """`utf-8`, or `latin-1` for other bytes, as in the editor."""

    @property
    def digest(self) -> str:
        """Digest of the lines."""
        return digest(self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether the file has no bytes."""
        return not self.ends and self.lines in ((), ("",))

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        if any("\n" in line or "\0" in line for line in self.lines):
            raise EditUnsaved(
                "a line of the change contains a line end or a null byte",
                "Ask for the change again",
            )
        body = self.newline.join(self.lines)
        if self.ends and self.lines:
            body += self.newline
        errors = "surrogateescape" if self.encoding == "utf-8" else "strict"
        try:
            data = body.encode(self.encoding, errors)
        except UnicodeEncodeError as error:
            raise EditUnsaved(
                f"{body[error.start]!r} cannot be encoded in {self.encoding}, the file's encoding",
                "Convert the file with :set fileencoding=utf-8 and :write, then try again",
            ) from error
        return BOM + data if self.has_bom else data

    def with_lines(self, lines: Sequence[str]) -> Text:
        """Return other lines with the same line ends and encoding."""
        ends = self.ends or (self.is_empty and any(lines))
        return replace(self, lines=tuple(lines), ends=ends)

    def changed(self, changes: Sequence[Change]) -> Text:
        """Return the text after some changes."""
        if self.is_empty and len(changes) == 1 and changes[0].old in ((), ("",)):
            return self.with_lines(changes[0].new)  # rather than one more line after it
        try:
            return self.with_lines(diff.apply(self.lines, changes))
        except ValueError as error:
            raise EditStale(
                f"the lines have changed since the edit was made: {error}", "Ask for the edit again"
            ) from error


def from_bytes(data: bytes, name: str = "the file") -> Text:
    """Decode a file."""
    if b"\0" in data:
        raise EditRejected(f"{name} is binary or UTF-16", "Open it first if it is text")
    has_bom, encoding = data.startswith(BOM), "utf-8"
    try:
        body = data[len(BOM) if has_bom else 0 :].decode()
    except UnicodeDecodeError:
        has_bom, encoding = False, "latin-1"
        body = data.decode(encoding)
    newline = "\n"
    if (count := body.count("\n")) and count == body.count("\r\n"):
        newline = "\r\n"
    lines = body.split(newline)
    ends = len(lines) > 1 and not lines[-1]
    return Text(tuple(lines[:-1] if ends else lines), newline, has_bom, ends, encoding)


def read(path: Path | str) -> Text:
    """Return the text of a file, or raise `EditMissing` or `EditRejected`."""
    return from_bytes(read_bytes(path), os.fspath(path))


def read_bytes(path: Path | str) -> bytes:
    """Return the content of a regular file that is not too large.

    Raises:
        EditMissing: there is no such file.
        EditRejected: it is not a file, too large, or cannot be read.
    """
    try:
        with open_regular(Path(path)) as file:
            data = file.read(MAX_BYTES + 1)
    except (IsADirectoryError, NotRegularFile) as error:
        raise EditRejected(f"{path} is not a regular file", "Only text can be edited") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise EditMissing(f"there is no file {path}", "Check whether it was moved") from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise EditRejected(f"{path} cannot be read: {words}", "Check its permissions") from error
    if len(data) > MAX_BYTES:
        raise EditRejected(
            f"{path} has more than {MAX_BYTES >> 20} MB", "Larger files cannot be edited"
        )
    return data
