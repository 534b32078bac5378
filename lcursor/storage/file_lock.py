"""Lock files with `flock`, which the kernel releases however the holder ends. Any thread.

Waits are short, and a lock on a file that was deleted meanwhile does not count. The file's content
is up to its owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Open and lock a file, creating it if necessary; return its descriptor.

    Returns None while another process holds the lock, or if the file was deleted between opening
    and locking; the next attempt creates it again.

    Args:
        shared: take a shared lock.

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
    """Return whether a path still names the open file."""
    try:
        there, here = os.stat(path), os.fstat(fd)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


@contextlib.contextmanager
def hold(fd: int, wait_s: float) -> Iterator[None]:
    """Hold the lock of an open file, if the file system supports locks.

    Args:
        wait_s: time limit, after which the block runs without the lock.
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
