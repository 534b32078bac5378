"""Hosted providers, each by a local server with its paths: a key alone is enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from lcursor.config import PROVIDER_TOKENS, PROVIDERS, ChatConfig
from lcursor.config_table import from_table
from lcursor.errors import ConfigInvalid, KeyMissing, ServerDenied, ServerFailed
from lcursor.llm import models
from lcursor.llm.client import REASONING_TOKENS, ChatClient
from lcursor.llm.records import Finished, Message, SamplingParams, Text
from tests.fakes.chat_server import Answer, ChatServer, recorded, refuse, say, say_anthropic
from tests.fakes.loopback import sse

KEY = "sk-secret"
WISH = SamplingParams(9, 0.0)
MODELS = {"openrouter": "some/model"}
"""Names for providers without a default."""


def settings(name: str, server: ChatServer, **more: object) -> ChatConfig:
    """Return settings of a provider, whose paths are at a local server."""
    url = server.url + urlsplit(PROVIDERS[name].url).path
    model, api = MODELS.get(name) or PROVIDERS[name].model, PROVIDERS[name].api
    row = {"provider": name, "url": url, "api": api, "model": model, **more}
    return from_table({"models": {"big": row}}).chat


@contextmanager
def connected(chat: ChatConfig) -> Iterator[ChatClient]:
    client = ChatClient(models.target(chat, "big"))
    try:
        yield client
    finally:
        client.close()


def ask(client: ChatClient, *before: Message) -> str:
    stream = client.stream([*before, Message("user", "Hello?")], WISH)
    return "".join(each.text for each in stream if isinstance(each, Text))


@pytest.mark.parametrize(
    "name", sorted(name for name, each in PROVIDERS.items() if each.api == "openai")
)
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
    with ChatServer([say_anthropic("Hi")], kind="anthropic", key=KEY) as server:
        chat = settings("anthropic", server, key_command=f"echo {KEY}")
        with connected(chat) as client:
            assert ask(client) == "Hi"


def test_a_list_of_models_that_the_key_may_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ChatServer([say_anthropic("Hi")], kind="anthropic") as server:
        server.extra["/v1/models"] = (401, {"error": {"message": "x-api-key header is required"}})
        with connected(settings("anthropic", server)) as client:
            assert ask(client) == "Hi"


def test_a_wrong_key_is_reported_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "wrong")
    with ChatServer(kind="openai", key=KEY) as server:
        chat = settings("mistral", server)
        with connected(chat) as client, pytest.raises(ServerDenied) as error:
            ask(client)
    assert error.value.hint == "Check the key in models.big.key_env or key_command"
    assert "wrong" not in str(error.value)


def test_a_model_that_writes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAI_API_KEY", KEY)
    words = "max_tokens is too large: 16009. This model supports at most 4096 completion tokens"
    with ChatServer([refuse(400, words), say("Hi")], kind="openai") as server:
        with connected(settings("zai", server)) as client:
            assert ask(client) == "Hi"
        assert "max_tokens" not in server.bodies[1]


def test_a_missing_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat = from_table({"models": {"big": {"provider": "openai"}}}).chat
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY") as error:
        models.target(chat, "big")
    assert "models.big.key_env or key_command" in error.value.hint


def test_a_provider_is_used_only_where_it_is_named() -> None:
    table = {"models": {"big": {"provider": "openai"}}}
    assert models.default(from_table(table).chat) == models.LOCAL
    with pytest.raises(ConfigInvalid, match="there is no chat model"):
        models.default(from_table({**table, "chat": {"server": "off"}}).chat)
    assert from_table(table).completion.endpoint is None


def test_what_anthropic_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ChatServer([say_anthropic("Hel", "lo", cached=90)], kind="anthropic", key=KEY) as server:
        talk = [Message("system", "Be kind."), Message("user", "Hello?")]
        with connected(settings("anthropic", server)) as client:
            events = [*client.stream(talk, WISH)]
        assert "".join(each.text for each in events if isinstance(each, Text)) == "Hello"
        end = events[-1]
        assert isinstance(end, Finished)
        assert (end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.answer_tokens) == (
            100,
            90,
            7,
        )
        assert server.paths() == ["/v1/models", "/v1/messages"]
        sent = server.asked[1][2]
        assert (sent["x-api-key"], sent["anthropic-version"]) == (KEY, "2023-06-01")
        assert "Authorization" not in sent
        [body] = server.bodies
        cached = {"cache_control": {"type": "ephemeral"}}
        assert body["system"] == [{"type": "text", "text": "Be kind.", **cached}]
        words = {"type": "text", "text": "Hello?", **cached}
        assert body["messages"] == [{"role": "user", "content": [words]}]
        assert body["max_tokens"] == 9 + REASONING_TOKENS


def test_what_openai_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    rejected = refuse(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    with ChatServer([rejected, recorded("responses-whole")], kind="responses", key=KEY) as server:
        with connected(settings("openai", server)) as client:
            talk = [Message("system", "Be kind."), Message("user", "Hello?")]
            stream = client.stream(talk, WISH)
            assert (
                "".join(each.text for each in stream if isinstance(each, Text)) == "I look at it."
            )
        assert server.paths() == ["/v1/models", "/v1/responses", "/v1/responses"]
        assert server.bodies[1] == {
            "model": "gpt-5.6", "instructions": "Be kind.", "stream": True, "store": False,
            "input": [{"role": "user", "content": "Hello?"}],
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 9 + REASONING_TOKENS,
        }  # fmt: skip


def test_what_gemini_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    rejected = refuse(400, "Thinking is not enabled for this model")
    with ChatServer([rejected, recorded("gemini-whole")], kind="gemini", key=KEY) as server:
        with connected(settings("gemini", server)) as client:
            talk = [Message("system", "Be kind."), Message("user", "Hello?")]
            stream = client.stream(talk, WISH)
            assert (
                "".join(each.text for each in stream if isinstance(each, Text)) == "I look at it."
            )
        model = "/v1beta/models/gemini-flash-latest:streamGenerateContent"
        assert server.paths() == ["/v1beta/models", model, model]
        assert all("Authorization" not in headers for _, _, headers in server.asked)
        assert [path for _, path, _ in server.asked][1] == f"{model}?alt=sse"
        limit = {"maxOutputTokens": 9 + REASONING_TOKENS}
        assert server.bodies[0]["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
        assert server.bodies[1] == {
            "systemInstruction": {"parts": [{"text": "Be kind."}]},
            "contents": [{"role": "user", "parts": [{"text": "Hello?"}]}],
            "generationConfig": limit,
        }


def test_an_answer_that_anthropic_rejects_or_cuts_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    broken = [
        Answer([sse({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})])
    ]
    script = [
        say_anthropic("I", reason="refusal"),
        say_anthropic("I", reason="max_tokens"),
        *broken,
    ]
    with (
        ChatServer(script, kind="anthropic", key=KEY) as server,
        connected(settings("anthropic", server)) as client,
    ):
        with pytest.raises(ServerFailed, match="cut the answer off"):
            ask(client)
        *_, end = client.stream([Message("user", "Hello?")], WISH)
        assert isinstance(end, Finished)
        assert end.reason == "length"
        with pytest.raises(ServerFailed, match="busy"):
            ask(client)
