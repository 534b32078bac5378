"""Runs git and searchers with a limit on what they say and for how long. Reads, never writes.

On the thread of who asks. Nothing that a repository's configuration names is run.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.context.items import Cancel
from lcursor.errors import Cancelled

LOOK_EVERY_S = 0.05
BLOCK_BYTES = 1 << 16
MOST_COMPLAINT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Said:
    """What a program said."""

    data: bytes
    is_cut: bool = False
    """It would have said more, and was ended."""
    failure: str = ""
    """Why there is no answer, or only a part of one; in its own words."""


def git(
    folder: Path,
    *words: str,
    most_bytes: int,
    most_s: float = 10.0,
    fine: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> Said:
    """Ask git.

    Raises:
        Cancelled: `cancel` said so.
    """
    from lcursor.project.git import command_of

    command = command_of(folder, *words)
    return run(command, folder, most_bytes=most_bytes, most_s=most_s, fine=fine, cancel=cancel)


def run(
    command: Sequence[str],
    folder: Path,
    *,
    most_bytes: int,
    most_s: float = 10.0,
    fine: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> Said:
    """Run a program and return what it says, as far as limits let it.

    Args:
        command: the program and its arguments; no shell.
        folder: where it runs.
        most_bytes: of its answer; then it is ended.
        most_s: that it may take; then it is ended.
        fine: exit statuses that mean an answer.
        cancel: asked now and then.

    Raises:
        Cancelled: `cancel` said so.
    """
    from lcursor.project.git import INHERITED

    environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Said(b"", failure=f"{command[0]} cannot be run: {reason}")
    with process:
        try:
            said = _listen(process, most_bytes, time.monotonic() + most_s, cancel)
        finally:
            if process.poll() is None:
                process.kill()
    data, complaint, why = said
    if why:
        return Said(data, is_cut=True, failure=why)
    if process.returncode not in fine:
        lines = complaint.decode(errors="replace").strip().splitlines()
        words = lines[0] if lines else f"{command[0]} exits with {process.returncode}"
        return Said(data, failure=words)
    return Said(data)


def _listen(
    process: subprocess.Popen[bytes], most_bytes: int, end_s: float, cancel: Cancel | None
) -> tuple[bytes, bytes, str]:
    """Return what it says, its complaints, and why it was ended."""
    assert process.stdout
    assert process.stderr
    data, complaint = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, data)
        selector.register(process.stderr, selectors.EVENT_READ, complaint)
        while selector.get_map():
            if cancel and cancel():
                process.kill()
                raise Cancelled("gathering the context was stopped")
            if time.monotonic() > end_s:
                return bytes(data), bytes(complaint), "it took too long"
            for key, _ in selector.select(LOOK_EVERY_S):
                block = os.read(key.fd, BLOCK_BYTES)
                if not block:
                    selector.unregister(key.fileobj)
                elif key.data is data or len(complaint) < MOST_COMPLAINT_BYTES:
                    key.data.extend(block)
            if len(data) > most_bytes:
                return bytes(data[:most_bytes]), bytes(complaint), f"over {most_bytes:,} bytes"
    while process.poll() is None:  # it closed its ends, and goes on
        if time.monotonic() > end_s:
            return bytes(data), bytes(complaint), "it took too long"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY_S)
    return bytes(data), bytes(complaint), ""
