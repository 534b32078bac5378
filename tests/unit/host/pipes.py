"""A host in a process of its own, and what it believes to be its Neovim."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack

SCRIPT = Path(__file__).resolve().parents[3] / "rplugin/python3/lcursor_host.py"
API = [
    7,
    {
        "types": {"Buffer": {"id": 0}, "Window": {"id": 1}, "Tabpage": {"id": 2}},
        "error_types": {},
        "functions": [],
        "version": {},
    },
]


def text(value: Any) -> Any:
    """Return a message with its names as text: pynvim packs them as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [text(item) for item in value]
    if isinstance(value, dict):
        return {text(key): text(item) for key, item in value.items()}
    return value


class Neovim:
    """The other end of a host's pipes, as far as a host can tell."""

    def __init__(self, models: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "LCURSOR_MODELS": str(models)},
        )
        self._unpacker = msgpack.Unpacker()
        message = self.next()
        while message[0] != 0:  # pynvim says first who it is
            message = self.next()
        assert message[2] == "nvim_get_api_info"
        self.write(msgpack.packb([1, message[1], None, API]))

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.write(msgpack.packb([2, method, [params]]))

    def next(self) -> list[Any]:
        assert self.process.stdout
        while True:
            for message in self._unpacker:
                return list(text(message))
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the host is gone: " + self.words()
            self._unpacker.feed(data)

    def said(self, method: str) -> dict[str, Any]:
        """Return the next message of that name."""
        while True:
            _, name, (_, args) = self.next()
            assert name.endswith("_lua")
            if args[1] == method:
                return dict(args[2])

    def words(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read().decode()

    def leave(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(10)

    def close(self) -> None:
        """Kill the host if it still runs."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
