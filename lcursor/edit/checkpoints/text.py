"""A file's text as the editor has it: lines, and all that is around them to write it back.

Reads one file; writes none. A text that is read and encoded again is the same bytes. Any thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lcursor.edit import diff
from lcursor.edit.records import Change, Lines, digest
from lcursor.errors import EditMissing, EditRefused, EditStale, EditUnsaved

MAX_BYTES = 16 << 20
"""Of a file that is edited."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of a file.

    Where some lines end with CR LF and others do not, the CR belongs to the line, as in the editor.
    """

    lines: Lines
    newline: str = "\n"
    has_bom: bool = False
    ends: bool = True
    """Whether the last line is ended, too."""
    encoding: str = "utf-8"
    """Or `latin-1`, which all bytes are: the editor reads what is not UTF-8 in that way."""

    @property
    def digest(self) -> str:
        """What names the lines."""
        return digest(self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether the file has no byte; its one line is none."""
        return not self.ends and self.lines in ((), ("",))

    def encode(self) -> bytes:
        """Return the bytes of the file.

        Raises:
            EditUnsaved: a character has no place in its encoding, or a line has a line end in it.
        """
        if any("\n" in line or "\0" in line for line in self.lines):
            raise EditUnsaved(
                "a line of the change has a line end or a null byte in it",
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
                f"{body[error.start]!r} cannot be written in a file that is {self.encoding}",
                "Convert the file with :set fileencoding=utf-8 and :write, then try again",
            ) from error
        return BOM + data if self.has_bom else data

    def with_lines(self, lines: Sequence[str]) -> Text:
        """Return a text that is written in the same way."""
        ends = self.ends or (self.is_empty and any(lines))
        return replace(self, lines=tuple(lines), ends=ends)

    def changed(self, changes: Sequence[Change]) -> Text:
        """Return the text after some changes.

        Raises:
            EditStale: the lines that they replace are not there, or two of them overlap.
        """
        if self.is_empty and len(changes) == 1 and changes[0].old in ((), ("",)):
            return self.with_lines(changes[0].new)  # rather than one more line after it
        try:
            return self.with_lines(diff.apply(self.lines, changes))
        except ValueError as error:
            raise EditStale(
                f"the lines are not what the edit was made for: {error}", "Ask for the edit again"
            ) from error


def of_bytes(data: bytes, name: str = "the file") -> Text:
    """Return the text that bytes are.

    Raises:
        EditRefused: it is binary.
    """
    if b"\0" in data:
        raise EditRefused(f"{name} is binary", "Only text can be edited")
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
    """Return the text of a file; neither waits for a pipe nor hangs on a device.

    Raises:
        EditMissing: there is no such file.
        EditRefused: it is no file, binary, too large, or cannot be read.
    """
    return of_bytes(read_bytes(path), os.fspath(path))


def read_bytes(path: Path | str) -> bytes:
    """Return what is in a regular file of a size that can be edited.

    Raises:
        EditMissing: there is no such file.
        EditRefused: it is no file, too large, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise EditMissing(f"there is no file {path}", "Look whether it was moved") from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise EditRefused(f"{path} cannot be read: {words}", "See who may read it") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise EditRefused(f"{path} is no regular file", "Only text can be edited")
        data = b""
        while found.st_size <= MAX_BYTES and len(data) <= MAX_BYTES:
            more = os.read(fd, MAX_BYTES + 1 - len(data))
            if not more:
                return data
            data += more
    except OSError as error:
        raise EditRefused(
            f"{path} cannot be read: {error.strerror}", "See who may read it"
        ) from error
    finally:
        os.close(fd)
    raise EditRefused(
        f"{path} has more than {MAX_BYTES >> 20} MB", "Such a file is not edited as a whole"
    )
