"""A file that is locked by who has it open: `flock`, which the kernel takes back however one ends.

Owns the two rules of such a file: nobody waits for it but a moment, and one that was deleted
meanwhile is nobody's lock. What stands in it is its owner's. Any thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path


def take(path: Path, *, shared: bool = False) -> int | None:
    """Return the file, made where there is none, open and locked.

    None where another process holds it, or where it was deleted between the two calls: whoever
    comes next makes it anew.

    Args:
        path: of the file; its folder is there.
        shared: let others hold it as well, as long as nobody wants it alone.

    Raises:
        OSError: there can be no such file.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except OSError:
        os.close(fd)
        raise
    if is_same(path, fd):
        return fd
    os.close(fd)
    return None


def is_same(path: Path, fd: int) -> bool:
    """Whether the file by that name is still the one that is open."""
    try:
        there, here = os.stat(path), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


@contextlib.contextmanager
def held(fd: int, wait_s: float) -> Iterator[None]:
    """Hold the lock of an open file for a moment, where the file system has locks.

    Args:
        fd: of the file.
        wait_s: for who holds it; after that one goes on without.
    """
    ends_s = time.monotonic() + wait_s
    is_locked = False
    while not is_locked and time.monotonic() < ends_s:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            break
    try:
        yield
    finally:
        if is_locked:
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
