"""Notice that a running command uses more than it may of what the kernel does not limit.

A look costs some microseconds: it compares free space, shared memory and the number of threads of
the machine with those at the start. Only if they have changed by more than a limit, the command's
own files, memory or processes are counted. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lcursor import system
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
        max_shared_bytes: limit of the memory without a file that its processes share. The kernel
            limits only what one process has for itself.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        *,
        max_bytes: int,
        max_files: int,
        max_processes: int,
        max_shared_bytes: int,
    ) -> None:
        self._folders, self._max_processes = folders, max_processes
        self._max_bytes, self._max_files = max_bytes, max_files
        self._max_shared_bytes = max_shared_bytes
        self._free, self._shared = self._measure(), _shared_memory()
        self._threads = system.running_threads()
        self._start_ns = time.time_ns() - CLOCK_NS

    def exceeded(self, pid: int) -> str:
        """Return the limit that a process and its descendants exceed; "" for none."""
        free_bytes, free_files = self._measure()
        # What other programs gave back meanwhile must not hide what this one takes.
        self._free = max(self._free[0], free_bytes), max(self._free[1], free_files)
        if (
            self._free[0] - free_bytes > self._max_bytes
            or self._free[1] - free_files > self._max_files
        ):
            try:
                size, count = self._written()
            except OSError as error:
                return f"stopped: its files cannot be counted: {error.strerror}"
            if size > self._max_bytes:
                return f"stopped: its files took more than {self._max_bytes >> 20:,} MiB"
            if count > self._max_files:
                return f"stopped: it wrote more than {self._max_files:,} files"
            self._free = free_bytes + size, free_files + count  # others took the rest
        threads = system.running_threads()
        self._threads = min(self._threads, threads)
        if threads - self._threads > self._max_processes:
            count = len(confine.descendants(pid))
            if count > self._max_processes:
                return f"stopped: it ran more than {self._max_processes:,} processes"
            self._threads = threads - count
        shared = _shared_memory()
        self._shared = min(self._shared, shared)
        if shared - self._shared > self._max_shared_bytes:
            size = system.shared_bytes({pid, *confine.descendants(pid)})
            if size > self._max_shared_bytes:
                limit = self._max_shared_bytes >> 20
                return f"stopped: its processes shared more than {limit:,} MiB of memory"
            self._shared = shared - size
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
        """Return the bytes on disk and the number of the files changed since the start.

        Raises:
            OSError: a folder cannot be listed.
        """
        size = count = 0
        for folder in self._folders:
            for parent, _, names in os.walk(folder, onerror=_unless_gone):
                for name in names:
                    with contextlib.suppress(OSError):  # it is gone
                        found = os.lstat(f"{parent}/{name}")
                        if found.st_ctime_ns >= self._start_ns:
                            size += found.st_blocks * 512
                            count += 1
        return size, count


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _shared_memory() -> int:
    """Return how many bytes of shared memory this machine uses, also for files in memory."""
    return system.memory_of_machine("Shmem") or 0
