"""The files of saved KV states: complete, being written, or too many.

A server crashes when it restores half a state. So a state is written under another name; it gets
its own name from whoever asked for it when the server says that it is complete, or, if nobody
waited for that, from the server process when nothing was written for a while. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PART = ".part"
SETTLED_S = 10.0
"""A server that writes does not pause for so long."""
MAX_BYTES = 4 << 30
"""Of all states; the oldest are deleted first."""


def part(name: str) -> str:
    """Return the name of a state while it is written."""
    return name + PART


def settle(path: Path) -> None:
    """Flush a complete state to disk, and give it its own name.

    Args:
        path: with its own name.

    Raises:
        OSError: it cannot be flushed or renamed.
    """
    written = path.with_name(part(path.name))
    descriptor = os.open(written, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # a power cut may take what is only in memory
    finally:
        os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):  # the server process was first
        os.replace(written, path)


def settle_left(folder: Path, settled_s: float = SETTLED_S) -> None:
    """Settle the states that nobody waited for, if they seem complete."""
    for written in folder.glob(f"*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - written.stat().st_mtime > settled_s:
                settle(written.with_name(written.name.removesuffix(PART)))


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
        folder: of states only.
        max_bytes: of all; None for `MAX_BYTES`.
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
