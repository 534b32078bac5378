"""Run a command with limits on its output and its time. Blocks; on the caller's thread."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.errors import Cancelled

Cancel = Callable[[], bool]
"""Called now and then; true ends what is being done, with `Cancelled`."""

POLL_S = 0.05
BLOCK_BYTES = 1 << 16
MAX_ERROR_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Output:
    """What a command wrote to its standard output."""

    data: bytes
    is_cut: bool = False
    """A limit ended it; there may have been more."""
    failure: str = ""
    """Why there is no output, or only a part: the command's own words, or the limit."""


def run(
    command: Sequence[str],
    folder: Path,
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
    max_s: float | None = 10.0,
    ok: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> Output:
    """Run a command, and return its output as far as the limits allow.

    Args:
        command: the program and its arguments; no shell.
        folder: its working directory.
        stdin: its standard input.
        env: its environment; this process's by default.
        max_bytes: of output, after which it is killed.
        max_s: that it may take, after which it is killed.
        ok: exit statuses that mean success.
        cancel: called every 50 ms; kills it.

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
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return Output(b"", failure=f"{command[0]} cannot be run: {reason}")
        stack.enter_context(process)
        try:
            end_s = None if max_s is None else time.monotonic() + max_s
            data, complaint, limit = _read(process, max_bytes, end_s, cancel)
        finally:
            if process.poll() is None:
                process.kill()
    if limit:
        return Output(data, is_cut=True, failure=limit)
    if process.returncode not in ok:
        lines = complaint.decode(errors="replace").strip().splitlines()
        lines = lines or [f"{command[0]} exits with {process.returncode}"]
        return Output(data, failure=lines[0])
    return Output(data)


def _read(
    process: subprocess.Popen[bytes],
    max_bytes: int | None,
    end_s: float | None,
    cancel: Cancel | None,
) -> tuple[bytes, bytes, str]:
    """Return standard output, standard error, and the limit that was reached."""
    assert process.stdout
    assert process.stderr
    data, complaint = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, data)
        selector.register(process.stderr, selectors.EVENT_READ, complaint)
        # A command that closes its output may go on; one that ended may leave output to read.
        while selector.get_map() or process.poll() is None:
            if cancel and cancel():
                raise Cancelled("a command was stopped")
            if end_s is not None and time.monotonic() > end_s:
                return bytes(data), bytes(complaint), "it took too long"
            if not selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
                continue
            for key, _ in selector.select(POLL_S):
                block = os.read(key.fd, BLOCK_BYTES)
                if not block:
                    selector.unregister(key.fileobj)
                elif key.data is data or len(complaint) < MAX_ERROR_BYTES:
                    key.data.extend(block)
            if max_bytes is not None and len(data) > max_bytes:
                return bytes(data[:max_bytes]), bytes(complaint), f"over {max_bytes:,} bytes"
    return bytes(data), bytes(complaint), ""
