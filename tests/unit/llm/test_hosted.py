"""Hosted providers, each by a local server with its paths: a key alone is enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from lcursor import config
from lcursor.config import PROVIDER_TOKENS, PROVIDERS, ChatConfig
from lcursor.errors import ConfigInvalid, KeyMissing, ServerDenied
from lcursor.llm import models
from lcursor.llm.client import REASONING_TOKENS, ChatClient
from lcursor.llm.records import Message, SamplingParams, Text
from tests.fakes.chat_server import ChatServer, refuse, say

KEY = "sk-secret"
WISH = SamplingParams(9, 0.0)
MODELS = {"openrouter": "some/model"}
"""Names for providers without a default."""


def settings(name: str, server: ChatServer, **more: object) -> ChatConfig:
    """Return settings of a provider, whose paths are at a local server."""
    url = server.url + urlsplit(PROVIDERS[name].url).path
    row = {"provider": name, "url": url, "model": MODELS.get(name) or PROVIDERS[name].model, **more}
    return config.from_table({"models": {"big": row}}).chat


@contextmanager
def connected(chat: ChatConfig) -> Iterator[ChatClient]:
    client = ChatClient(models.target(chat, "big"))
    try:
        yield client
    finally:
        client.close()


def ask(client: ChatClient) -> str:
    stream = client.stream([Message("user", "Hello?")], WISH)
    return "".join(each.text for each in stream if isinstance(each, Text))


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_the_request_to_each_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROVIDERS[name].key_env, KEY)
    with ChatServer([say("Hel", "lo")], kind="openai", key=KEY) as server:
        with connected(settings(name, server)) as client:
            assert ask(client) == "Hello"
            assert client.served
            assert client.served.context_tokens == PROVIDER_TOKENS
        base = urlsplit(PROVIDERS[name].url).path
        assert server.paths() == [f"{base}/models", f"{base}/chat/completions"]
        assert {headers["Authorization"] for _, _, headers in server.asked} == {f"Bearer {KEY}"}
        [body] = server.bodies
        assert body["model"] == (MODELS.get(name) or PROVIDERS[name].model)
        assert (body["stream"], body["max_tokens"]) == (True, 9 + REASONING_TOKENS)
        assert body["messages"] == [{"role": "user", "content": "Hello?"}]


def test_a_key_command_comes_before_the_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    with ChatServer([say("Hi")], kind="openai", key=KEY) as server:
        chat = settings("anthropic", server, key_command=f"echo {KEY}")
        with connected(chat) as client:
            assert ask(client) == "Hi"


def test_a_list_of_models_that_the_key_may_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ChatServer([say("Hi")], kind="openai") as server:
        server.extra["/v1/models"] = (401, {"error": {"message": "x-api-key header is required"}})
        with connected(settings("anthropic", server)) as client:
            assert ask(client) == "Hi"


def test_a_wrong_key_is_reported_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "wrong")
    with ChatServer(kind="openai", key=KEY) as server:
        chat = settings("mistral", server)
        with connected(chat) as client, pytest.raises(ServerDenied) as error:
            ask(client)
    assert error.value.hint == "Check the key in models.big.key_env"
    assert "wrong" not in str(error.value)


def test_a_model_that_writes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = "max_tokens is too large: 16009. This model supports at most 4096 completion tokens"
    with ChatServer([refuse(400, words), say("Hi")], kind="openai") as server:
        with connected(settings("openai", server)) as client:
            assert ask(client) == "Hi"
        assert "max_tokens" not in server.bodies[1]


def test_a_missing_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat = config.from_table({"models": {"big": {"provider": "openai"}}}).chat
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY") as error:
        models.target(chat, "big")
    assert "models.big.key_env or key_command" in error.value.hint


def test_a_provider_is_used_only_where_it_is_named() -> None:
    table = {"models": {"big": {"provider": "openai"}}}
    assert models.default(config.from_table(table).chat) == models.LOCAL
    with pytest.raises(ConfigInvalid, match="there is no chat model"):
        models.default(config.from_table({**table, "chat": {"server": "off"}}).chat)
    assert config.from_table(table).completion.endpoint is None
