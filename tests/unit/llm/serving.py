"""A machine of the test's own for the local server: a home, a PATH with a fake program, a model."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import ChatConfig
from lcursor.http.client import Client
from lcursor.llm.lease import Folder
from lcursor.llm.records import Target
from lcursor.llm.server import LocalServer

FAKE = Path(__file__).resolve().parents[2] / "fakes" / "llama_server.py"
NEW_HELP = """usage: llama-server [options]

-h,    --help, --usage                  print usage and exit
-t,    --threads N                      number of CPU threads to use during generation
-c,    --ctx-size N                     size of the prompt context
-b,    --batch-size N                   logical maximum batch size
-ub,   --ubatch-size N                  physical maximum batch size
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto')
-ctk,  --cache-type-k TYPE              KV cache data type for K
-ctv,  --cache-type-v TYPE              KV cache data type for V
--list-devices                          print list of available devices and exit
-ngl,  --gpu-layers, --n-gpu-layers N   max. number of layers to store in VRAM
-fit,  --fit [on|off]                   whether to adjust unset arguments to fit in device memory
-np,   --parallel N                     number of server slots
--no-context-shift                      disable context shift
-cram, --cache-ram N                    set the maximum cache size in MiB
--spec-type TYPE[,TYPE]                 one of none, ngram-simple, ngram-map-k, ngram-mod
--spec-ngram-simple-size-n N            length of the n-gram that is looked up (default: 12)
--spec-ngram-simple-size-m N            length of the draft (default: 48)
--spec-ngram-map-k-size-n N             length of the n-gram that is looked up (default: 12)
--spec-ngram-map-k-size-m N             length of the draft (default: 48)
-m,    --model FNAME                    model path to load
-a,    --alias STRING                   set alias for model name
--host HOST                             ip address to listen, or bind to an UNIX socket if the
                                        address ends with .sock (default: 127.0.0.1)
--port PORT                             port to listen (default: 8080)
--api-key KEY                           API key to use for authentication
--api-key-file FNAME                    path to file containing API keys
--slot-save-path PATH                   path to save slot kv cache
--sleep-idle-seconds SECONDS            number of seconds of idleness after which it sleeps
--jinja, --no-jinja                     whether to use jinja template engine for chat
--ui, --webui, --no-ui, --no-webui      whether to enable the web UI
--slots, --no-slots                     expose slots monitoring endpoint
--offline                               offline mode
--log-colors [on|off|auto]              set colored logging
"""
OLD_HELP = """usage: llama-server [options]

-h,    --help                    print usage and exit
-c N                             size of the prompt context (default: 4096)
-fa,   --flash-attn              enable Flash Attention (default: disabled)
-ctk,  --cache-type-k TYPE       KV cache data type for K
-ngl,  --n-gpu-layers N          number of layers to store in VRAM
-np N                            number of parallel sequences
-m FNAME                         model path
--host HOST                      ip address to listen (default: 127.0.0.1)
--port PORT                      port to listen (default: 8080)
--api-key-file FNAME             path to file containing API keys
"""
BARE_HELP = "\n".join(line for line in OLD_HELP.splitlines() if "--api-key" not in line)


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
            "FAKE_HELP": NEW_HELP,
        }.items():
            monkeypatch.setenv(name, value)

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


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not looked after does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def folder_of(machine: Machine) -> Folder:
    """Return the folder of its server."""
    return Folder(machine.folder)


def mode(path: Path) -> int:
    """Return who may read a file."""
    return os.stat(path).st_mode & 0o777


def answers(target: Target) -> bool:
    """Tell whether a server does."""
    client = Client(target.url, target.key, "chat")
    try:
        return b'"data"' in b"".join(client.request("/v1/models"))
    finally:
        client.close()
