"""The folder of the local server: its state, its users, its saved KV states and its log.

The server process holds `server.lock`; each process that uses the server holds its own lock file in
`users/`. `lease.json` has the server's address, and `completions` is a pipe for the begin and the
end of completions. See `process.supervise` for the rules. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from lcursor import system
from lcursor.process.supervise import Supervised
from lcursor.storage import file_lock, folders, stored

VERSION = 1
BEGIN, END = b"1", b"0"
"""Of a completion."""
MAX_SIGNALS = 4096


def default_folder() -> Path:
    """Return the folder of this machine's server; several machines may share a home."""
    name = system.host_name()
    host = "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in name)
    return folders.data_home() / "server" / (host.strip(".")[:64] or "here")


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state that the server process writes."""

    pid: int
    """Process id of the server process."""
    url: str
    """Address; a Unix socket is `unix:///path`."""
    engine: str
    """The program: `xllamacpp`, or the path of a `llama-server`."""
    model: str
    """The model's name in the settings."""
    path: str
    """Path of the model's file."""
    context_tokens: int
    need_bytes: int = 0
    placement: str = ""
    """Device, as in `catalog.memory.Placement`."""
    server_pid: int = 0
    """Process id of the program that has the model."""
    run: str = ""
    """Unique for each start of a server."""
    version: int = VERSION


class ServerFolder(Supervised):
    """The folder of a server."""

    def __init__(self, path: Path) -> None:
        super().__init__(path / "server.lock", path / "lease.json", path / "server.log")
        self.path = path
        self.users_path = path / "users"
        self.slots_path = path / "slots"
        self._pipe_path = path / "completions"

    def create(self) -> None:
        """Create it, accessible only by the user.

        Raises:
            LcursorError: it cannot be created, or belongs to another user.
        """
        for placement in (self.path, self.users_path, self.slots_path):
            folders.make_private(placement)

    def last(self) -> ServerState | None:
        """Return the state of the last server; it may have ended."""
        found = self.read_state()
        if found.get("version") != VERSION:
            return None
        try:
            return stored.load(ServerState, found)
        except stored.DAMAGE:
            return None

    def running(self) -> ServerState | None:
        """Return the state of the running server; None if none runs."""
        state = self.last()
        return state if state is not None and self.is_running() else None

    def write(self, state: ServerState) -> None:
        """Write the state of this process's server."""
        self.write_state(asdict(state))

    def open_signals(self) -> int:
        """Return a descriptor to read what `signal` sends; called by the server's process.

        Raises:
            OSError: the pipe cannot be created.
        """
        self._pipe_path.unlink(missing_ok=True)
        os.mkfifo(self._pipe_path, 0o600)
        return os.open(self._pipe_path, os.O_RDWR | os.O_NONBLOCK)  # so that it never ends

    def signal(self, *, is_begin: bool) -> None:
        """Report the begin or the end of a completion to the server, if one runs; never blocks."""
        with contextlib.suppress(OSError):
            fd = os.open(self._pipe_path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with open(fd, "wb", buffering=0) as pipe:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    pipe.write(BEGIN if is_begin else END)

    def join(self) -> User:
        """Register this process as a user of the server.

        Raises:
            OSError: the file cannot be written.
        """
        while True:
            path = self.users_path / f"{os.getpid()}-{secrets.token_hex(4)}"
            fd = file_lock.try_lock(path)
            if fd is not None:
                return User(path, fd)

    def users(self) -> list[int]:
        """Return the processes that use the server; delete the files of ended ones."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.users_path.iterdir()):
                with contextlib.suppress(OSError, ValueError):
                    fd = file_lock.try_lock(path)
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
        """Stop using it."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1
