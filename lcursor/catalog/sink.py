"""The unfinished file: bytes go in at its end, and their sha256 is known at the end.

Owns `<file>.partial` and nothing else. The lock that keeps two pulls apart is the caller's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from lcursor.errors import DiskFull, DownloadFailed

_CHUNK_BYTES = 1 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Tell = Callable[[int], None]
"""Called with the number of bytes that were just dealt with."""


def human(count: int) -> str:
    """Write a number of bytes as people do, in powers of 1024."""
    if count < 1 << 20:
        return f"{count:,} bytes"
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def hash_file(path: Path, tell: Tell = lambda _: None) -> str:
    """Return the sha256 of a whole file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            tell(len(chunk))
    return digest.hexdigest()


def _full(path: Path, missing: int) -> DiskFull:
    return DiskFull(
        f"The disk of {path.parent} is full: {human(missing)} more would be needed",
        "Free some space and run the same command again (a download goes on where it stopped), "
        "or set LCURSOR_MODELS to a directory on a larger disk",
    )


def check_space(partial: Path, missing: int) -> None:
    """Refuse to begin what cannot end.

    Args:
        partial: the file that will grow.
        missing: bytes that will still be written.

    Raises:
        DiskFull: there is less free space than that.
    """
    if shutil.disk_usage(partial.parent).free < missing:
        raise _full(partial, missing)


class Sink:
    """An open partial file that knows its length and its digest so far.

    Args:
        partial: the file; what it holds already is hashed first, and kept.
        expected_bytes: the length of the finished file; a longer partial file is begun anew.
        tell: called while the bytes that are there already are read.

    Raises:
        DownloadFailed: the file cannot be opened for writing.
    """

    def __init__(self, partial: Path, expected_bytes: int, tell: Tell = lambda _: None) -> None:
        self.partial = partial
        self.expected_bytes = expected_bytes
        self.size = 0
        self._digest = hashlib.sha256()
        try:
            # Unbuffered: after an error or a kill the file holds exactly what was counted.
            self._file: BinaryIO = partial.open("ab+", buffering=0)
        except OSError as e:
            raise DownloadFailed(
                f"{partial} cannot be written ({e.strerror or e})",
                "Set LCURSOR_MODELS to a directory that you may write to",
            ) from e
        if os.fstat(self._file.fileno()).st_size > expected_bytes:
            self.restart()
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK_BYTES):
            self._digest.update(chunk)
            self.size += len(chunk)
            tell(len(chunk))

    def close(self) -> None:
        """Close the file; what it holds stays."""
        self._file.close()

    @property
    def missing(self) -> int:
        """Bytes that the finished file still lacks; negative when there are too many."""
        return self.expected_bytes - self.size

    @property
    def sha256(self) -> str:
        """Digest of what is there, in hexadecimal digits."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            DiskFull: they do not fit. What was written stays.
        """
        view = memoryview(chunk)
        while view:
            try:
                written = self._file.write(view) or 0
            except OSError as e:
                if e.errno in _FULL:
                    raise _full(self.partial, self.missing) from e
                raise DownloadFailed(
                    f"{self.partial} cannot be written ({e.strerror or e})",
                    "Check the disk, then run the same command again",
                ) from e
            self._digest.update(view[:written])
            self.size += written
            view = view[written:]

    def restart(self) -> None:
        """Forget everything: the source does not go on from where we are."""
        self._file.truncate(0)
        self._digest, self.size = hashlib.sha256(), 0

    def sync(self) -> None:
        """Make sure that the bytes are on the disk before the file gets its name."""
        os.fsync(self._file.fileno())
