"""Starting a worker, and finding the one that runs. Standard library only; any thread.

A worker is a process of its own session: it outlives who started it, and ends by itself. Two that
are started at once settle it by the lock; the loser leaves without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from lcursor.errors import IndexAway
from lcursor.index import lock, place
from lcursor.project.root import data_folder

ENTRY = Path(__file__).with_name("__main__.py")
IS_HELD = 3
"""Exit status of a worker that found the lock taken."""
AGAIN_S = 0.3
"""Wait before another start, while the holder of the lock may be on its way out."""
MOST_STARTS = 5
MOST_LOG_BYTES = 256 << 10
CAPS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "2",
}
"""The environment of a process that shall stay small and leave the cores to others."""


class Child:
    """A worker that was started from here."""

    def __init__(self, process: subprocess.Popen[bytes], starts: int, log: Path) -> None:
        self._process, self.starts, self._log = process, starts, log
        self._ended_s = 0.0
        # Somebody has to take note of its end, or it stays in the process table.
        threading.Thread(target=self._wait, name="lcursor-reaper", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def may_start_again(self) -> bool:
        """Whether it ended because another held the lock, a moment ago."""
        if self._process.returncode is None:
            return False
        return (
            self._process.returncode == IS_HELD
            and self.starts < MOST_STARTS
            and time.monotonic() - self._ended_s > AGAIN_S * self.starts
        )

    def has_failed(self) -> bool:
        """Whether it ended for a reason of its own."""
        return self._process.returncode not in (None, 0, IS_HELD)

    def last_words(self) -> str:
        """Return the last line of its log, where it ended with a failure."""
        if not self.has_failed():
            return ""
        try:
            lines = self._log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _wait(self) -> None:
        self._process.wait()
        self._ended_s = time.monotonic()


def start(root: Path, embedder: str = "", before: Child | None = None) -> Child:
    """Start a worker; it may find that there is one.

    Raises:
        IndexAway: the process cannot be started.
        IndexFailed: there is no place for the index.
    """
    place.own_folder(root)
    log = place.log_path(root)
    arguments = [sys.executable, "-I", str(ENTRY), str(root)]
    if embedder:
        arguments += ["--embedder", embedder]
    try:
        if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
            log.unlink()
        with log.open("ab") as errors:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                env=os.environ | CAPS,
                start_new_session=True,
            )
    except OSError as error:
        raise IndexAway(
            f"the index worker cannot be started: {error.strerror or error}",
            f"See who may write to {data_folder(root)}, and run :checkhealth lcursor",
        ) from error
    return Child(process, before.starts + 1 if before else 1, log)


def addresses(root: Path) -> list[Path]:
    """Return where a worker may listen: where the last one did, then where one would."""
    found = [said] if (said := lock.words(place.lock_path(root)).get("socket")) else []
    return [Path(each) for each in dict.fromkeys([*found, str(place.socket_path(root))])]


def holder(root: Path) -> int:
    """Return the process that last held the lock; 0 for none."""
    return int(lock.words(place.lock_path(root)).get("pid", 0))


def log_of(root: Path) -> Path:
    """Return where a worker writes its failures."""
    return place.log_path(root)
