"""The host as a process: what it does when the other end is not what it should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from lcursor.protocol import PROTOCOL

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


@pytest.fixture
def neovim_end(tmp_path: Path) -> Iterator[Callable[[], Neovim]]:
    """Start hosts; end them afterwards."""
    started: list[Neovim] = []

    def start() -> Neovim:
        started.append(Neovim(tmp_path))
        return started[-1]

    yield start
    for end in started:
        end.process.kill()
        end.process.wait()
        for pipe in (end.process.stdin, end.process.stdout, end.process.stderr):
            if pipe:
                pipe.close()


def test_a_host_without_a_model_says_why_and_goes_on(
    neovim_end: Callable[[], Neovim],
) -> None:
    host = neovim_end()
    host.notify("hello", {"protocol": PROTOCOL, "version": "x", "config": {}})
    assert host.said("ready")["pid"] == host.process.pid
    assert host.said("error")["code"] == "model_missing"
    host.notify("nonsense", {})
    assert host.said("error")["code"] == "message_invalid"
    assert host.leave() == 0


def test_a_host_ends_when_its_channel_closes(neovim_end: Callable[[], Neovim]) -> None:
    host = neovim_end()
    assert host.leave() == 0
    assert host.words() == ""


def test_a_host_that_received_garbage_ends_with_its_channel(
    neovim_end: Callable[[], Neovim],
) -> None:
    host = neovim_end()
    host.write(b"\xc1\xc1 this is no msgpack \x00\xff" * 100)
    assert host.leave() == 0


def test_the_host_also_runs_as_a_remote_plugin() -> None:
    code = (
        "import importlib.util as u; s = u.spec_from_file_location('lcursor_host', "
        f"{str(SCRIPT)!r}); m = u.module_from_spec(s); s.loader.exec_module(m);"
        "print(m.LcursorHost.notify._nvim_rpc_method_name, m.LcursorHost._nvim_plugin);"
        "from types import SimpleNamespace as S; nvim = S(channel_id=1);"
        "nvim.async_call = lambda call, *args: call(*args);"
        "nvim.exec_lua = lambda _, channel, name, params, async_: print(channel, name);"
        "m.LcursorHost(nvim).notify(['nonsense', {}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["function:LcursorNotify", "True", "1", "error"]


def test_the_host_completes_by_a_server_before_the_engine_is_installed() -> None:
    """While the engine is compiled, a server may complete: nothing on that path needs llama.cpp."""
    code = "import sys; sys.modules['llama_cpp'] = None; "
    code += "import lcursor.host.session, lcursor.host.backends, lcursor.fim.endpoint"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SCRIPT.parents[2], timeout=60)
