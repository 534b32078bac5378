"""Reading one file of a project as it stands: whole, not while it is being written, no links.

Pure but for the one file; any thread. What a file is not read for is said in words.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from lcursor.index.records import FileState
from lcursor.project import filetypes
from lcursor.project.reading import NotRegularFile, open_regular

TRIES = 3
DIGEST_BYTES = 16
FRESH_S = 0.02
"""Age from which a file's time tells it from a later version: clocks of file systems are coarse."""
MOST_BYTES = 4 << 20
"""Beyond the limit of `skip`; a file may have grown since it was looked at."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds."""

    state: FileState
    data: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not read."""

    reason: str
    is_gone: bool = False
    is_restless: bool = False
    """It is being written; what was read of it before is as good as anything."""


def read(root: Path, path: str) -> Content | Refusal:
    """Return the content of a file with the state that belongs to it, or why not.

    Cost: a file that was written within the last 20 ms is waited for.
    """
    full = os.path.join(os.fsencode(root), os.fsencode(path))
    try:
        for _ in range(TRIES):
            if found := _read(full, path):
                return found
    except (IsADirectoryError, NotRegularFile):
        return Refusal("it is no regular file")
    except (FileNotFoundError, NotADirectoryError):
        return Refusal("there is no such file", is_gone=True)
    except OSError as error:
        return Refusal(f"it cannot be read: {error.strerror or error}")
    return Refusal("it changes all the time", is_restless=True)


def look(root: Path, path: str) -> tuple[int, int] | None:
    """Return size in bytes and mtime in ns of a regular file, or None where there is none."""
    try:
        found = os.lstat(os.path.join(os.fsencode(root), os.fsencode(path)))
    except (OSError, ValueError):
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _read(full: bytes, path: str) -> Content | Refusal | None:
    """Read once; None if it changed meanwhile."""
    # Neither a link nor a pipe, whatever the path was when it was listed.
    with open_regular(full, follows_links=False) as file:
        fd = file.fileno()
        before = os.fstat(fd)
        if reason := filetypes.by_name(path, before.st_size):
            return Refusal(reason)
        age_s = time.time() - before.st_mtime_ns / 1e9
        if 0 <= age_s < FRESH_S:
            time.sleep(FRESH_S - age_s)
            before = os.fstat(fd)
        data = file.read(MOST_BYTES)
        after = os.fstat(fd)
    is_same = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    # Without a link another file has taken its name meanwhile.
    if not is_same or len(data) != after.st_size or not after.st_nlink:
        return None
    digest = hashlib.sha256(data).digest()[:DIGEST_BYTES]
    return Content(FileState(len(data), after.st_mtime_ns, digest), data)
