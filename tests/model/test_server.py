"""The local server with the real package and the 0.5B model, where no llama-server is on PATH."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import store
from lcursor.config import ChatConfig
from lcursor.errors import ServerEnded
from lcursor.http.client import Client
from lcursor.llm import llama_server
from lcursor.llm.records import ServedModel
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import ServerFolder
from tests.unit.llm.serving import write_gguf
from tests.waiting import is_running, wait_for

MODEL = "qwen2.5-coder-0.5b"
TOKENS = 2048


class Place:
    """A folder of servers, and the servers of editors that share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = ServerFolder(folder)
        self.said: list[str] = []
        self.made: list[LocalServer] = []

    def server(self, idle_s: float | None = None, **settings: Any) -> LocalServer:
        config = ChatConfig(**{"model": MODEL, "context_tokens": TOKENS, **settings})
        self.made.append(LocalServer(config, self.folder.path, self.said.append, idle_s=idle_s))
        return self.made[-1]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    store.resolve(MODEL, "chat")
    if not llama_server.has_package():
        pytest.fail("the package xllamacpp is not installed. Run: make test")
    monkeypatch.setattr(llama_server, "programs", list)  # of the machine's own
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    made = Place(tmp_path / "server")
    yield made
    made.server().stop()
    for each in made.made:
        each.close()


def say(target: ServedModel, question: str = "Say yes.") -> dict[str, Any]:
    body = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 8,
        "temperature": 0,
    }
    client = Client(target.url, target.key, "chat")
    try:
        found = json.loads(b"\n".join(client.stream("/v1/chat/completions", body)))
        assert isinstance(found, dict)
        return found
    finally:
        client.close()


def props(target: ServedModel) -> dict[str, Any]:
    client = Client(target.url, target.key, "chat")
    try:
        found = json.loads(b"\n".join(client.request("/props")))
        assert isinstance(found, dict)
        return found
    finally:
        client.close()


def test_it_answers_is_shared_and_comes_back(place: Place) -> None:
    first, second = place.server(), place.server()
    target = first.ensure()
    assert target.url.startswith("unix:///")
    said = say(target)
    assert said["choices"][0]["message"]["content"].strip()
    assert said["model"] == MODEL
    assert props(target)["default_generation_settings"]["n_ctx"] == TOKENS
    assert props(target)["total_slots"] == llama_server.PARALLEL
    assert second.ensure() == target
    assert second.status().state == "running"
    for _ in range(100):
        assert first.ensure() == target

    living = place.folder.running()
    assert living is not None
    os.kill(living.pid, signal.SIGKILL)
    wait_for(lambda: not place.folder.is_running(), what="the kernel frees the lock")
    wait_for(lambda: not is_running(living.pid), what="the kernel ends the server")
    again = second.ensure()
    assert say(again)["choices"]
    assert second.status().pid != living.pid
    assert first.ensure() == again

    assert "Say yes" not in first.log_path.read_text()
    assert first.stop()
    assert not os.path.exists(again.url.removeprefix("unix://"))


def test_all_slots_write_drafts_at_once(place: Place) -> None:
    target = place.server().ensure()
    pid = place.server().status().pid
    line = " ".join(map(str, range(100, 115)))

    def drafted(number: int, count: int) -> int:
        client = Client(target.url, target.key, "chat")
        body = {"prompt": f"{number}\n{line}\n{line}\n", "n_predict": count, "temperature": 0}
        try:
            found = json.loads(b"\n".join(client.stream("/completion", body)))
            return int(found["timings"].get("draft_n", 0))
        finally:
            client.close()

    everyone = range(llama_server.PARALLEL)
    for number in everyone:
        drafted(number, 1)  # so that all begin to write at the same time
    with ThreadPoolExecutor(llama_server.PARALLEL) as pool:
        found = list(pool.map(drafted, everyone, [50] * len(everyone)))
    assert min(found) >= 20
    assert place.server().status().pid == pid, "the server has ended, and was started again"


def test_it_keeps_slots_in_a_folder_of_its_own(place: Place) -> None:
    target = place.server().ensure()
    say(target)
    client = Client(target.url, target.key, "chat")
    try:
        list(client.stream("/slots/0?action=save", {"filename": "one"}))
    finally:
        client.close()
    (path,) = place.folder.slots_path.iterdir()
    assert path.name == "one"
    assert path.stat().st_mode & 0o077 == 0


def test_it_sleeps_and_then_leaves(place: Place) -> None:
    server = place.server(idle_s=1.0)
    target = server.ensure()
    say(target)
    wait_for(lambda: server.status().state == "sleeping", what="it lets go of its memory")
    assert say(target)["choices"]  # and comes back when it is asked
    server.close()
    wait_for(lambda: not place.folder.is_running(), what="it leaves")
    assert not os.path.exists(target.url.removeprefix("unix://"))


def test_a_file_that_is_no_model(place: Place, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "toy.gguf")
    with pytest.raises(ServerEnded, match=r"ended while it loaded toy: .+"):
        place.server(model=str(path)).ensure()
    assert not place.folder.is_running()
