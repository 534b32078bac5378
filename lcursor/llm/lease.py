"""Who runs the one local server, who uses it, and where it answers: files in one folder.

`flock` is the truth, which the kernel takes back however its holder ends: no number of a process
and no clock is believed. The keeper holds `server.lock`; every user of the server holds a file
of its own in `users/`. `lease.json` (mode 0600) says where the server is, and is worth something
only while the lock is held. Any thread.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lcursor import folders, locked
from lcursor.errors import ServerFailed

VERSION = 1
PROC = Path("/proc")
BOOT_ID = PROC / "sys/kernel/random/boot_id"
PS_S = 5.0


@dataclass(frozen=True, slots=True)
class Lease:
    """What the keeper of a server says of it."""

    pid: int
    """Of the keeper."""
    ticks: int
    """When that process began, see `ticks`: a number used again differs."""
    boot: str
    """Of the machine's run."""
    url: str
    """A unix socket as `unix:///path`."""
    engine: str
    """The program: `llama-server`, `xllamacpp`."""
    model: str
    """As the settings name it."""
    path: str
    """Of the model's file."""
    context_tokens: int
    need_bytes: int = 0
    place: str = ""
    """Where it runs, as `catalog.recommend` says it."""
    key: str = field(default="", repr=False)
    server_pid: int = 0
    """Of the server itself, where the keeper is not it."""
    server_ticks: int = 0
    version: int = VERSION


class Folder:
    """The folder of a server: its lock, its lease and its users."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock_path = path / "server.lock"
        self.lease_path = path / "lease.json"
        self.users_path = path / "users"
        self.slots_path = path / "slots"
        self.log_path = path / "server.log"

    def make(self) -> None:
        """Make it, for the user alone.

        Raises:
            LcursorError: it cannot be made, or is not ours.
        """
        for place in (self.path, self.users_path, self.slots_path):
            folders.own(place)

    def take(self) -> int | None:
        """Return an open file that holds the lock, or None where another process holds it.

        Who inherits the file holds the lock too; it is free when all have closed it.

        Raises:
            ServerFailed: there can be no such file.
        """
        with _translated(self.lock_path):
            return locked.take(self.lock_path)

    def is_held(self) -> bool:
        """Whether a keeper lives."""
        if not self.lock_path.exists():
            return False
        with _translated(self.lock_path):
            fd = locked.take(self.lock_path, shared=True)
        if fd is None:
            return True
        os.close(fd)
        return False

    def read(self) -> Lease | None:
        """Return what the last keeper wrote; it may be dead."""
        try:
            found = json.loads(self.lease_path.read_bytes())
            return Lease(**found) if found.get("version") == VERSION else None
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def living(self) -> Lease | None:
        """Return the lease of a keeper that lives, else None."""
        lease = self.read()
        return lease if lease is not None and self.is_held() else None

    def write(self, lease: Lease) -> None:
        """Say where the server is.

        Raises:
            OSError: it cannot be written.
        """
        folders.write(self.lease_path, json.dumps(asdict(lease)).encode())

    def clear(self) -> None:
        """Forget the lease."""
        with contextlib.suppress(OSError):
            self.lease_path.unlink(missing_ok=True)

    def join(self) -> User:
        """Become a user of the server.

        Raises:
            ServerFailed: that cannot be written down.
        """
        with _translated(self.users_path):
            while True:
                path = self.users_path / f"{os.getpid()}-{secrets.token_hex(4)}"
                fd = locked.take(path)
                if fd is not None:
                    return User(path, fd)

    def users(self) -> list[int]:
        """Return the processes that use the server; forgets those that have ended."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.users_path.iterdir()):
                with contextlib.suppress(OSError, ValueError):
                    fd = locked.take(path)
                    if fd is None:
                        found.append(int(path.name.partition("-")[0]))
                        continue
                    path.unlink(missing_ok=True)
                    os.close(fd)
        return found


class User:
    """One user of the server, until `leave` or until the process ends."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path, self._fd = path, fd

    def leave(self) -> None:
        """Use it no more."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def boot() -> str:
    """Return what names this run of the machine; "" where nothing does."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def ticks(pid: int) -> int:
    """Return when a process began; 0 if it does not run.

    In ticks since the machine started; in seconds since 1970 where there is no `/proc`, as on
    macOS. Source: proc(5), field 22 of `stat`; the name before it may have blanks and brackets.
    """
    if not (PROC / "self").exists():
        return _started_by_ps(pid)
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
        fields = text[text.rindex(")") + 1 :].split()
        return int(fields[19]) if fields[0] not in "ZX" else 0
    except (OSError, ValueError, IndexError):
        return 0


def _started_by_ps(pid: int) -> int:
    """Return when a process began, in seconds since 1970, as ps(1) prints it; 0 for none."""
    command = ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PS_S, check=False
        )
        state, _, started = found.stdout.strip().partition(" ")
        # As in "Sun Nov 22 14:12:59 2026"; a day of one digit has a blank before it.
        began = calendar.timegm(time.strptime(" ".join(started.split()), "%a %b %d %H:%M:%S %Y"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    return 0 if state.startswith("Z") else began


def is_alive(pid: int, began: int, booted: str) -> bool:
    """Whether the very process that was meant still runs."""
    return pid > 1 and began > 0 and booted == boot() and ticks(pid) == began


def end(pid: int, began: int, booted: str, number: int = signal.SIGTERM) -> bool:
    """Signal a process if it is the one that is meant; return whether it was."""
    if not is_alive(pid, began, booted):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        return True
    return False


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServerFailed(
            f"the server's folder cannot be used: {error.strerror or error} ({path})",
            "See who may write there and how full the disk is, or set LCURSOR_DATA",
        ) from error
