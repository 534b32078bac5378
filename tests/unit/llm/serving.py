"""A machine of the test's own for the local server: a home, a PATH with a fake program, a model."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import hardware
from lcursor.config import ChatConfig
from lcursor.http.client import Client
from lcursor.llm.records import ServedModel
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import ServerFolder

FAKE = Path(__file__).resolve().parents[2] / "fakes" / "llama_server.py"


class Machine:
    """What a test changes about the machine, and what it sees of it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self._patch = home, monkeypatch
        self.said: list[str] = []
        self.folder = home / "server"
        self.model = write_gguf(home / "toy.gguf")
        self._servers: list[LocalServer] = []
        bin_folder = home / "bin"
        bin_folder.mkdir()
        self.program = bin_folder / "llama-server"
        runtime = home / "run"
        runtime.mkdir(mode=0o700)
        for name, value in {
            "HOME": str(home),
            "LCURSOR_DATA": str(home / "data"),
            "LCURSOR_MODELS": str(home / "models"),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "FAKE_SAID": str(home / "said"),
        }.items():
            monkeypatch.setenv(name, value)
        here = hardware.detect()
        here = replace(here, vendor="none", gpu=None, gpu_bytes=None, gpu_free_bytes=None)
        monkeypatch.setattr(hardware, "detect", lambda: here)

    def set(self, **variables: object) -> None:
        """Set what the fake program reads."""
        for name, value in variables.items():
            self._patch.setenv(f"FAKE_{name}", str(value))

    def install(self, program: str = "") -> None:
        """Put a llama-server on PATH."""
        text = program or FAKE.read_text(encoding="utf-8")
        self.program.write_text(text.replace("/usr/bin/env python3", sys.executable))
        self.program.chmod(0o755)

    def server(self, idle_s: float | None = None, **settings: Any) -> LocalServer:
        """Return the server as one editor would have it."""
        config = ChatConfig(**{"model": str(self.model), **settings})
        made = LocalServer(config, self.folder, self.said.append, idle_s=idle_s)
        self._servers.append(made)
        return made

    def commands(self) -> list[list[str]]:
        """Return the command lines of the servers that were started, in order."""
        path = self.home / "said"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def end(self) -> None:
        """End what runs."""
        if self._servers:
            with contextlib.suppress(OSError):
                self._servers[0].stop()
            for each in self._servers:
                each.close()


@contextlib.contextmanager
def machine_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Give a machine in a folder with a short name, for the sake of sockets."""
    with tempfile.TemporaryDirectory(prefix="lc") as home:
        made = Machine(Path(home), monkeypatch)
        try:
            yield made
        finally:
            made.end()


def write_gguf(path: Path, architecture: str = "qwen2") -> Path:
    """Write a file whose head is that of a model of 8 layers with 1,024 bytes a token in each."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    numbers = {
        "block_count": 8,
        "context_length": 32768,
        "embedding_length": 512,
        "attention.head_count": 8,
        "attention.head_count_kv": 4,
    }
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text(architecture)]
    pairs += [
        text(f"{architecture}.{key}") + struct.pack("<II", 4, value)
        for key, value in numbers.items()
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)
    path.write_bytes(head + bytes(64))
    return path


def folder_of(machine: Machine) -> ServerFolder:
    """Return the folder of its server."""
    return ServerFolder(machine.folder)


def mode(path: Path) -> int:
    """Return who may read a file."""
    return os.stat(path).st_mode & 0o777


def answers(target: ServedModel) -> bool:
    """Tell whether a server does."""
    client = Client(target.url, target.key, "chat")
    try:
        return b'"data"' in b"".join(client.request("/v1/models"))
    finally:
        client.close()
