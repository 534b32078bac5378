"""Run a command with limits on its time and its output, and end everything that it started.

Blocks the calling thread; start-up errors are those of `subprocess.Popen`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from lcursor.errors import Cancelled

STEP_S = 0.05
"""How often `cancel` and the end of the process are looked for."""
BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and how it ended."""

    data: bytes
    """Its standard output, at most `max_bytes`."""
    errors: bytes
    """Its standard error, at most `max_error_bytes`; the rest is dropped."""
    status: int
    """Negative: the signal that ended it."""
    stopped_by: Literal["", "time", "size"] = ""
    """The limit that it exceeded; it was killed."""

    @property
    def complaint(self) -> str:
        """Its first line on standard error."""
        lines = self.errors.decode(errors="replace").strip().splitlines()
        return lines[0] if lines else ""


def run(
    command: Sequence[str],
    *,
    time_limit_s: float,
    max_bytes: int,
    max_error_bytes: int = 4096,
    is_cut: bool = False,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    data: bytes = b"",
    cancel: Callable[[], bool] | None = None,
) -> Output:
    """Run a command in a process group of its own; no shell.

    Ends with the command: what it left running in its group is killed.

    Args:
        command: the program and its arguments.
        time_limit_s: it is killed after that.
        max_bytes: limit of its output.
        max_error_bytes: limit of its standard error.
        is_cut: whether more output than `max_bytes` is dropped, instead of ending the command.
        cwd: the directory that it runs in.
        env: its environment; None for ours.
        data: its standard input.
        cancel: asked now and then; true ends the command.

    Raises:
        Cancelled: `cancel` said so.
        OSError, ValueError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.PIPE if data else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        start_new_session=True,
    )
    pipes = _Pipes(process, data, max_bytes, max_error_bytes)
    stopped_by: Literal["", "time", "size"] = ""
    ends_s = time.monotonic() + time_limit_s
    try:
        while True:
            has_ended = _has_ended(process)  # before the look at the pipes: nothing gets lost
            if cancel and cancel():
                raise Cancelled(f"{command[0]} was stopped")
            if time.monotonic() > ends_s:
                stopped_by = "time"
                break
            if not pipes.transfer(0.0 if has_ended else STEP_S) and has_ended:
                break
            if pipes.is_over_limit and not is_cut:
                stopped_by = "size"
                break
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        pipes.close()
    out, errors = bytes(pipes.out[:max_bytes]), bytes(pipes.errors[:max_error_bytes])
    return Output(out, errors, process.returncode, stopped_by)


class _Pipes:
    """The pipes of a process, none of which makes it wait for another."""

    def __init__(
        self, process: subprocess.Popen[bytes], data: bytes, max_bytes: int, max_error_bytes: int
    ) -> None:
        self.out, self.errors = bytearray(), bytearray()
        self.is_over_limit = False
        self._pause_s = 0.0005
        self._limits = {id(self.out): max_bytes, id(self.errors): max_error_bytes}
        self._max_bytes = max_bytes
        self._input = memoryview(data)
        self._files = [each for each in (process.stdin, process.stdout, process.stderr) if each]
        self._selector = selectors.DefaultSelector()
        assert process.stdout is not None
        assert process.stderr is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, self.out)
        self._selector.register(process.stderr, selectors.EVENT_READ, self.errors)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE)

    def transfer(self, wait_s: float) -> bool:
        """Read and write what is possible now; return whether anything was."""
        if not self._selector.get_map():
            self._pause_s = min(2 * self._pause_s, wait_s)  # it is about to end, or goes on mute
            time.sleep(self._pause_s)
            return False
        events = self._selector.select(wait_s)
        for key, _ in events:
            file: IO[bytes] = key.fileobj  # type: ignore[assignment]
            if key.data is None:
                self._write(file)
                continue
            block = os.read(key.fd, BLOCK_BYTES)
            if not block:
                self._selector.unregister(file)
            elif len(key.data) <= self._limits[id(key.data)]:
                key.data.extend(block)
        self.is_over_limit = len(self.out) > self._max_bytes
        return bool(events)

    def _write(self, file: IO[bytes]) -> None:
        with contextlib.suppress(OSError):
            self._input = self._input[os.write(file.fileno(), self._input[:BLOCK_BYTES]) :]
            if self._input:
                return
        self._selector.unregister(file)
        with contextlib.suppress(OSError):
            file.close()

    def close(self) -> None:
        """Close our ends."""
        self._selector.close()
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended; where possible it keeps its number until `wait`."""
    if hasattr(os, "waitid"):  # not before Python 3.13 on macOS
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None
