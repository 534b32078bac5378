"""Run a command with limits on output and time. Blocks; on the caller's thread.

The command runs in its own process group. When it ends, the whole group is killed, including any
process that it started.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor import system
from lcursor.errors import Cancelled

Cancel = Callable[[], bool]
"""Polled during long work; when it returns true, the work raises `Cancelled`."""
Exceeded = Callable[[int], str]
"""Polled with the id of a running command; returns the limit that it exceeds, "" for none."""

POLL_S = 0.05
WATCH_S = 0.01
"""Time between two looks at limits; a fork bomb makes hundreds of processes in 50 ms."""
FIRST_POLL_S = 0.0005
BLOCK_BYTES = 1 << 16
MAX_ERROR_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Output:
    """The output and exit status of a command."""

    data: bytes
    """Its standard output."""
    is_cut: bool = False
    """Whether a limit ended it, so there may be more output."""
    failure: str = ""
    """Why the output is missing or incomplete: the command's error message, or the limit."""
    errors: bytes = b""
    """Its standard error."""
    status: int | None = None
    """Its exit status; None if it cannot be run."""


def run(
    command: Sequence[str],
    folder: Path,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
    max_error_bytes: int = MAX_ERROR_BYTES,
    drops_excess: bool = False,
    max_s: float | None = 10.0,
    ok: Iterable[int] = (0,),
    pass_fds: Sequence[int] = (),
    exceeded: Exceeded | None = None,
    cancel: Cancel | None = None,
) -> Output:
    """Run a command, and return its output within the limits.

    Args:
        command: the program and its arguments; no shell.
        env: environment; this process's by default.
        max_bytes: output limit; a command that exceeds it is killed.
        max_error_bytes: limit of standard error; the rest is dropped.
        drops_excess: drop output after `max_bytes` instead of killing the command.
        max_s: timeout after which it is killed.
        ok: exit statuses that mean success.
        pass_fds: file descriptors that it inherits, besides the standard ones.
        exceeded: called every 10 ms; the command is killed when it returns a limit.
        cancel: called every 50 ms; the command is killed when it returns true.

    Raises:
        Cancelled: `cancel` returned true.
    """
    with contextlib.ExitStack() as stack:
        given: int | object = subprocess.DEVNULL
        if stdin:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(stdin)
            file.seek(0)
            given = file
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=given,  # type: ignore[arg-type]
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except (OSError, ValueError, IndexError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            name = command[0] if command else "the command"
            return Output(b"", failure=f"{name} cannot be run: {reason}")
        stack.enter_context(process)
        reader = _Reader(process, max_bytes, max_error_bytes, drops_excess, exceeded)
        try:
            limit = reader.read(max_s, cancel)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    data, errors, status = bytes(reader.data), bytes(reader.errors), process.returncode
    if limit or status in ok:
        return Output(data, bool(limit), limit, errors, status)
    lines = errors.decode(errors="replace").strip().splitlines()
    lines = lines or [f"{command[0]} exits with {status}"]
    return Output(data, False, lines[0], errors, status)


def output_of(
    command: Sequence[str | Path], env: Mapping[str, str] | None = None, max_s: float = 20.0
) -> str:
    """Return the output of a quick command as text; "" if it is missing or fails."""
    done = run([str(word) for word in command], Path(), env=env, max_s=max_s)
    return "" if done.failure else done.data.decode("utf-8", "replace")


class _Reader:
    """Reads the output of a process until it ends or reaches a limit."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        max_bytes: int | None,
        max_error_bytes: int,
        drops_excess: bool,
        exceeded: Exceeded | None,
    ) -> None:
        self.data, self.errors = bytearray(), bytearray()
        self._process, self._max_bytes = process, max_bytes
        self._max_error_bytes, self._drops_excess = max_error_bytes, drops_excess
        self._exceeded = exceeded

    def read(self, max_s: float | None, cancel: Cancel | None) -> str:
        """Return the limit that was reached; "" for none."""
        began_s = time.monotonic()
        assert self._process.stdout
        assert self._process.stderr
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, self.data)
            selector.register(self._process.stderr, selectors.EVENT_READ, self.errors)
            pause_s, poll_s = FIRST_POLL_S, WATCH_S if self._exceeded else POLL_S
            while True:
                # Checked before the pipes are read, so that its last output is in them.
                has_ended = system.has_ended(self._process)
                if cancel and cancel():
                    raise Cancelled("a command was stopped")
                if max_s is not None and time.monotonic() - began_s > max_s:
                    return f"stopped after {max_s:g} s"
                if self._exceeded and (limit := self._exceeded(self._process.pid)):
                    return limit
                if not selector.get_map():
                    if has_ended:
                        return ""
                    time.sleep(pause_s)  # closed its output, but still runs
                    pause_s = min(2 * pause_s, poll_s)
                    continue
                events = selector.select(0 if has_ended else poll_s)
                if has_ended and not events:
                    return ""  # one of its children keeps the output open
                for key, _ in events:
                    block = os.read(key.fd, BLOCK_BYTES)
                    if not block:
                        selector.unregister(key.fileobj)
                    else:
                        key.data.extend(block)
                if self._is_too_much():
                    return f"over {self._max_bytes:,} bytes"

    def _is_too_much(self) -> bool:
        del self.errors[self._max_error_bytes :]
        if self._max_bytes is None or len(self.data) <= self._max_bytes:
            return False
        del self.data[self._max_bytes :]
        return not self._drops_excess
