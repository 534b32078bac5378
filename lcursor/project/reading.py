"""Read files for a prompt: with limits, never a secret, never something that is not text.

The editor's unsaved text of a file wins over the disk. On the caller's thread; a reader is for one
message.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lcursor.errors import Cancelled
from lcursor.process.run import Cancel
from lcursor.project import filetypes, secrets

MAX_BYTES = 1 << 20
"""Of one file, or of the rows of one."""
MAX_TOTAL_BYTES = 8 << 20
"""Of one message: no model reads more."""
MAX_SCANNED_BYTES = 64 << 20
"""Of a file of which some rows are wanted."""
MAX_S = 10.0
"""For one message; a file that is not read by then is reported."""

SECRET_NAME = "its name says that it holds secrets"  # noqa: S105
SECRET_TEXT = "it contains a private key"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of a file, or why there are none."""

    text: str = ""
    refusal: str = ""
    first_row: int = 0
    is_unsaved: bool = False
    rows: int = 0
    """Of the whole file; 0 where it was not read to its end."""


class Reader:
    """Reads files for one message.

    Args:
        unsaved: texts of the editor's buffers by absolute path.
        max_s: time after which nothing more is read.
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
        self._unsaved = {os.path.realpath(path): text for path, text in (unsaved or {}).items()}
        self._end_s = time.monotonic() + max_s
        self._left_bytes = MAX_TOTAL_BYTES

    @property
    def left_s(self) -> float:
        """Time that is left."""
        return max(self._end_s - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise Cancelled if `cancel` returns true."""
        if self.cancel and self.cancel():
            raise Cancelled("gathering the context was stopped")

    def secret(self, path: Path | str) -> str:
        """Return why a file is not read, by its name or that of its target; "" if it is."""
        for each in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            if secrets.is_secret_path(each):
                return SECRET_NAME
            if reason := self._secret_globs.reason(each.lstrip("/")):
                return reason
        return ""

    def secret_text(self, text: str) -> str:
        """Return why a text is not given to a model; "" if it is."""
        return SECRET_TEXT if secrets.has_private_key(text.encode("utf-8", "replace")) else ""

    def is_unsaved(self, path: Path | str) -> bool:
        """Return whether the editor has another text of a file."""
        return os.path.realpath(path) in self._unsaved

    def unsaved_paths(self) -> list[str]:
        """Return the real paths of the files of which the editor has another text."""
        return sorted(self._unsaved)

    def read(self, path: Path, first_row: int = 0, end_row: int = -1) -> Read:
        """Return rows of a file, or why not.

        Args:
            end_row: after the last; -1 is all that follow.

        Raises:
            Cancelled: `cancel` returned true.
        """
        self.check()
        if refusal := self.secret(path):
            return Read(refusal=refusal)
        if not self.left_s:
            return Read(refusal="there was no time left to read it")
        if self._left_bytes <= 0:
            return Read(refusal=f"{MAX_TOTAL_BYTES >> 20} MB are attached already")
        unsaved = self._unsaved.get(os.path.realpath(path))
        if unsaved is not None:
            data = unsaved.encode("utf-8", "surrogatepass")
            found = self._rows(data, first_row, end_row, is_unsaved=True)
        else:
            found = self._from_disk(path, first_row, end_row)
        self._left_bytes -= len(found.text)
        return found

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
            return Read(refusal="it is a folder")
        except NotRegularFile:
            return Read(refusal="it is no regular file")
        except (FileNotFoundError, NotADirectoryError):
            return Read(refusal="there is no such file")
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return Read(refusal=f"it cannot be read: {words}")
        hint = f"name rows, as in {path.name}:1-200"
        return Read(refusal=f"it has {size / (1 << 20):,.1f} MB; {hint}")

    def _rows(self, data: bytes, first_row: int, end_row: int, *, is_unsaved: bool = False) -> Read:
        if len(data) > MAX_BYTES and first_row == 0 and end_row < 0:
            return Read(refusal=f"it has over {MAX_BYTES >> 20} MB; name rows of it")
        text = filetypes.decode(data)
        if "\0" in text:
            return Read(refusal="it is binary")
        if secrets.has_private_key(data) or self.secret_text(text):
            return Read(refusal=SECRET_TEXT)
        text = text.replace("\r\n", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if first_row == 0 and (end_row < 0 or end_row >= len(lines)):
            return Read(text, "", 0, is_unsaved, len(lines))
        if first_row >= len(lines):
            return Read(refusal=f"it has only {len(lines)} rows")
        chosen = lines[first_row : end_row if end_row >= 0 else None]
        return Read("\n".join(chosen) + "\n", "", first_row, is_unsaved, len(lines))

    def _rows_of_large_file(self, file: BinaryIO, first_row: int, end_row: int) -> Read:
        """Return rows of a file that is too long to be read whole."""
        chosen, size, scanned, row = [], 0, 0, 0
        is_key = False
        while end_row < 0 or row < end_row:
            line = file.readline(MAX_SCANNED_BYTES - scanned)
            if not line:
                if scanned >= MAX_SCANNED_BYTES:
                    limit = MAX_SCANNED_BYTES >> 20
                    return Read(refusal=f"these rows are behind its first {limit} MB")
                break
            scanned += len(line)
            if row % 20_000 == 0:
                self.check()
            if b"PRIVATE KEY" in line:  # its begin or its end
                is_key = secrets.has_private_key(line)
            if row >= first_row:
                if is_key:
                    return Read(refusal=SECRET_TEXT)
                chosen.append(line)
                size += len(line)
                if size > MAX_BYTES:
                    return Read(refusal=f"these rows have over {MAX_BYTES >> 20} MB; name fewer")
            row += 1
        if not chosen:
            return Read(refusal=f"it has only {row:,} rows")
        data = b"".join(chosen)
        if b"\0" in data:
            return Read(refusal="it is binary")
        if secrets.has_private_key(data):
            return Read(refusal=SECRET_TEXT)
        return Read(filetypes.decode(data).replace("\r\n", "\n"), "", first_row)


class NotRegularFile(OSError):
    """A path is that of a pipe, a device or a socket."""


def open_regular(path: Path | bytes, *, follows_links: bool = True) -> BinaryIO:
    """Open a regular file for reading; neither waits for a pipe nor hangs on a device.

    Raises:
        OSError: it cannot be opened, is a folder, or NotRegularFile.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    fd = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW)
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
