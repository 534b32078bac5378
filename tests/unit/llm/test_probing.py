"""What a server is and can do is found out, and told when it is nothing of use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lcursor.errors import (
    ConfigInvalid,
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerModelMissing,
)
from lcursor.http.detect import Kind
from lcursor.llm.client import ChatClient
from lcursor.llm.records import Served, ServedModel
from tests.fakes.chat_server import ChatServer

Look = Callable[..., Served]
SETTING = "models.big."


@pytest.fixture
def look() -> Iterator[Look]:
    """Probe a server."""
    with ExitStack() as stack:

        def probe(server: ChatServer, path: str = "", **fields: Any) -> Served:
            client = ChatClient(ServedModel("big", server.url + path, setting=SETTING, **fields))
            stack.callback(client.close)
            return client.probe()

        yield probe


def test_a_llama_server_is_detected(look: Look) -> None:
    with ChatServer(context_tokens=4096) as server:
        assert look(server) == Served(
            "llama.cpp", "fake-chat", 4096, True, True, True, 1, ("fake-chat",)
        )
        assert look(server, "/v1").kind == "llama.cpp", "an address with its version"


def test_a_llama_server_without_a_folder_for_slots(look: Look) -> None:
    with ChatServer() as server:
        refusal = {"error": {"message": "This server does not support slots action.", "code": 501}}
        server.extra["/slots/0"] = (501, refusal)
        assert not look(server).can_save_slots


def test_a_llama_server_that_sleeps_is_not_woken(look: Look) -> None:
    with ChatServer() as server:
        settings = {"default_generation_settings": {"n_ctx": 512}, "model_path": "/m/q.gguf"}
        server.extra["/props"] = (200, {**settings, "is_sleeping": True})
        assert look(server).can_save_slots
        assert server.paths() == ["/props"]


def test_a_llama_server_without_an_alias(look: Look) -> None:
    with ChatServer() as server:
        settings = {"default_generation_settings": {"n_ctx": 512}, "model_path": "/m/q.gguf"}
        server.extra["/props"] = (200, settings)
        assert (look(server).model, look(server).context_tokens) == ("q.gguf", 512)


def test_a_router_of_llama_servers(look: Look) -> None:
    with ChatServer() as server:
        props = {"role": "router", "default_generation_settings": {"n_ctx": 0}}
        server.extra["/props"] = (200, props)
        server.extra["/v1/models"] = (200, {"data": [{"id": "a"}, {"id": "b"}]})
        server.extra["/props?model=b"] = (200, {"default_generation_settings": {"n_ctx": 777}})
        with pytest.raises(ConfigInvalid, match="several models: a, b") as e:
            look(server)
        assert "models.big.model" in e.value.hint
        found = look(server, model="b")
        assert (found.model, found.context_tokens, found.models) == ("b", 777, ("a", "b"))


@pytest.mark.parametrize(
    ("wanted", "parameters", "trained", "tokens"),
    [
        (0, "", 40960, 16384),
        (0, "", 2048, 2048),
        (0, "stop x\nnum_ctx    9000", 40960, 9000),
        (30000, "num_ctx 9000", 40960, 30000),
        (0, "", 0, 16384),
    ],
)
def test_an_ollama_is_detected(
    look: Look, wanted: int, parameters: str, trained: int, tokens: int
) -> None:
    with ChatServer(kind="ollama", model="qwen3:8b") as server:
        info = {"qwen3.context_length": trained} if trained else {}
        can = ["completion", "tools"] if wanted else ["completion"]
        shown = {"model_info": info, "parameters": parameters, "capabilities": can}
        server.extra["/api/show"] = (200, shown)
        found = look(server, context_tokens=wanted)
        assert found == Served(
            "ollama", "qwen3:8b", tokens, models=("qwen3:8b",), has_tools=bool(wanted)
        )


def test_an_ollama_without_the_model(look: Look) -> None:
    with ChatServer(kind="ollama") as server:
        server.extra["/api/show"] = (404, {"error": "model 'x' not found"})
        with pytest.raises(ServerModelMissing, match="model 'x' not found") as e:
            look(server, model="x")
        assert "models.big.model" in e.value.hint


@pytest.mark.parametrize(
    ("row", "tokens", "can_count"),
    [
        ({"id": "m", "max_model_len": 32768}, 32768, True),
        ({"id": "m", "context_length": 131072}, 131072, False),
        ({"id": "m", "context_window": 8192}, 8192, False),
        ({"id": "m"}, 0, False),
    ],
)
def test_any_other_server_is_detected(
    look: Look, row: dict[str, Any], tokens: int, can_count: bool
) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/v1/models"] = (200, {"data": [row]})
        assert look(server) == Served(
            "openai", "m", tokens, can_count, models=("m",), has_tools=True
        )


@pytest.mark.parametrize(
    ("says", "wanted", "found"), [(4096, 0, 4096), (4096, 9000, 4096), (4096, 100, 100)]
)
def test_the_user_may_say_less_but_not_more(look: Look, says: int, wanted: int, found: int) -> None:
    with ChatServer(context_tokens=says) as server:
        assert look(server, context_tokens=wanted).context_tokens == found


def test_a_gateway_that_lists_nothing(look: Look) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/v1/models"] = (404, {"detail": "Not Found"})
        for kind in ("", "openai"):
            found = look(server, model="glm", kind=kind, context_tokens=9000)
            assert found == Served("openai", "glm", 9000, has_tools=True)
        with pytest.raises(ServerGarbled, match="neither a llama-server nor an Ollama") as e:
            look(server)
        assert "models.big.url" in e.value.hint
        assert "models.big.api" in e.value.hint


def test_an_address_with_another_version(look: Look) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/api/paas/v4/models"] = (200, {"data": [{"id": "glm"}]})
        assert look(server, "/api/paas/v4").model == "glm"


@pytest.mark.parametrize("kind", ["llama.cpp", "ollama", "openai"])
def test_only_the_given_api_is_tried(look: Look, kind: Kind) -> None:
    with ChatServer(kind=kind) as server:
        assert look(server, kind=kind).kind == kind
        first = {"llama.cpp": "/props", "ollama": "/api/version", "openai": "/v1/models"}
        assert server.paths()[0] == first[kind]


def test_another_kind_than_the_user_says(look: Look) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/props"] = (200, {"hello": "world"})
        with pytest.raises(ServerGarbled, match=r"is not a llama\.cpp") as e:
            look(server, kind="llama.cpp")
        assert "models.big.api" in e.value.hint


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (503, {"error": {"message": "Loading model"}}, ServerFailed),
        (401, {"error": {"message": "Invalid API Key"}}, ServerDenied),
        (500, {"error": "oops"}, ServerFailed),
    ],
)
def test_a_server_that_rejects_at_once(
    look: Look, status: int, body: object, error: type[ServerError]
) -> None:
    with ChatServer() as server:
        server.extra["/props"] = (status, body)
        with pytest.raises(error):
            look(server)
        assert server.paths() == ["/props"], "nothing else was tried"


def test_a_wrong_key_is_an_error(look: Look) -> None:
    with ChatServer(key="right") as server:
        with pytest.raises(ServerDenied, match="denies access") as e:
            look(server, key="wrong")
        assert e.value.hint == "Check the key in models.big.key_env or key_command"
        with pytest.raises(ServerDenied) as e:
            look(server)
        assert e.value.hint == "Set its key in models.big.key_env or key_command"
        assert look(server, key="right").model == "fake-chat"


@pytest.mark.parametrize("body", [[], 3, "x", None, {"data": 3}, {}])
def test_answers_that_say_nothing(look: Look, body: object) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/v1/models"] = (200, body)
        with pytest.raises(ServerError):
            look(server)


def test_no_models_at_all(look: Look) -> None:
    with ChatServer(kind="openai") as server:
        server.extra["/v1/models"] = (200, {"data": []})
        with pytest.raises(ServerModelMissing, match="lists no model"):
            look(server)
