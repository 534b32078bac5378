"""Read files for a prompt, within limits, and never secrets or binary files.

Unsaved text in the editor takes precedence over the disk. On the caller's thread; a reader is for
one message.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lcursor import system
from lcursor.errors import Cancelled
from lcursor.process.run import Cancel
from lcursor.project import filetypes, secrets
from lcursor.project.hard_links import HardLinks
from lcursor.project.secrets import SECRET_NAME as SECRET_NAME

MAX_BYTES = 1 << 20
"""Maximum of one file, or of a range of lines."""
MAX_TOTAL_BYTES = 8 << 20
"""Maximum for one message: no model reads more."""
MAX_SCANNED_BYTES = 64 << 20
"""Maximum read from a large file to find a range of lines."""
MAX_S = 10.0
"""Time limit for one message; files not read by then are reported."""

SECRET_TEXT = "it contains a private key"  # noqa: S105
SECRET_LINK = "it is a hard link to a file whose name says that it holds secrets"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Read:
    """Lines of a file, or the reason why it was not read."""

    text: str = ""
    error: str = ""
    first_row: int = 0
    is_unsaved: bool = False
    rows: int = 0
    """Number of lines in the whole file; 0 if it was not read to the end."""


class Reader:
    """Reads files for one message.

    Args:
        unsaved: texts of the editor's buffers by absolute path.
        max_s: time limit for all files.
    """

    def __init__(
        self,
        root: Path,
        secret_globs: Sequence[str] = (),
        unsaved: Mapping[str, str] | None = None,
        cancel: Cancel | None = None,
        max_s: float = MAX_S,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.cancel = cancel
        globs = [*secret_globs, *secrets.load(self.root).globs]
        self._secret_globs = secrets.SecretGlobs(Path("/"), globs)
        self._hard_links = HardLinks(self.root, lambda path: bool(self._secret_name(path)))
        self._unsaved = {os.path.realpath(path): text for path, text in (unsaved or {}).items()}
        self._end_s = time.monotonic() + max_s
        self._left_bytes = MAX_TOTAL_BYTES

    @property
    def left_s(self) -> float:
        """Remaining time."""
        return max(self._end_s - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise Cancelled if `cancel` returns true."""
        if self.cancel and self.cancel():
            raise Cancelled("gathering the context was stopped")

    def secret(self, path: Path | str) -> str:
        """Return why a file counts as secret, by its name or another one of it; "" if not."""
        real = os.path.realpath(path)
        for each in dict.fromkeys((os.path.normpath(path), real)):
            if reason := self._secret_name(each):
                return reason
        try:
            is_secret = self._hard_links.is_secret(real, os.stat(real))
        except (OSError, ValueError):
            return ""
        return SECRET_LINK if is_secret else ""

    def _secret_name(self, path: str) -> str:
        return self._secret_globs.name_reason(path.lstrip("/"))

    def secret_text(self, text: str) -> str:
        """Return why a text counts as secret; "" if not."""
        return SECRET_TEXT if secrets.has_private_key(text.encode("utf-8", "replace")) else ""

    def is_unsaved(self, path: Path | str) -> bool:
        """Return whether the editor has unsaved text of a file."""
        return os.path.realpath(path) in self._unsaved

    def unsaved_paths(self) -> list[str]:
        """Return the real paths of the files with unsaved text."""
        return sorted(self._unsaved)

    def read(self, path: Path, first_row: int = 0, end_row: int = -1) -> Read:
        """Return lines of a file, or the reason why it cannot be read.

        Args:
            end_row: row after the last one; -1 for the end of the file.

        Raises:
            Cancelled: `cancel` returned true.
        """
        self.check()
        if reason := self.secret(path):
            return Read(error=reason)
        if not self.left_s:
            return Read(error="there was no time left to read it")
        if self._left_bytes <= 0:
            return Read(error=f"{MAX_TOTAL_BYTES >> 20} MB are attached already")
        unsaved = self._unsaved.get(os.path.realpath(path))
        if unsaved is not None:
            data = unsaved.encode("utf-8", "surrogatepass")
            excerpt = self._rows(data, first_row, end_row, is_unsaved=True)
        else:
            excerpt = self._from_disk(path, first_row, end_row)
        self._left_bytes -= len(excerpt.text)
        return excerpt

    def _from_disk(self, path: Path, first_row: int, end_row: int) -> Read:
        is_whole = first_row == 0 and end_row < 0
        try:
            with open_regular(path) as file:
                size = os.fstat(file.fileno()).st_size
                if size <= MAX_BYTES:
                    return self._rows(file.read(MAX_BYTES + 1), first_row, end_row)
                if not is_whole:
                    return self._rows_of_large_file(file, first_row, end_row)
        except IsADirectoryError:
            return Read(error="it is a folder")
        except NotRegularFile:
            return Read(error="it is not a regular file")
        except (FileNotFoundError, NotADirectoryError):
            return Read(error="there is no such file")
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return Read(error=f"it cannot be read: {words}")
        hint = f"name a range of lines, as in {path.name}:1-200"
        return Read(error=f"it has {size / (1 << 20):,.1f} MB; {hint}")

    def _rows(self, data: bytes, first_row: int, end_row: int, *, is_unsaved: bool = False) -> Read:
        if len(data) > MAX_BYTES and first_row == 0 and end_row < 0:
            return Read(error=f"it has over {MAX_BYTES >> 20} MB; name a range of lines")
        text = filetypes.decode(data)
        if "\0" in text:
            return Read(error="it is binary")
        if secrets.has_private_key(data) or self.secret_text(text):
            return Read(error=SECRET_TEXT)
        text = text.replace("\r\n", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if first_row == 0 and (end_row < 0 or end_row >= len(lines)):
            return Read(text, "", 0, is_unsaved, len(lines))
        if first_row >= len(lines):
            return Read(error=f"it has only {len(lines)} lines")
        chosen = lines[first_row : end_row if end_row >= 0 else None]
        return Read("\n".join(chosen) + "\n", "", first_row, is_unsaved, len(lines))

    def _rows_of_large_file(self, file: BinaryIO, first_row: int, end_row: int) -> Read:
        """Return lines of a file that is too large to be read completely."""
        chosen, size, scanned, row = [], 0, 0, 0
        is_key = False
        while end_row < 0 or row < end_row:
            line = file.readline(MAX_SCANNED_BYTES - scanned)
            if not line:
                if scanned >= MAX_SCANNED_BYTES:
                    limit = MAX_SCANNED_BYTES >> 20
                    return Read(error=f"these lines are after its first {limit} MB")
                break
            scanned += len(line)
            if row % 20_000 == 0:
                self.check()
            if b"PRIVATE KEY" in line:  # first or last line of a key
                is_key = secrets.has_private_key(line)
            if row >= first_row:
                if is_key:
                    return Read(error=SECRET_TEXT)
                chosen.append(line)
                size += len(line)
                if size > MAX_BYTES:
                    return Read(error=f"these lines have over {MAX_BYTES >> 20} MB; name fewer")
            row += 1
        if not chosen:
            return Read(error=f"it has only {row:,} lines")
        data = b"".join(chosen)
        if b"\0" in data:
            return Read(error="it is binary")
        if secrets.has_private_key(data):
            return Read(error=SECRET_TEXT)
        return Read(filetypes.decode(data).replace("\r\n", "\n"), "", first_row)


class NotRegularFile(OSError):
    """The path of a pipe, a device or a socket."""


def open_inside(root: Path, path: str) -> BinaryIO:
    """Open a regular file of a project for reading, without following any link below its root.

    Raises:
        OSError: as of `open_regular`, or a part of the relative path is a link.
    """
    flags = os.O_DIRECTORY | system.HANDLE
    *folders, name = path.split("/")
    folder_fd = os.open(root, flags)
    try:
        for folder in folders:
            inner = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=folder_fd)
            os.close(folder_fd)
            folder_fd = inner
        return open_regular(name, follows_links=False, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)


def open_regular(
    path: Path | str | bytes, *, follows_links: bool = True, dir_fd: int | None = None
) -> BinaryIO:
    """Open a regular file for reading, without ever blocking on a pipe or a device.

    Args:
        dir_fd: of the folder to which a relative path refers.

    Raises:
        OSError: it cannot be opened, is a folder, or is not regular (NotRegularFile).
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    fd = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(mode):
            raise NotRegularFile(path)
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise
