"""What is sent: to each kind of server what it understands."""

from __future__ import annotations

import pytest

from lcursor.llm import requests
from lcursor.llm.records import Kind, Message, Served, Wish

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
def test_addresses(url: str, root: str, api: str) -> None:
    assert requests.split(url) == (root, api)


def served(kind: Kind) -> Served:
    return Served(kind, "m", 4096, can_progress=True)


def test_a_llama_server_is_asked_for_its_progress() -> None:
    path, body = requests.question(served("llama.cpp"), "/v1", MESSAGES, Wish(7, 0.5, 2), set())
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "m", "messages": [{"role": "system", "content": "S"},
                                   {"role": "user", "content": "U"}],
        "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
        "max_tokens": 7, "cache_prompt": True, "return_progress": True, "id_slot": 2,
    }  # fmt: skip


def test_others_get_only_what_all_know() -> None:
    path, body = requests.question(served("openai"), "", MESSAGES, Wish(0, 0.5, 2), set())
    assert path == "/chat/completions"
    assert set(body) == {"model", "messages", "stream", "stream_options", "temperature"}


def test_ollama_is_told_how_long_its_context_is() -> None:
    path, body = requests.question(served("ollama"), "/v1", MESSAGES, Wish(7), set())
    assert path == "/api/chat"
    assert body["options"] == {"temperature": 0.2, "num_ctx": 4096, "num_predict": 7}
    assert body["truncate"] is False


def test_quirks_bend_the_question() -> None:
    quirks: set[requests.Quirk] = {"no_usage", "completion_tokens", "no_temperature", "no_system"}
    _, body = requests.question(served("openai"), "/v1", MESSAGES, Wish(7), quirks)
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
        ("Invalid request", "", None),
        ("Internal error", "", None),
    ],
)  # fmt: skip
def test_what_a_refusal_is_about(words: str, field: str, quirk: str | None) -> None:
    assert requests.quirk(words, field) == quirk
