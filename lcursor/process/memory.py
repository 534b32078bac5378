"""Measure the memory of this process, and return free memory to the system."""

from __future__ import annotations

import contextlib
import ctypes
import os


def trim() -> None:
    """Return free memory to the system, if the C library can; takes some milliseconds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 if unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
