"""Completion by a server: three APIs over real sockets, stops, aborts, and what goes wrong."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import CompletionConfig, ModelConfig
from lcursor.errors import (
    Cancelled,
    ConfigInvalid,
    KeyMissing,
    LcursorError,
    ModelUnsuitable,
    ServerDenied,
    ServerFailed,
    ServerGarbled,
    ServerModelMissing,
    ServerUnreachable,
)
from lcursor.fim.context_ring import Chunk, ContextRing, Found, Query
from lcursor.fim.endpoint import Endpoint
from lcursor.fim.prompt import Source
from tests.fakes.loopback import sse
from tests.fakes.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Source("def add(a, b):\n    ", "\n\nprint(add(1, 2))\n", 0, "a.py", "demo")
PROMPT = (
    "<|repo_name|>demo\n<|file_sep|>a.py\n<|fim_prefix|>def add(a, b):\n    "
    "<|fim_suffix|>\n\nprint(add(1, 2))\n<|fim_middle|>"
)
Make = Callable[..., Endpoint]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as it:
        yield it


@pytest.fixture
def make(server: ModelServer) -> Iterator[Make]:
    """Make endpoints of the server; close them afterwards."""
    with ExitStack() as stack:

        def begin(ring: ContextRing | None = None, **settings: Any) -> Endpoint:
            own = {each.name for each in dataclasses.fields(ModelConfig)} - {"context_tokens"}
            model = {name: settings.pop(name) for name in own & settings.keys()}
            config = CompletionConfig(model="desk", **settings)
            one = Endpoint(config, ModelConfig("desk", **{"url": server.url, **model}), ring)
            stack.callback(one.close)
            return one

        yield begin


def nobody(_: str) -> None:
    pass


def posted(server: ModelServer) -> dict[str, Any]:
    [body] = [body for method, _, _, body in server.asked if method == "POST"]
    return body


def speak(server: ModelServer, kind: str, *texts: str) -> None:
    answers: dict[str, Callable[..., None]] = {
        "llama.cpp": server.llama,
        "ollama": server.ollama,
        "openai": server.openai,
    }
    answers[kind](*texts)


KINDS = ("llama.cpp", "ollama", "openai")


@pytest.mark.parametrize("kind", KINDS)
def test_the_api_of_the_server_is_detected(server: ModelServer, make: Make, kind: str) -> None:
    speak(server, kind, "return", " a", " + b")
    told: list[str] = []
    endpoint = make()
    result = endpoint.complete(SOURCE, told.append)
    assert (result.text, result.reason) == ("return a + b", "end")
    assert told == ["return a"], "`b` may be the beginning of a longer name"
    assert posted(server)["prompt"] == PROMPT
    assert result.generated_tokens == 3
    assert 0 < result.first_ms <= result.total_ms
    assert kind in endpoint.description
    assert "qwen2.5-coder" in endpoint.description
    endpoint.complete(SOURCE, nobody)
    assert server.paths().count("/props") == 1, "it asks once"


def test_the_request_to_a_llama_server(server: ModelServer, make: Make) -> None:
    server.llama("return a")
    result = make(max_tokens=17).complete(SOURCE, nobody, single_line=True)
    body = posted(server)
    assert (body["temperature"], body["top_k"], body["n_predict"]) == (0, 1, 17)
    assert (body["cache_prompt"], body["n_probs"], body["stream"]) == (True, 0, True)
    assert body["stop"][0] == "\n"
    assert {"<|endoftext|>", "<|file_sep|>", "<|fim_prefix|>"} <= set(body["stop"])
    assert (result.prompt_tokens, result.read_tokens) == (37, 7)


def test_the_request_to_an_ollama(server: ModelServer, make: Make) -> None:
    server.ollama("return a", models=("llama3:8b", "qwen2.5-coder:1.5b-base"))
    make(max_tokens=17, context_tokens=3000).complete(SOURCE, nobody)
    body = posted(server)
    assert body["model"] == "qwen2.5-coder:1.5b-base", "the one that can fill in the middle"
    assert (body["raw"], body["stream"], body["keep_alive"]) == (True, True, "30m")
    options = body["options"]
    assert (options["temperature"], options["top_k"]) == (0, 1)
    assert (options["num_predict"], options["num_ctx"]) == (17, 3000)
    assert "\n" not in options["stop"]


def test_the_request_to_other_servers(server: ModelServer, make: Make, monkeypatch: Any) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    server.openai("return a")
    url = server.url + "/v1/"
    endpoint = make(url=url, api="openai", key_env="MY_KEY")
    endpoint.complete(SOURCE, nobody, single_line=True)
    body = posted(server)
    assert (body["model"], body["temperature"]) == ("Qwen/Qwen2.5-Coder-7B", 0)
    assert body["stream"] is True
    assert endpoint.read_tokens == 0, "it does not say how many were cached"
    assert body["stop"][0] == "\n"
    assert len(body["stop"]) <= 4
    assert not {"top_k", "cache_prompt"} & body.keys(), "some refuse what they do not know"
    assert server.paths() == ["/v1/models", "/v1/completions"]
    assert all(headers["Authorization"] == "Bearer sk-1" for _, _, headers, _ in server.asked)


def test_other_files_are_in_the_prompt(server: ModelServer, make: Make) -> None:
    server.llama("return a")
    ring = ContextRing()
    endpoint = make(ring)
    text = "".join(f"def helper_{n}():\n    return {n}\n" for n in range(4))
    ring.add(Chunk("lib.py", 0, text, "visited"))
    while endpoint.idle():
        pass
    endpoint.complete(SOURCE, nobody)
    assert "<|file_sep|>lib.py\ndef helper_0():" in posted(server)["prompt"]


def test_the_index_is_asked_in_idle_time(server: ModelServer, make: Make) -> None:
    class Index:
        def __init__(self) -> None:
            self.asked: list[Query] = []

        def ask(self, query: Query, found: Found) -> None:
            self.asked.append(query)

    server.llama("return a")
    index = Index()
    endpoint = make(ContextRing(index))
    assert not endpoint.idle()
    endpoint.complete(SOURCE, nobody)
    assert index.asked == []
    endpoint.idle()
    assert index.asked == [Query.of(SOURCE)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("texts", "single_line", "text", "reason"),
    [
        (("return a\n", "\n\n", "def"), False, "return a", "trimmed"),
        (("return a", "\n", "x = 1"), True, "return a", "line"),
        (("return a<|file", "_sep|>b.py"), False, "return a", "end"),
        (("", "  ", ""), False, "", "end"),
    ],
)
def test_the_end_of_a_text(
    server: ModelServer,
    make: Make,
    kind: str,
    texts: tuple[str, ...],
    single_line: bool,
    text: str,
    reason: str,
) -> None:
    speak(server, kind, *texts)
    result = make().complete(SOURCE, nobody, single_line=single_line)
    assert (result.text, result.reason) == (text, reason)


def test_the_stream_is_closed_as_soon_as_a_rule_says_so(server: ModelServer, make: Make) -> None:
    server.llama()
    line = {"content": "return a\n\n\n\nx = 1\n", "stop": False}
    server.routes["/completion"] = (200, "text/event-stream", server.drip(sse(line)))
    assert make().complete(SOURCE, nobody).text == "return a"
    wait_gone(server)


def test_a_text_ends_when_its_time_is_over(server: ModelServer, make: Make) -> None:
    server.llama()

    def slowly() -> Iterator[bytes]:
        for number in range(200):
            yield sse({"content": f"word({number}) + ", "stop": False})
            if server.is_over.wait(0.02):
                return

    server.routes["/completion"] = (200, "text/event-stream", slowly)
    result = make(budget_ms=100).complete(SOURCE, nobody)
    assert result.reason == "time"
    assert result.text.startswith("word(0)")
    assert result.text.endswith(")"), "the operator behind it says nothing"
    assert "word(199)" not in result.text


def wait_gone(server: ModelServer) -> None:
    """Wait until the server sees that the client has closed the connection."""
    deadline_s = time.monotonic() + 20
    while not server.gone_s:
        assert time.monotonic() < deadline_s, "the connection is still open"
        time.sleep(0.002)


@pytest.mark.parametrize("path", ["/props", "/completion"])
def test_an_abort_closes_the_connection(server: ModelServer, make: Make, path: str) -> None:
    server.llama("return a")
    kind = "application/json" if path == "/props" else "text/event-stream"
    server.routes[path] = (200, kind, server.drip(sse({"content": "ret", "stop": False})))
    endpoint = make()

    def stop() -> None:
        while path not in server.paths():
            time.sleep(0.002)
        endpoint.abort.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Cancelled):
        endpoint.complete(SOURCE, nobody)
    thread.join()  # the answer has no end of its own: only the abort ends it
    wait_gone(server)
    assert endpoint.abort.is_set()
    with pytest.raises(Cancelled):  # until it is taken back
        endpoint.complete(SOURCE, nobody)
    server.llama("return a")
    endpoint.abort.clear()
    assert endpoint.complete(SOURCE, nobody).text == "return a"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "form", "body", "error", "words"),
    [
        (
            200,
            "text/event-stream",
            b'data: {"error": {"message": "boom"}}\n\n',
            ServerFailed,
            "boom",
        ),
        (200, "application/x-ndjson", b'{"error": "boom"}\n', ServerFailed, "boom"),
        (200, "text/html", b"<html>", ServerGarbled, "text/html"),
        (200, "text/plain", b"hello\n", ServerGarbled, "invalid JSON"),
        (200, "application/json", b"", ServerGarbled, "an empty answer"),
        (401, "application/json", b'{"error": {"message": "who"}}', ServerDenied, "who"),
        (404, "application/json", b'{"error": "model gone"}', ServerModelMissing, "model gone"),
        (500, "application/json", b'{"error": "boom"}', ServerFailed, "500: boom"),
    ],
)
def test_errors_of_a_server(
    server: ModelServer,
    make: Make,
    kind: str,
    status: int,
    form: str,
    body: bytes,
    error: type[LcursorError],
    words: str,
) -> None:
    speak(server, kind, "x")
    endpoint = make()
    endpoint.connect()
    path = {"llama.cpp": "/completion", "ollama": "/api/generate", "openai": "/v1/completions"}[
        kind
    ]
    server.routes[path] = (status, form, body)
    with pytest.raises(error, match=words) as e:
        endpoint.complete(SOURCE, nobody)
    assert e.value.hint
    speak(server, kind, "return a")
    assert endpoint.complete(SOURCE, nobody).text == "return a"


def test_a_server_that_comes_back(make: Make) -> None:
    with ModelServer() as first:
        first.llama("return a")
        endpoint = make(url=first.url)
        assert endpoint.complete(SOURCE, nobody).text == "return a"
    for _ in range(2):
        with pytest.raises(ServerUnreachable, match="refused"):
            endpoint.complete(SOURCE, nobody)
    assert not endpoint.is_connected
    with ModelServer(first.port) as second:  # another one, at the same address
        second.ollama("return b")
        assert endpoint.complete(SOURCE, nobody).text == "return b"
        assert "ollama" in endpoint.description


@pytest.mark.parametrize("has_pause", [False, True])
def test_a_llama_server_that_returns_with_another_model(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, has_pause: bool
) -> None:
    server.llama("return a")
    endpoint = make()
    endpoint.complete(SOURCE, nobody)
    if has_pause:
        monkeypatch.setattr("lcursor.fim.completion_server.KEEP_LOCAL_S", 0.0)
    else:
        server.json("/completion", {"error": {"message": "Loading model", "code": 503}}, 503)
        with pytest.raises(ServerFailed, match="Loading model"):
            endpoint.complete(SOURCE, nobody)
        assert not endpoint.is_connected
    server.llama("return b", model="starcoder2-3b-q4_k_m.gguf")
    assert endpoint.complete(SOURCE, nobody).text == "return b"
    assert "<fim_prefix>" in server.asked[-1][3]["prompt"]
    assert "starcoder2" in endpoint.description
    server.llama("return c", model="chats-only-3b.gguf")
    if has_pause:
        with pytest.raises(ModelUnsuitable, match="is unknown"):
            endpoint.complete(SOURCE, nobody)
        assert not endpoint.is_connected


def test_a_model_that_the_settings_name_is_not_asked_for_after_a_pause(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.fim.completion_server.KEEP_LOCAL_S", 0.0)
    server.llama("return a")
    endpoint = make(model="starcoder2")
    for _ in range(2):
        endpoint.complete(SOURCE, nobody)
    assert server.paths().count("/props") == 1


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"url": "localhost:8012"}, ConfigInvalid, "not the address"),
        ({"key_env": "NO_SUCH_VARIABLE_HERE"}, KeyMissing, "NO_SUCH_VARIABLE_HERE"),
        ({"provider": "openai"}, ModelUnsuitable, "of openai .* cannot complete"),
        ({"api": "anthropic"}, ModelUnsuitable, "of anthropic .* cannot complete"),
    ],
)
def test_invalid_settings_are_rejected_at_once(
    make: Make, settings: dict[str, str], error: type[LcursorError], words: str
) -> None:
    with pytest.raises(error, match=words):
        make(**settings)


def test_the_model_and_its_family_are_chosen(server: ModelServer, make: Make) -> None:
    def refusal(**settings: Any) -> str:
        with pytest.raises((ConfigInvalid, ModelUnsuitable, ServerModelMissing)) as e:
            make(**settings).connect()
        return f"{type(e.value).__name__}: {e.value}"

    server.ollama(models=("a", "b"))
    assert "ConfigInvalid" in refusal()
    assert "several models: a, b" in refusal()
    assert "one of qwen2.5-coder, " in refusal(model="a")
    assert "no family 'qwen'" in refusal(model="a", family="qwen")
    assert "there is no 'gpt'" in refusal(api="gpt")
    server.ollama(models=())
    assert "lists no model" in refusal()
    server.ollama(models=("starcoder2:3b", "codellama:7b-code"))
    assert "several models" in refusal()
    endpoint = make(model="mine", family="starcoder2")
    endpoint.connect()
    assert endpoint._family
    assert (endpoint.model, endpoint._family.name) == ("mine", "starcoder2")


@pytest.mark.parametrize("status", [503, 401])
def test_a_llama_server_that_loads_or_is_locked_is_not_taken_for_another(
    server: ModelServer, make: Make, status: int
) -> None:
    server.openai("x")  # it answers /v1/models all the while
    server.json("/props", {"error": {"message": "not now", "code": status}}, status)
    with pytest.raises((ServerFailed, ServerDenied), match="not now"):
        make().connect()


def test_a_gateway_that_lists_nothing(server: ModelServer, make: Make) -> None:
    server.openai("return a")
    del server.routes["/v1/models"]
    settings = {"api": "openai", "model": "starcoder2"}
    assert make(**settings).complete(SOURCE, nobody).text == "return a"
    assert make(model="starcoder2").complete(SOURCE, nobody).text == "return a"
    with pytest.raises(ServerGarbled, match="neither a llama-server"):
        make().connect()


def test_an_address_with_another_version(server: ModelServer, make: Make) -> None:
    server.openai("return a")
    for path in ("/models", "/completions"):
        server.routes[f"/api/v4{path}"] = server.routes.pop(f"/v1{path}")
    endpoint = make(url=f"{server.url}/api/v4")
    assert endpoint.complete(SOURCE, nobody).text == "return a"


def test_llama_cpp_is_not_imported() -> None:
    code = "import sys, lcursor.fim.endpoint as e; print('llama_cpp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
