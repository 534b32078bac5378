"""Reads files for a prompt: with limits, never a secret, never something that is not text.

A buffer's unsaved text wins over the disk. Thread: of who asks; one reader is for one gathering.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lcursor.context.items import Cancel
from lcursor.errors import Cancelled

MOST_BYTES = 1 << 20
"""Of one file, or of the rows of one."""
MOST_TOTAL_BYTES = 8 << 20
"""Of one gathering: no model reads more."""
MOST_LOOKED_THROUGH_BYTES = 64 << 20
"""Of a file of which some rows are wanted."""
MOST_S = 10.0
"""For one gathering; what is not read by then is said."""

SECRET_NAME = "its name says that it holds secrets"  # noqa: S105
SECRET_TEXT = "a private key stands in it"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of a file, or why there are none."""

    text: str = ""
    refusal: str = ""
    first_row: int = 0
    is_unsaved: bool = False
    rows: int = 0
    """Of the whole file; 0 where it was not read to its end."""


class _NotAFile(OSError):
    """It is a pipe, a device or a socket."""


class Reader:
    """Reads for one gathering.

    Args:
        root: of the project.
        secrets: globs that the user calls secret.
        unsaved: texts by absolute path, that stand in the editor.
        cancel: asked before each file.
        most_s: after that nothing more is read.
    """

    def __init__(
        self,
        root: Path,
        secrets: Sequence[str] = (),
        unsaved: Mapping[str, str] | None = None,
        cancel: Cancel | None = None,
        most_s: float = MOST_S,
    ) -> None:
        from lcursor.project.secrets import SecretGlobs, load

        self.root = Path(os.path.realpath(root))
        self._own = SecretGlobs(Path("/"), [*secrets, *load(self.root).globs])
        self._unsaved = {os.path.realpath(path): text for path, text in (unsaved or {}).items()}
        self._cancel = cancel
        self._end_s = time.monotonic() + most_s
        self._left_bytes = MOST_TOTAL_BYTES

    @property
    def left_s(self) -> float:
        """Time that is left."""
        return max(self._end_s - time.monotonic(), 0.0)

    @property
    def cancel(self) -> Cancel | None:
        """What ends it."""
        return self._cancel

    def look(self) -> None:
        """Look whether this is still wanted.

        Raises:
            Cancelled: it is not.
        """
        if self._cancel and self._cancel():
            raise Cancelled("gathering the context was stopped")

    def secret(self, path: Path | str) -> str:
        """Return why a file is not read, by its name or by that of what it links to; "" if it is.

        Args:
            path: absolute.
        """
        from lcursor.project import secrets

        for each in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            if secrets.is_secret_path(each):
                return SECRET_NAME
            if reason := self._own.reason(each.lstrip("/")):
                return reason
        return ""

    def secret_text(self, text: str) -> str:
        """Return why a text is not given away; "" if it is."""
        from lcursor.project import secrets

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
            path: absolute.
            first_row: of them.
            end_row: after the last; -1 is all that follow.

        Raises:
            Cancelled: this is not wanted any more.
        """
        self.look()
        if refusal := self.secret(path):
            return Read(refusal=refusal)
        if not self.left_s:
            return Read(refusal="there was no time left to read it")
        if self._left_bytes <= 0:
            return Read(refusal=f"{MOST_TOTAL_BYTES >> 20} MB are attached already")
        real = os.path.realpath(path)
        unsaved = self._unsaved.get(real)
        if unsaved is None:
            found = self._from_disk(path, first_row, end_row)
        else:
            found = self._checked(
                unsaved.encode("utf-8", "surrogatepass"), first_row, end_row, True
            )
        self._left_bytes -= len(found.text)
        return found

    def _from_disk(self, path: Path, first_row: int, end_row: int) -> Read:
        try:
            with _opened(path) as file:
                size = os.fstat(file.fileno()).st_size
                if size > MOST_BYTES:
                    if first_row == 0 and end_row < 0:
                        hint = f"name rows, as in {path.name}:1-200"
                        return Read(refusal=f"it has {size / (1 << 20):,.1f} MB; {hint}")
                    return self._rows_of_much(file, first_row, end_row)
                data = file.read(MOST_BYTES + 1)
        except IsADirectoryError:
            return Read(refusal="it is a folder")
        except _NotAFile:
            return Read(refusal="it is no regular file")
        except (FileNotFoundError, NotADirectoryError):
            return Read(refusal="there is no such file")
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            return Read(refusal=f"it cannot be read: {words}")
        return self._checked(data, first_row, end_row)

    def _checked(self, data: bytes, first_row: int, end_row: int, is_unsaved: bool = False) -> Read:
        from lcursor.project import filetypes, secrets

        if len(data) > MOST_BYTES and first_row == 0 and end_row < 0:
            return Read(refusal=f"it has over {MOST_BYTES >> 20} MB; name rows of it")
        text = filetypes.decode(data)
        if "\0" in text:
            return Read(refusal="it is binary")
        if secrets.has_private_key(data) or self.secret_text(text):
            return Read(refusal=SECRET_TEXT)
        text = text.replace("\r\n", "\n")
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        if first_row == 0 and (end_row < 0 or end_row >= len(lines)):
            return Read(text, "", 0, is_unsaved, len(lines))
        if first_row >= len(lines):
            return Read(refusal=f"it has only {len(lines)} rows")
        chosen = lines[first_row : end_row if end_row >= 0 else None]
        return Read("\n".join(chosen) + "\n", "", first_row, is_unsaved, len(lines))

    def _rows_of_much(self, file: BinaryIO, first_row: int, end_row: int) -> Read:
        """Return rows of a file that is too long to be read whole."""
        from lcursor.project import filetypes, secrets

        chosen, size, seen, row = [], 0, 0, 0
        is_key = False
        while end_row < 0 or row < end_row:
            data = file.readline(MOST_LOOKED_THROUGH_BYTES - seen)
            if not data:
                if seen >= MOST_LOOKED_THROUGH_BYTES:
                    limit = MOST_LOOKED_THROUGH_BYTES >> 20
                    return Read(refusal=f"these rows are behind its first {limit} MB")
                break
            seen += len(data)
            if row % 20_000 == 0:
                self.look()
            if b"PRIVATE KEY" in data:
                is_key = secrets.has_private_key(data)
            if row >= first_row:
                if is_key:
                    return Read(refusal=SECRET_TEXT)
                chosen.append(data)
                size += len(data)
                if size > MOST_BYTES:
                    return Read(refusal=f"these rows have over {MOST_BYTES >> 20} MB; name fewer")
            row += 1
        if not chosen:
            return Read(refusal=f"it has only {row:,} rows")
        data = b"".join(chosen)
        if b"\0" in data:
            return Read(refusal="it is binary")
        return Read(filetypes.decode(data).replace("\r\n", "\n"), "", first_row)


def _opened(path: Path) -> BinaryIO:
    """Open a file; neither waits for a pipe nor hangs on a device.

    Raises:
        OSError: it cannot be opened, is a folder, or no file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(mode):
            raise _NotAFile(path)
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise
