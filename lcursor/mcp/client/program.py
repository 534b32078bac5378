"""A server that is a program: its lines, within limits, and its end. In the helper process only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

MAX_MESSAGE_BYTES: Final = 4 << 20
MAX_ERROR: Final = 500
"""Characters of a message about a failure."""
MAX_NOISE: Final = 1_000
"""Lines that are no message, after which a program is ended."""
ERROR_LINES: Final = 5
BLOCK_BYTES: Final = 4096
END_S: Final = 2.0


@dataclass(slots=True)
class Trouble:
    """What is known of a program that fails."""

    reason: str = ""
    """Why it was ended."""
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=ERROR_LINES))
    """Its last lines on standard error."""
    noise: str = ""
    """The last line on standard output that was no message."""

    def __str__(self) -> str:
        words = [self.reason, *self.errors]
        words += [f"it printed {self.noise!r}, which is no message"] if self.noise else []
        return " ".join(filter(None, words))[:MAX_ERROR]


class Program:
    """A program that runs."""

    def __init__(self, process: asyncio.subprocess.Process, trouble: Trouble) -> None:
        self._process, self._trouble = process, trouble
        self._noise = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what it prints, until it ends or prints too much."""
        assert self._process.stdout
        while not self._trouble.reason:
            try:
                line = await self._process.stdout.readline()
            except ValueError:
                size = MAX_MESSAGE_BYTES >> 20
                self._trouble.reason = f"it sent a message of more than {size} MB"
                return
            if not line:
                return
            yield line

    def note_noise(self, line: bytes) -> None:
        """Note that it printed something else than a message; too much of it ends the lines."""
        text = line.strip()[:80].decode("utf-8", "replace")
        self._noise += 1
        self._trouble.noise = text or self._trouble.noise
        if self._noise > MAX_NOISE:
            self._trouble.reason = "it printed too much that is no message"

    async def write(self, line: bytes) -> None:
        """Send a line; one to a program that has ended is lost."""
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.write(line + b"\n")
            await self._process.stdin.drain()

    async def read_errors(self) -> None:
        """Remember the last lines on standard error, until it ends."""
        assert self._process.stderr
        while block := await self._process.stderr.read(BLOCK_BYTES):
            lines = block.decode("utf-8", "replace").splitlines()
            self._trouble.errors.extend(each.strip()[:200] for each in lines if each.strip())

    async def end(self) -> None:
        """End it: it may end by itself, then is asked to, then is killed."""
        process = self._process
        if process.stdin:
            process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)
                return


@asynccontextmanager
async def run(
    words: Sequence[str], env: Mapping[str, str], trouble: Trouble
) -> AsyncIterator[Program]:
    """Run a program, which has ended afterwards."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words,
        env=dict(env),
        cwd="/",
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,
    )
    program = Program(process, trouble)
    errors = asyncio.create_task(program.read_errors())
    try:
        yield program
    finally:
        await asyncio.shield(_finish(program, errors))


async def _finish(program: Program, errors: asyncio.Task[None]) -> None:
    await program.end()
    errors.cancel()
