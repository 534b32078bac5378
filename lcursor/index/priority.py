"""Making a thread stand back: low on the cores, last at the disk; and a process small.

Linux keeps both by thread, so bulk work stands back while the thread beside it that answers
queries does not. What a machine does not allow is left as it is. Called on the thread concerned.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path

NICE = 10
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30}
"""Number of the system call, which the C library does not wrap."""
_THIS_THREAD = (1, 0)
_IDLE_CLASS = 3 << 13


def lower() -> None:
    """Lower the calling thread, and what it starts."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, *_THIS_THREAD, _IDLE_CLASS)


def lower_session() -> None:
    """Lower this process's session where the kernel weighs each session as one.

    There a thread's own priority counts among those of its session alone, and a worker, which has
    a session of its own, would get half of a busy machine.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE))


def cores() -> int:
    """Return how many cores this process may use; at least one."""
    try:
        return len(os.sched_getaffinity(0)) or 1
    except (OSError, AttributeError):
        return os.cpu_count() or 1


def give_back() -> None:
    """Return memory that is free to the system, where the C library can; some milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def memory_bytes() -> int:
    """Return the resident memory of this process; 0 where it cannot be known."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
