"""Lock files with `flock`, which the kernel releases however the holder ends. Any thread.

Nobody waits for a lock here but for a moment, and a file that was deleted meanwhile is not a lock.
What the file contains is its owner's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Open and lock a file, which is created if need be; return its descriptor.

    Returns None while another process holds the lock, and if the file was deleted between opening
    and locking: the next attempt creates it again.

    Args:
        shared: let others hold it as well, as long as nobody wants it alone.

    Raises:
        OSError: the file cannot be created or locked.
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
    if is_same_file(path, fd):
        return fd
    os.close(fd)
    return None


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock.

    Raises:
        OSError: the file cannot be opened.
    """
    if not path.exists():
        return False
    fd = try_lock(path, shared=True)
    if fd is None:
        return True
    os.close(fd)
    return False


def is_same_file(path: Path, fd: int) -> bool:
    """Return whether a path still names the file that is open."""
    try:
        there, here = os.stat(path), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


@contextlib.contextmanager
def hold(fd: int, wait_s: float) -> Iterator[None]:
    """Hold the lock of an open file, if the file system has locks.

    Args:
        wait_s: time limit; after that the block runs without the lock.
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
