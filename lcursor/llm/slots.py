"""The files of what a server had read: being written, whole, too many.

A server reads back whatever it is told to, and one that is given half a state ends. So a state has
another name until it is whole: who asked for it gives it its own when the server says so, or, where
nobody waited for that, the keeper when nothing was written any more for a while. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PART = ".part"
SETTLED_S = 10.0
"""A server that writes does not rest for so long."""
MOST_BYTES = 4 << 30
"""Of all states; the oldest go first."""


def part(name: str) -> str:
    """Return the name that a state has while it is written."""
    return name + PART


def settle(path: Path) -> None:
    """Have a state that was written be on the disk, and give it its own name.

    Args:
        path: its own.

    Raises:
        OSError: that cannot be done.
    """
    written = path.with_name(part(path.name))
    descriptor = os.open(written, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the server wrote it, and a power cut may take what is in memory only
    finally:
        os.close(descriptor)
    with contextlib.suppress(FileNotFoundError):  # the keeper was first
        os.replace(written, path)


def settle_left(folder: Path, settled_s: float = SETTLED_S) -> None:
    """Settle the states that nobody waited for, as far as they are written."""
    for written in folder.glob(f"*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - written.stat().st_mtime > settled_s:
                settle(written.with_name(written.name.removesuffix(PART)))


def forget(path: Path) -> None:
    """Delete a state, written or being written."""
    for each in (path, path.with_name(part(path.name))):
        with contextlib.suppress(OSError):
            each.unlink(missing_ok=True)


def forget_parts(folder: Path) -> None:
    """Delete what a server that ended had begun to write; no server runs."""
    for written in folder.glob(f"*{PART}"):
        with contextlib.suppress(OSError):
            written.unlink(missing_ok=True)


def forget_old(folder: Path, most_bytes: int | None = None) -> None:
    """Delete the oldest states where there are too many; the newest stays in any case.

    Args:
        folder: of states only.
        most_bytes: of all; None for `MOST_BYTES`.
    """
    most_bytes = MOST_BYTES if most_bytes is None else most_bytes
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime_ns, path, state.st_size))
    total = 0
    for _, path, size in sorted(found, reverse=True):
        total += size
        if total > most_bytes and total > size:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
