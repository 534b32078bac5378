"""Give an agent in the sandbox the tools of `lcursor mcp`: the index and the editor, to read.

The server runs outside of the sandbox, which shows neither the index nor the editor. The agent
starts a few lines of Python as its MCP server, which connect their input and output to a port; for
each connection a server is started here, and it ends with it. Serves on threads.
"""

from __future__ import annotations

import contextlib
import hmac
import importlib.util
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.process.relay import interpreter

CODE: Final = """
import os, socket, sys, threading
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server:
    def copy():
        while data := server.recv(65536):
            os.write(1, data)
        os._exit(0)
    server.sendall(sys.argv[2].encode() + b"\\n")
    threading.Thread(target=copy, daemon=True).start()
    while data := os.read(0, 65536):
        server.sendall(data)
"""
"""What the agent starts: it needs the standard library only."""
PACKAGES: Final = str(Path(__file__).resolve().parents[3])
SERVER: Final = (
    sys.executable,
    "-I",
    "-c",
    f"import runpy, sys; sys.path.insert(0, {PACKAGES!r}); sys.argv[0] = 'lcursor'; "
    "runpy.run_module('lcursor', run_name='__main__')",
    "mcp",
)
MAX_SERVERS: Final = 4
"""Of an agent at a time."""
SECRET_S: Final = 10.0
"""Time limit for the first line of a connection."""


def is_installed() -> bool:
    """Return whether the optional package of the server is here."""
    return importlib.util.find_spec("mcp") is not None


class ToolsPort:
    """A port of this machine that leads to the tools of a project. Thread: any.

    Args:
        secrets_of_user: globs of files that are never read.
    """

    def __init__(self, root: Path, secrets_of_user: Sequence[str] = ()) -> None:
        self._secret = secrets.token_urlsafe(24)
        options = [word for glob in secrets_of_user for word in ("--secret", glob)]
        self._command = [*SERVER, str(root), *options]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.number: int = self._listener.getsockname()[1]
        self._running = set[subprocess.Popen[bytes]]()
        self._lock = threading.Lock()
        self._free = threading.Semaphore(MAX_SERVERS)

    @property
    def server(self) -> Mapping[str, Any]:
        """The MCP server, as `session/new` names it."""
        words = ["-I", "-S", "-c", CODE, str(self.number), self._secret]
        return {"name": "lcursor", "command": interpreter(), "args": words, "env": []}

    def __enter__(self) -> ToolsPort:
        threading.Thread(target=self._accept, name="lcursor-tools-port", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        self._listener.close()
        with self._lock:
            running = list(self._running)
        for process in running:
            process.kill()
            process.wait()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                connection, _ = self._listener.accept()
                if not self._free.acquire(blocking=False):
                    connection.close()
                    continue
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Run a server for a connection that knows the secret."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._free.release)
            stack.enter_context(contextlib.suppress(OSError))
            stack.enter_context(connection)
            connection.settimeout(SECRET_S)
            line = b""
            while not line.endswith(b"\n") and len(line) < 100:
                line += connection.recv(1) or b"\n"
            if not hmac.compare_digest(line.strip(), self._secret.encode()):
                return
            connection.settimeout(None)
            process = subprocess.Popen(
                self._command,
                stdin=connection.fileno(),
                stdout=connection.fileno(),
                stderr=subprocess.DEVNULL,
            )
            with self._lock:
                self._running.add(process)
            process.wait()
            with self._lock:
                self._running.discard(process)
