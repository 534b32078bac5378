"""The host as a process: what it does when the other end is not what it should be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcursor.protocol import PROTOCOL
from tests.unit.host.pipes import SCRIPT, Neovim


@pytest.fixture
def neovim_end(tmp_path: Path) -> Iterator[Callable[[], Neovim]]:
    """Start hosts; end them afterwards."""
    started: list[Neovim] = []

    def start() -> Neovim:
        started.append(Neovim(tmp_path))
        return started[-1]

    yield start
    for end in started:
        end.close()


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
