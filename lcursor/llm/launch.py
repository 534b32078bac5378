"""Starting the keeper of a local server, and reading how it ended. Any thread.

The keeper (`child.py`) is a process of its own session: it outlives who started it, and leaves by
itself. It inherits the lock, so there is no moment in which two could be started.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lcursor import folders
from lcursor.errors import LcursorError, OutOfMemory, ServerEnded
from lcursor.llm import engines, fit, guess, slots
from lcursor.llm.engines import Address, Engine
from lcursor.llm.fit import Plan
from lcursor.llm.lease import Folder

MOST_LOG_BYTES = 1 << 20
NO_ROOM = re.compile(
    r"out of memory|OutOfDeviceMemory|failed to allocate(?!.*pinned)|unable to allocate"
    r"|cannot allocate"
    r"|not enough (?:memory|space)|std::bad_alloc|MemoryError|alloc(?:ation)?\w* .{0,80}failed",
    re.IGNORECASE,
)
NO_PORT = re.compile(r"address already in use|couldn't bind|failed to bind|bind.{0,40}fail", re.I)
STAMP = re.compile(r"[\d.]+ [A-Z] +")
TRIES = 3
"""Of a port that somebody took between our choice and the server's start."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a keeper is told, in a file that the user alone can read."""

    folder: str
    engine: str
    program: str
    argv: list[str]
    """Of a `llama-server`; empty for `xllamacpp`."""
    url: str
    socket: str
    port: int
    key: str = field(repr=False)
    key_path: str
    name: str
    path: str
    place: str
    context_tokens: int
    need_bytes: int
    kv_type: str
    batch_tokens: int
    cache_ram_mib: int
    threads: int
    """0 is what the program takes by itself."""
    guesses: list[tuple[str, int, int]]
    """Of `xllamacpp`: kind, tokens that are looked for, tokens that are guessed."""
    idle_s: float
    """Alone for so long it leaves, and asked nothing for so long it sleeps; 0 is never."""


class Keeper:
    """A keeper that was started from here."""

    def __init__(self, process: subprocess.Popen[bytes], plan: Plan, log: Path, since: int) -> None:
        self.plan = plan
        self._process, self._log, self._since = process, log, since
        # Somebody has to take note of its end, or it stays in the process table.
        threading.Thread(target=process.wait, name="lcursor-reaper", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def words(self) -> str:
        """Return what it wrote to the log."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._since)
                return file.read(MOST_LOG_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def lost_its_port(self) -> bool:
        """Whether it could not listen."""
        return NO_PORT.search(self.words()) is not None

    def had_no_room(self) -> bool:
        """Whether the model did not fit into memory."""
        return NO_ROOM.search(self.words()) is not None

    def was_killed(self) -> bool:
        """Whether it was ended from outside, as the kernel does where memory runs out."""
        is_child = f"status {-signal.SIGKILL}" in self.words()
        return is_child or self._process.returncode == -signal.SIGKILL

    def failure(self) -> LcursorError:
        """Return why it ended."""
        if self.had_no_room() or self.was_killed():
            error = fit.too_much(self.plan)
            what = "ran out of memory" if self.had_no_room() else "was killed"
            return OutOfMemory(f"the local server {what}: {error.message}", error.hint)
        last = last_words(self.words())
        return ServerEnded(
            f"the local server ended while it loaded {self.plan.weights.name}"
            + (f": {last}" if last else ""),
            "See :LCursor server log, or in a shell python -m lcursor server log",
        )


def start(
    folder: Folder, fd: int, engine: Engine, plan: Plan, speculate: bool, idle_s: float
) -> Keeper:
    """Start a keeper that takes over the lock.

    Args:
        folder: of the server.
        fd: the open file that holds the lock; stays the caller's to close.
        engine: the program.
        plan: model and context.
        speculate: whether n-grams may be guessed from.
        idle_s: when it sleeps and when it leaves; 0 is never.

    Raises:
        ServerEnded: it cannot be started, or could not be reached in a safe way.
    """
    where, key = _address(folder, engine)
    slots.forget_parts(folder.slots_path)
    slots.forget_old(folder.slots_path)
    argv = []
    if engine.kind == "llama-server":
        argv = engines.arguments(engine, plan, where, folder.slots_path, speculate, int(idle_s))
    settings = Settings(
        folder=str(folder.path),
        engine=engine.kind,
        program=engine.program,
        argv=argv,
        url=where.url,
        socket=where.socket,
        port=where.port,
        key=key,
        key_path=where.key_path,
        name=plan.weights.name,
        path=str(plan.weights.path),
        place=plan.room.place,
        context_tokens=plan.context_tokens,
        need_bytes=plan.need_bytes,
        kv_type=plan.kv_type,
        batch_tokens=plan.batch_tokens,
        cache_ram_mib=plan.cache_ram_mib,
        threads=engines.fewer_cores(),
        guesses=[(g.kind, g.match_tokens, g.guess_tokens) for g in guess.GUESSES if speculate],
        idle_s=idle_s,
    )
    told = folder.path / "settings.json"
    log = folder.log_path
    try:
        folders.write(told, json.dumps(asdict(settings)).encode())
        if log.exists() and log.stat().st_size > MOST_LOG_BYTES:
            os.replace(log, log.with_suffix(".log.1"))
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as output:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            output.write(f"--- {now} {engine.name}: {plan.describe()}\n".encode())
            output.flush()
            since = log.stat().st_size
            process = subprocess.Popen(
                [sys.executable, "-I", str(engines.CHILD), str(told), str(fd)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=engines.environment(),
                start_new_session=True,
                pass_fds=(fd,),
            )
    except OSError as error:
        raise ServerEnded(
            f"the local server cannot be started: {error.strerror or error}",
            f"See who may write to {folder.path}, and how full the disk is",
        ) from error
    return Keeper(process, plan, log, since)


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens at now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def last_words(text: str) -> str:
    """Return the line of a log that most likely says why it ended: what failed first."""
    lines = [STAMP.sub("", line.strip()) for line in text.split("\n") if line.strip()]
    for pattern in (r"\berror\b", r"fail|exception|cannot|invalid"):
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return line[:300]
    return lines[-1][:300] if lines else ""


def _address(folder: Folder, engine: Engine) -> tuple[Address, str]:
    """Choose where a server listens, and its key.

    Raises:
        ServerEnded: others could reach it.
    """
    if engines.can_socket(engine):
        path = folders.socket_path(folder.path)
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()  # of a server that was killed: the lock is ours, so nobody listens
            return Address(socket=str(path)), ""
    if not engines.can_key(engine):
        raise ServerEnded(
            f"{engine.name} knows neither unix sockets nor --api-key-file, so every page in a "
            "browser could talk to it",
            "Put a newer llama-server on PATH, or take this one out of it",
        )
    key, key_path = secrets.token_hex(24), folder.path / "key"
    folders.write(key_path, f"{key}\n".encode())
    return Address(port=free_port(), key_path=str(key_path)), key
