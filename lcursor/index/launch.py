"""Start a worker process, and find the one that runs. Standard library only; any thread.

A worker has a session of its own: it outlives the process that started it and exits by itself. If
two are started at once, the one that does not get the lock exits silently.
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
"""Exit status of a worker that did not get the lock."""
AGAIN_S = 0.3
"""Wait before the next start: the holder of the lock may be about to exit."""
MAX_STARTS = 5
MAX_LOG_BYTES = 256 << 10
CAPS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "2",
}
"""Environment that keeps a process small and on one core."""


class Child:
    """A worker that this process started."""

    def __init__(self, process: subprocess.Popen[bytes], starts: int, log: Path) -> None:
        self._process, self.starts, self._log = process, starts, log
        self._ended_s = 0.0
        # Without waiting for its end it would stay a zombie.
        threading.Thread(target=self._wait, name="lcursor-reaper", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def may_start_again(self) -> bool:
        """Return whether it failed to get the lock, and it is time for another try."""
        if self._process.returncode is None:
            return False
        return (
            self._process.returncode == IS_HELD
            and self.starts < MAX_STARTS
            and time.monotonic() - self._ended_s > AGAIN_S * self.starts
        )

    def has_failed(self) -> bool:
        """Return whether it ended with a failure."""
        return self._process.returncode not in (None, 0, IS_HELD)

    def last_words(self) -> str:
        """Return the last line of its log if it failed."""
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
    """Start a worker, which exits if another one runs.

    Raises:
        IndexAway: the process cannot be started.
        IndexFailed: the folder of the index cannot be used.
    """
    place.own_folder(root)
    log = place.log_path(root)
    arguments = [sys.executable, "-I", str(ENTRY), str(root)]
    if embedder:
        arguments += ["--embedder", embedder]
    try:
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
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
    """Return the sockets to try: that of the last worker, then the default one."""
    found = [said] if (said := lock.words(place.lock_path(root)).get("socket")) else []
    return [Path(each) for each in dict.fromkeys([*found, str(place.socket_path(root))])]


def holder(root: Path) -> int:
    """Return the id of the process that last held the lock; 0 for none."""
    return int(lock.words(place.lock_path(root)).get("pid", 0))


def log_of(root: Path) -> Path:
    """Return the log file of a worker."""
    return place.log_path(root)
