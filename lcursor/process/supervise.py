"""Start, find and stop a background process that all editors of a user share.

- The starter takes a `flock` on a lock file, and the process inherits it. Two processes can never
  run at once, and the kernel releases the lock however the process ends. Process ids and clocks
  are not trusted.
- The process writes its address to a JSON file (mode 0600), valid only while the lock is held.
- Its output goes to a log, which is rotated when the process starts.

Standard library only. All methods on any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lcursor.storage import file_lock, folders, json_text

STEP_S = 0.05
STOP_S = 8.0
"""Time limit for a clean exit; after that the process is killed."""
MAX_LOG_BYTES = 1 << 20
TIMESTAMP = re.compile(r"[\d.]+ [A-Z] +")


class Supervised:
    """A background process, running or not, with its lock, state and log files."""

    def __init__(self, lock_path: Path, state_path: Path, log_path: Path) -> None:
        self.lock_path, self.state_path, self.log_path = lock_path, state_path, log_path

    def try_lock(self) -> int | None:
        """Return a file descriptor with the lock, or None while another process holds it.

        Processes that inherit the descriptor share the lock, until all have closed it.

        Raises:
            OSError: the lock file cannot be created.
        """
        return file_lock.try_lock(self.lock_path)

    def is_running(self) -> bool:
        """Return whether the process runs or is starting."""
        return file_lock.is_held(self.lock_path)

    def read_state(self) -> dict[str, Any]:
        """Return the state that the last process wrote, {} if none; the process may have ended."""
        try:
            found = json_text.parse(self.state_path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write the state; called by the process itself.

        Args:
            state: includes its `pid`, and a value that differs from run to run.

        Raises:
            OSError: it cannot be written.
        """
        folders.write_file(self.state_path, json.dumps(dict(state)).encode())

    def clear_state(self) -> None:
        """Delete the state."""
        with contextlib.suppress(OSError):
            self.state_path.unlink(missing_ok=True)

    def spawn(
        self,
        command: Sequence[str],
        lock: int,
        env: Mapping[str, str] | None = None,
        header: str = "",
    ) -> Child:
        """Start the process in a new session, so that it outlives its starter.

        Args:
            lock: from `try_lock`; the child inherits it, and the caller must close it.
            env: environment; None for this process's.
            header: line for the log.

        Raises:
            OSError: it cannot be started.
        """
        self.clear_state()
        if self.log_path.exists() and self.log_path.stat().st_size > MAX_LOG_BYTES:
            os.replace(self.log_path, self.log_path.with_suffix(".log.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with os.fdopen(os.open(self.log_path, flags, 0o600), "ab") as log:
            log.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} {header}\n".encode())
            log.flush()
            start = self.log_path.stat().st_size
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=None if env is None else dict(env),
                start_new_session=True,
                pass_fds=(lock,),
            )
        return Child(process, self.log_path, start)

    def stop(self) -> bool:
        """Stop the process and wait for its end; return whether it ran.

        A process started meanwhile by another editor keeps running.

        Raises:
            TimeoutError: it does not end; `args[0]` is its pid, 0 if unknown.
        """
        first: dict[str, Any] = {}
        signals, deadline_s = [signal.SIGTERM, signal.SIGKILL], time.monotonic() + STOP_S
        while self.is_running():
            state = self.read_state()
            if first and state and state != first:
                break
            first = first or state
            now_s = time.monotonic()
            if (first and len(signals) == 2) or now_s > deadline_s:
                if not first or not signals:
                    raise TimeoutError(first.get("pid", 0))
                send_signal(first.get("pid", 0), signals.pop(0))
                deadline_s = now_s + STOP_S
            time.sleep(STEP_S)
        return bool(first)


class Child:
    """A child process."""

    def __init__(self, process: subprocess.Popen[bytes], log_path: Path, log_start: int) -> None:
        self._process, self._log_path, self._log_start = process, log_path, log_start
        # Without `wait` it would become a zombie.
        threading.Thread(target=process.wait, name="lcursor-reaper", daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return its part of the log."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(self._log_start)
                return log.read(MAX_LOG_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""


def send_signal(pid: int, number: int, *, is_group: bool = False) -> None:
    """Signal a process or its process group; ignored if it has ended."""
    if pid > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if is_group else os.kill)(pid, number)


def error_line(log: str) -> str:
    """Return the first error in a log, the most likely reason why the process ended."""
    lines = [TIMESTAMP.sub("", line.strip()) for line in log.split("\n") if line.strip()]
    for pattern in (r"\berror\b", r"fail|exception|cannot|invalid"):
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return line[:300]
    return lines[-1][:300] if lines else ""
