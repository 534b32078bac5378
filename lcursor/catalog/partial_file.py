"""A partly downloaded file, `<file>.partial`, with its digest so far. The caller locks it."""

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

OnBytes = Callable[[int], None]
"""Gets the number of bytes that were just read."""


def format_bytes(count: int) -> str:
    """Return a number of bytes as text, in powers of 1024."""
    if count < 1 << 20:
        return f"{count:,} bytes"
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def hash_file(path: Path, on_bytes: OnBytes = lambda _: None) -> str:
    """Return the sha256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            on_bytes(len(chunk))
    return digest.hexdigest()


def _full(path: Path, missing: int) -> DiskFull:
    return DiskFull(
        f"The disk of {path.parent} is full: {format_bytes(missing)} more would be needed",
        "Free some space and run the same command again (a download continues where it stopped), "
        "or set LCURSOR_MODELS to a directory on a larger disk",
    )


def check_space(path: Path, missing: int) -> None:
    """Check that the disk has space for the rest of a file.

    Args:
        path: of the file.
        missing: bytes that will be written.

    Raises:
        DiskFull: it has not.
    """
    if shutil.disk_usage(path.parent).free < missing:
        raise _full(path, missing)


class PartialFile:
    """A partial file that is open for writing.

    Args:
        path: of the file; existing content is hashed and kept.
        expected_bytes: length of the complete file; a longer file is emptied.
        on_bytes: called while existing content is read.

    Raises:
        DownloadFailed: the file cannot be opened for writing.
    """

    def __init__(self, path: Path, expected_bytes: int, on_bytes: OnBytes = lambda _: None) -> None:
        self.path = path
        self.expected_bytes = expected_bytes
        self.size = 0
        self._digest = hashlib.sha256()
        try:
            # Unbuffered: after an error the file contains exactly what was counted.
            self._file: BinaryIO = path.open("ab+", buffering=0)
        except OSError as e:
            raise DownloadFailed(
                f"{path} cannot be written ({e.strerror or e})",
                "Set LCURSOR_MODELS to a directory that you may write to",
            ) from e
        if os.fstat(self._file.fileno()).st_size > expected_bytes:
            self.restart()
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK_BYTES):
            self._digest.update(chunk)
            self.size += len(chunk)
            on_bytes(len(chunk))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def missing(self) -> int:
        """Missing bytes; negative if there are too many."""
        return self.expected_bytes - self.size

    @property
    def sha256(self) -> str:
        """Digest of the content in hexadecimal."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            DiskFull: there is no space; what was written stays.
        """
        view = memoryview(chunk)
        while view:
            try:
                written = self._file.write(view) or 0
            except OSError as e:
                if e.errno in _FULL:
                    raise _full(self.path, self.missing) from e
                raise DownloadFailed(
                    f"{self.path} cannot be written ({e.strerror or e})",
                    "Check the disk, then run the same command again",
                ) from e
            self._digest.update(view[:written])
            self.size += written
            view = view[written:]

    def restart(self) -> None:
        """Empty the file, because the source cannot resume."""
        self._file.truncate(0)
        self._digest, self.size = hashlib.sha256(), 0

    def sync(self) -> None:
        """Flush the file to disk."""
        os.fsync(self._file.fileno())
