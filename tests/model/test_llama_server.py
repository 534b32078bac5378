"""A `llama-server` of the machine with the 0.5B model, for both slots; where one is on PATH."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.catalog import store
from lcursor.config import CompletionConfig, ModelConfig
from lcursor.errors import Cancelled
from lcursor.fim.endpoint import Endpoint
from lcursor.fim.prompt import Source
from lcursor.http.client import Client
from lcursor.llm import llama_server
from lcursor.llm.client import ChatClient
from lcursor.llm.records import Finished, Message, SamplingParams, Text
from tests.model.test_server import MODEL, TOKENS, Place, props, say
from tests.waiting import wait_for

PROGRAM = shutil.which("llama-server")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no llama-server is on PATH")
SOURCE = Source("def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n", 0, "a.py", "demo")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    store.resolve(MODEL, "chat")
    monkeypatch.setattr(llama_server, "programs", lambda: [PROGRAM])
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    made = Place(tmp_path / "server")
    yield made
    made.server().stop()
    for each in made.made:
        each.close()


def is_idle(client: Client) -> bool:
    slots = json.loads(b"\n".join(client.request("/slots")))
    return not any(slot["is_processing"] for slot in slots)


def test_it_is_started_answers_keeps_a_slot_and_ends(place: Place) -> None:
    server = place.server()
    target = server.ensure()
    living = place.folder.running()
    assert living is not None
    assert (living.engine, living.server_pid != living.pid) == (PROGRAM, True)
    assert target.url.startswith("unix:///")
    assert say(target)["model"] == MODEL
    assert props(target)["default_generation_settings"]["n_ctx"] == TOKENS
    client = Client(target.url, target.key, "chat")
    try:
        list(client.stream("/slots/0?action=save", {"filename": "one"}))
    finally:
        client.close()
    assert [path.name for path in place.folder.slots_path.iterdir()] == ["one"]
    assert server.status().state == "running"
    assert server.stop()
    wait_for(lambda: not place.folder.is_running(), what="it leaves")


def test_a_chat_with_it_is_streamed_counted_cached_and_stopped(place: Place) -> None:
    target = place.server().ensure()
    client = ChatClient(target)
    try:
        assert client.probe().can_save_slots
        words = [Message("system", "Be brief. " * 60), Message("user", "Say yes.")]
        sampling = SamplingParams(8, 0.0)
        first = list(client.stream(words, sampling))
        text = "".join(each.text for each in first if isinstance(each, Text))
        assert text.strip()
        (end,) = [each for each in first if isinstance(each, Finished)]
        assert end.usage.is_exact
        assert client.count(words) == (end.usage.prompt_tokens, True)
        more = [*words, Message("assistant", text), Message("user", "And no?")]
        (end,) = [each for each in client.stream(more, sampling) if isinstance(each, Finished)]
        assert end.usage.cached_tokens > 0.8 * end.usage.prompt_tokens
        stream = client.stream([Message("user", "Count to a thousand.")], SamplingParams(900, 0.0))
        next(each for each in stream if isinstance(each, Text))
        stream.close()
        http = Client(target.url, target.key, "chat")
        wait_for(lambda: is_idle(http), 5.0, "it stops")  # long before the 900th token
        http.close()
    finally:
        client.close()


def test_the_completion_slot_asks_it_too(place: Place) -> None:
    target = place.server().ensure()
    desk = ModelConfig("desk", url=target.url)
    config = CompletionConfig(model="desk", endpoint=desk)
    endpoint, seen = Endpoint(config, desk), list[str]()
    try:
        endpoint.connect()
        assert "(qwen2.5-coder) by llama.cpp at" in endpoint.description
        result = endpoint.complete(SOURCE, seen.append, single_line=True)
        assert result.text.startswith("a + b")
        assert all(result.text.startswith(each) for each in seen)
        assert result.prompt_tokens > 10
        again = endpoint.complete(SOURCE, seen.append, single_line=True)
        assert again.text == result.text
        assert again.read_tokens < result.prompt_tokens / 2  # the rest was in its cache
        endpoint.abort.set()
        with pytest.raises(Cancelled):
            endpoint.complete(SOURCE, seen.append)
    finally:
        endpoint.close()
