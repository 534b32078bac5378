"""Start, find and stop a background process that all editors of a user share.

- Who runs is decided by `flock`: the starter takes a lock file, and the process inherits it. Two
  can never start at once, and the kernel frees the lock however the process ends. No process
  number and no clock is trusted.
- Where it answers is in a JSON file (mode 0600) that it writes, valid only while the lock is held.
- What it prints goes to a log, which is rotated when the process starts.

Standard library only. All methods on any thread; all that waits says so.
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

from lcursor.storage import file_lock, folders

STEP_S = 0.05
STOP_S = 8.0
"""Time for a process to end by itself; after that it is killed."""
MAX_LOG_BYTES = 1 << 20
TIMESTAMP = re.compile(r"[\d.]+ [A-Z] +")


class Supervised:
    """A background process, whether it runs or not: its lock, its state and its log."""

    def __init__(self, lock_path: Path, state_path: Path, log_path: Path) -> None:
        self.lock_path, self.state_path, self.log_path = lock_path, state_path, log_path

    def try_lock(self) -> int | None:
        """Return a file descriptor that holds the lock, or None while another process holds it.

        Processes that inherit the descriptor hold the lock too; it is free when all have closed it.

        Raises:
            OSError: there can be no such file.
        """
        return file_lock.try_lock(self.lock_path)

    def is_running(self) -> bool:
        """Return whether the process runs, or is being started."""
        return file_lock.is_held(self.lock_path)

    def read_state(self) -> dict[str, Any]:
        """Return what the last process wrote, {} if that cannot be read; it may have ended."""
        try:
            found = json.loads(self.state_path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write where the process answers; called by the process.

        Args:
            state: has its number as `pid`, and something that differs from run to run.

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
        """Start the process in a session of its own, so that it outlives its starter.

        Args:
            lock: from `try_lock`; the child inherits it, and the caller still has to close it.
            env: its environment; None for ours.
            header: what the log says of this start.

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
        """End the process and wait for its end; return whether one ran.

        A successor that someone starts meanwhile is left alone.

        Raises:
            TimeoutError: it does not end; its number is in `args[0]`, 0 if unknown.
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
    """A process that this one started."""

    def __init__(self, process: subprocess.Popen[bytes], log_path: Path, log_start: int) -> None:
        self._process, self._log_path, self._log_start = process, log_path, log_start
        # Without `wait` it would stay in the process table after its end.
        threading.Thread(target=process.wait, name="lcursor-reaper", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """Return what it has written to the log."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(self._log_start)
                return log.read(MAX_LOG_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""


def send_signal(pid: int, number: int, *, is_group: bool = False) -> None:
    """Signal a process, or its process group, if there is one."""
    if pid > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if is_group else os.kill)(pid, number)


def error_line(log: str) -> str:
    """Return the line of a log that most likely says why a process ended: the first error."""
    lines = [TIMESTAMP.sub("", line.strip()) for line in log.split("\n") if line.strip()]
    for pattern in (r"\berror\b", r"fail|exception|cannot|invalid"):
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return line[:300]
    return lines[-1][:300] if lines else ""
