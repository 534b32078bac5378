"""Full disks, for tests of writing files."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk(size_bytes: int) -> Iterator[None]:
    """Limit the size of this process's files; Python ignores the signal about it."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a file system of 64 kB; skip the test if mounting is not possible."""
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "lcursor-test", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
