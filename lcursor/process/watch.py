"""Notice that a running command uses more than it may of what the kernel does not limit.

A look costs a few microseconds: it compares free space and the number of threads of the machine
with those at the start. Only if they have changed by more than a limit, the command's own files or
processes are counted. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lcursor.process import confine

CLOCK_NS: Final = 10_000_000
"""How far the times of files may be behind the clock."""


class Watch:
    """What a command has used since its start.

    Args:
        folders: those on disk that it can write to.
        max_bytes: limit of the space that its files there take.
        max_files: limit of the files that it creates there.
        max_processes: limit of its processes. The kernel has such a limit, but not for root.
    """

    def __init__(
        self, folders: Sequence[Path], *, max_bytes: int, max_files: int, max_processes: int
    ) -> None:
        self._folders, self._max_processes = folders, max_processes
        self._max_bytes, self._max_files = max_bytes, max_files
        self._free, self._threads = self._measure(), _threads()
        self._start_ns = time.time_ns() - CLOCK_NS

    def exceeded(self, pid: int) -> str:
        """Return the limit that a process and its descendants exceed; "" for none."""
        free_bytes, free_files = self._measure()
        if (
            self._free[0] - free_bytes > self._max_bytes
            or self._free[1] - free_files > self._max_files
        ):
            size, count = self._written()
            if size > self._max_bytes:
                return f"stopped: its files took more than {self._max_bytes >> 20:,} MiB"
            if count > self._max_files:
                return f"stopped: it wrote more than {self._max_files:,} files"
            self._free = free_bytes + size, free_files + count  # others took the rest
        threads = _threads()
        if threads - self._threads > self._max_processes:
            count = len(confine.descendants(pid))
            if count > self._max_processes:
                return f"stopped: it ran more than {self._max_processes:,} processes"
            self._threads = threads - count
        return ""

    def _measure(self) -> tuple[int, int]:
        """Return the free bytes and files of the folders' file systems."""
        size = count = 0
        for folder in self._folders:
            with contextlib.suppress(OSError):  # it is gone
                found = os.statvfs(folder)
                size += found.f_bfree * found.f_frsize
                count += found.f_ffree
        return size, count

    def _written(self) -> tuple[int, int]:
        """Return the bytes on disk and the number of the files changed since the start."""
        size = count = 0
        for folder in self._folders:
            for parent, _, names in os.walk(folder):
                for name in names:
                    with contextlib.suppress(OSError):  # it is gone
                        found = os.lstat(f"{parent}/{name}")
                        if found.st_ctime_ns >= self._start_ns:
                            size += found.st_blocks * 512
                            count += 1
        return size, count


def _threads() -> int:
    """Return how many threads this machine runs."""
    return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
