"""The files of saved KV states: complete, incomplete, or too many.

A server crashes when it restores an incomplete state. So a state is written under a temporary name.
The process that requested it renames it when the server reports completion, or else the server
process does so when the file has not changed for some time. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PART = ".part"
STABLE_S = 10.0
"""Time without a write after which a state counts as complete."""
MAX_BYTES = 4 << 30
"""Maximum size of all states; the oldest are deleted first."""


def part(name: str) -> str:
    """Return the temporary name of a state."""
    return name + PART


def finish(path: Path) -> None:
    """Flush a complete state to disk, and rename it.

    Args:
        path: path with the final name.

    Raises:
        OSError: it cannot be flushed or renamed.
    """
    written = path.with_name(part(path.name))
    descriptor = os.open(written, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # make it survive a power failure
    finally:
        os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):  # the server process has renamed it
        os.replace(written, path)


def finish_stale(folder: Path, stable_s: float = STABLE_S) -> None:
    """Finish the remaining states that seem complete."""
    for written in folder.glob(f"*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - written.stat().st_mtime > stable_s:
                finish(written.with_name(written.name.removesuffix(PART)))


def forget(path: Path) -> None:
    """Delete a state, complete or not."""
    for each in (path, path.with_name(part(path.name))):
        with contextlib.suppress(OSError):
            each.unlink(missing_ok=True)


def forget_parts(folder: Path) -> None:
    """Delete incomplete states of a server that has ended."""
    for written in folder.glob(f"*{PART}"):
        with contextlib.suppress(OSError):
            written.unlink(missing_ok=True)


def forget_old(folder: Path, max_bytes: int | None = None) -> None:
    """Delete the oldest states if they are too large in total, but never the newest.

    Args:
        folder: folder that contains only states.
        max_bytes: maximum total size; None for `MAX_BYTES`.
    """
    max_bytes = MAX_BYTES if max_bytes is None else max_bytes
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime_ns, path, state.st_size))
    total = 0
    for _, path, size in sorted(found, reverse=True):
        total += size
        if total > max_bytes and total > size:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
