"""What is sent: to each kind of server what it understands."""

from __future__ import annotations

import pytest

from lcursor.http import endpoint
from lcursor.http.detect import Kind
from lcursor.llm import providers
from lcursor.llm.apis.api import Quirk
from lcursor.llm.apis.llama_server import completion_request
from lcursor.llm.records import Message, SamplingParams, Served, TokenPrompt

MESSAGES = [Message("system", "S"), Message("user", "U")]


@pytest.mark.parametrize(
    ("url", "root", "api"),
    [
        ("http://127.0.0.1:8012", "http://127.0.0.1:8012", "/v1"),
        ("http://127.0.0.1:8012/v1", "http://127.0.0.1:8012", "/v1"),
        ("http://127.0.0.1:8012/v1/", "http://127.0.0.1:8012", "/v1"),
        ("https://x.example/llama", "https://x.example/llama", "/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api", "/v1"),
        ("https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4", ""),
        ("https://x.example/v1beta/openai", "https://x.example/v1beta/openai", ""),
        ("https://v2.example", "https://v2.example", "/v1"),
        ("unix:///run/user/1/v2/x.sock", "unix:///run/user/1/v2/x.sock", "/v1"),
    ],
)
def test_the_address_of_a_provider(url: str, root: str, api: str) -> None:
    assert endpoint.split_url(url) == (root, api)


def served(kind: Kind) -> Served:
    return Served(kind, "m", 4096, can_progress=True)


def test_a_llama_server_is_asked_for_its_progress() -> None:
    path, body = providers.chat_request(
        served("llama.cpp"), "/v1", MESSAGES, SamplingParams(7, 0.5), set()
    )
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "m", "messages": [{"role": "system", "content": "S"},
                                   {"role": "user", "content": "U"}],
        "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
        "max_tokens": 7, "cache_prompt": True, "return_progress": True,
    }  # fmt: skip


def test_tokens_are_continued() -> None:
    prompt = TokenPrompt((1, 2))
    sampling = SamplingParams(7, 0.5, grammar="g", trigger="<x>", preserved=("<x>",))
    path, body = completion_request(served("llama.cpp"), prompt, sampling)
    assert path == "/completion"
    assert body == {
        "model": "m", "prompt": [1, 2], "stream": True, "return_tokens": True,
        "cache_prompt": True, "timings_per_token": True, "temperature": 0.5, "n_predict": 7,
        "grammar": "g", "grammar_lazy": True, "preserved_tokens": ["<x>"],
        "grammar_triggers": [{"type": 1, "value": "<x>"}],
    }  # fmt: skip
    _, body = completion_request(
        served("llama.cpp"), prompt, SamplingParams(grammar="g", stop=("y",), seed=3)
    )
    assert "grammar_lazy" not in body
    assert (body["n_predict"], body["stop"], body["seed"]) == (-1, ["y"], 3)


def test_other_servers_get_only_common_fields() -> None:
    path, body = providers.chat_request(
        served("openai"), "", MESSAGES, SamplingParams(0, 0.5), set()
    )
    assert path == "/chat/completions"
    assert set(body) == {"model", "messages", "stream", "stream_options", "temperature"}


SCHEMA = {"type": "object", "properties": {"ids": {"type": "array"}}}
FULL = SamplingParams(
    7, stop=("```",), schema=SCHEMA, grammar='root ::= "x"', seed=3, has_counts=True
)


def test_each_server_gets_the_form_of_the_answer_in_its_own_terms() -> None:
    held: dict[str, object] = {"type": "json_schema"}
    held |= {"json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    _, llama = providers.chat_request(served("llama.cpp"), "/v1", MESSAGES, FULL, set())
    assert llama["stop"] == ["```"]
    assert llama["seed"] == 3
    assert llama["response_format"] == held
    assert llama["grammar"] == 'root ::= "x"'
    assert llama["timings_per_token"] is True
    _, openai = providers.chat_request(served("openai"), "/v1", MESSAGES, FULL, set())
    assert openai["stop"] == ["```"]
    assert openai["seed"] == 3
    assert openai["response_format"] == held
    assert not {"grammar", "timings_per_token"} & set(openai)
    _, ollama = providers.chat_request(served("ollama"), "/v1", MESSAGES, FULL, set())
    assert ollama["options"]["stop"] == ["```"]
    assert ollama["options"]["seed"] == 3
    assert ollama["format"] == SCHEMA


@pytest.mark.parametrize("kind", ["llama.cpp", "openai", "ollama"])
def test_fields_that_a_server_rejects_are_left_out(kind: Kind) -> None:
    quirks: set[Quirk] = {"no_schema", "no_stop", "no_seed"}
    _, body = providers.chat_request(served(kind), "/v1", MESSAGES, FULL, quirks)
    assert not {"response_format", "format", "grammar"} & set(body)
    if kind != "ollama":  # which has its own ways, and knows both
        assert not {"stop", "seed"} & set(body)


def test_ollama_gets_the_length_of_its_context() -> None:
    path, body = providers.chat_request(served("ollama"), "/v1", MESSAGES, SamplingParams(7), set())
    assert path == "/api/chat"
    assert body["options"] == {"temperature": 0.2, "num_ctx": 4096, "num_predict": 7}
    assert body["truncate"] is False


def test_quirks_bend_the_question() -> None:
    quirks: set[Quirk] = {"no_usage", "completion_tokens", "no_temperature", "no_system"}
    _, body = providers.chat_request(served("openai"), "/v1", MESSAGES, SamplingParams(7), quirks)
    assert body == {
        "model": "m", "messages": [{"role": "user", "content": "S\n\nU"}], "stream": True,
        "max_completion_tokens": 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "field", "quirk"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
         "'max_completion_tokens' instead.", "max_tokens", "completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.2", "temperature", "no_temperature"),
        ("Extra inputs are not permitted: stream_options", "", "no_usage"),
        ("System role not supported", "", "no_system"),
        ("Value error: system message is not supported by this model", "", "no_system"),
        ("'response_format' of type 'json_schema' is not supported with this model",
         "response_format", "no_schema"),
        ("json_schema: unsupported keyword", "", "no_schema"),
        ("Unsupported parameter: 'stop' is not supported with this model", "stop", "no_stop"),
        ("Extra inputs are not permitted", "seed", "no_seed"),
        ("The server is about to stop", "", None),
        ("Invalid request", "", None),
        ("Internal error", "", None),
    ],
)  # fmt: skip
def test_the_field_that_a_server_rejects(words: str, field: str, quirk: str | None) -> None:
    assert providers.quirk_of(words, field) == quirk
