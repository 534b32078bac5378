"""Settings that cross the wire: types are checked, unknown sections are ignored."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lcursor.config import (
    PROVIDER_TOKENS,
    PROVIDERS,
    ChatConfig,
    CompletionConfig,
    Config,
    ModelConfig,
)
from lcursor.config_table import from_table
from lcursor.errors import ConfigInvalid


def chat(**table: Any) -> ChatConfig:
    return from_table({"chat": table}).chat


@pytest.mark.parametrize("table", [{}, {"chat": {}}, {"chat": None}, {"keymaps": {"accept": "x"}}])
def test_what_is_not_set_is_the_default(table: dict[str, Any]) -> None:
    assert from_table(table) == Config()


def test_a_setting_is_read_and_one_of_the_editor_ignored() -> None:
    table = {"completion": {"max_tokens": 9, "debounce_ms": 5}}
    assert from_table(table).completion.max_tokens == 9


@pytest.mark.parametrize("name", ["atuo", "full", ""])
def test_an_unknown_policy_is_an_error(name: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        from_table({"agent": {"policy": name}})
    assert caught.value.message == f"agent.policy: there is no {name!r}"
    assert caught.value.hint == "Use plan, ask, auto"


def models(table: object) -> tuple[ModelConfig, ...]:
    return from_table({"models": table}).chat.models


def test_named_models() -> None:
    table = {
        "b": {"url": "http://x", "context_tokens": 5},
        "a": {"url": "unix:///s", "key_env": "K"},
    }
    assert models(table) == (
        ModelConfig("a", url="unix:///s", key_env="K"),
        ModelConfig("b", url="http://x", context_tokens=5),
    )


@pytest.mark.parametrize("empty", [[], {}, None])
def test_an_empty_table_of_lua(empty: object) -> None:
    assert models(empty) == ()


@pytest.mark.parametrize(("model", "url"), [("desk", "http://x"), ("qwen2.5-coder-0.5b", None)])
def test_a_named_model_completes_on_its_server(model: str, url: str | None) -> None:
    table = {"models": {"desk": {"url": "http://x"}}, "completion": {"model": model}}
    endpoint = from_table(table).completion.endpoint
    assert (endpoint and endpoint.url) == url


@pytest.mark.parametrize(
    ("name", "api"), [("openai", "openai"), ("gemini", "openai"), ("anthropic", "anthropic")]
)
def test_a_provider_at_another_address(name: str, api: str) -> None:
    [model] = models({"x": {"provider": name, "url": "https://gateway.test/v1"}})
    assert (model.url, model.api) == ("https://gateway.test/v1", api)


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_a_provider_needs_only_a_key(name: str) -> None:
    provider = PROVIDERS[name]
    assert provider.url.startswith("https://")
    [model] = models({"x": {"provider": name}})
    assert (model.url, model.api, model.model) == (provider.url, provider.api, provider.model)
    assert (model.key_env, model.key_command) == (provider.key_env, "")
    assert model.context_tokens == PROVIDER_TOKENS
    [model] = models({"x": {"provider": name, "key_command": "pass show x"}})
    assert (model.key_env, model.key_command) == ("", "pass show x")


def test_settings_of_a_model_come_before_those_of_its_provider() -> None:
    wanted = {"url": "https://api.moonshot.cn/v1", "model": "k", "context_tokens": 9}
    [model] = models({"x": {"provider": "moonshot", **wanted}})
    assert (model.url, model.model, model.context_tokens) == tuple(wanted.values())


def test_no_provider_chooses_another_company() -> None:
    assert models({"x": {"provider": "openrouter"}})[0].model == ""


@pytest.mark.parametrize(
    ("value", "globs"),
    [(["*.vault", "a/*"], ("*.vault", "a/*")), ([], ()), ({}, ()), ({"mine": "*.b"}, ("*.b",))],
)
def test_a_list_of_globs(value: object, globs: tuple[str, ...]) -> None:
    assert from_table({"privacy": {"exclude": value}}).privacy.exclude == globs


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        *(
            ("privacy", "exclude", value)
            for value in ("*.vault", [3], [["*.vault"]], {"a": 3}, None)
        ),
        *(("completion", "max_tokens", value) for value in ("9", 9.5, True, None)),
    ],
)
def test_a_wrong_type_is_reported_with_its_setting(section: str, name: str, value: object) -> None:
    with pytest.raises(ConfigInvalid, match=rf"{section}\.{name}"):
        from_table({section: {name: value}})


def test_a_whole_number_is_good_for_a_share() -> None:
    found = from_table({"completion": {"min_confidence": 1}}).completion
    assert found == CompletionConfig(min_confidence=1.0)


def test_what_is_no_option_is_skipped() -> None:
    table = {"completion": {"budget_ms": 9, "endpoint": "x"}, "chat": {"models": 3}}
    assert from_table(table) == Config()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"server": True}, "chat.server: expected str, found bool"),
        ({"max_tokens": 0.5}, "chat.max_tokens: expected int, found float"),
        ({"rule_files": 1}, "chat.rule_files: expected bool, found int"),
    ],
)
def test_wrong_types(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as e:
        chat(**table)
    assert e.value.hint


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"b": {"modle": "x"}}, "models.b: no such setting: modle"),
        ({"b": {"url": 3}}, "models.b.url: expected str, found int"),
        ({"b": {"name": "c"}}, "models.b: no such setting: name"),
        ({"b": {"provider": "x"}}, "models.b.provider: there is no 'x'"),
        ({"b": "http://x"}, "models: expected a name and a table"),
        ({1: {}}, "models: expected a name and a table"),
        (["http://x"], "models: expected a table"),
    ],
)
def test_wrong_models(table: object, words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as e:
        models(table)
    assert e.value.hint
    assert "http://x" not in e.value.message


def test_a_section_that_is_no_table() -> None:
    with pytest.raises(ConfigInvalid, match="chat: expected a table"):
        from_table({"chat": 3})


def test_servers_of_the_model_context_protocol() -> None:
    git = {"command": ["uvx", "mcp-server-git"], "env": {"TOKEN": "$GIT_TOKEN"}, "network": {}}
    table = {"git": git, "far": {"url": "https://x", "headers": []}}
    far, near = from_table({"mcp": {"servers": table}}).mcp.servers
    assert (far.name, far.url, far.headers) == ("far", "https://x", ())
    assert (near.command, near.env, near.network) == (
        ("uvx", "mcp-server-git"),
        (("TOKEN", "$GIT_TOKEN"),),
        (),
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"Git": {}}, "mcp.servers: 'Git' is no name"),
        ({"a__b": {}}, "mcp.servers: 'a__b' is no name"),
        ({"git": "uvx"}, "mcp.servers.git: expected a table"),
        ({"git": {"cmd": []}}, "mcp.servers.git: no such setting: cmd"),
        ({"git": {"command": "uvx"}}, "mcp.servers.git.command: expected a list of texts"),
        ({"git": {"env": {"A": 3}}}, "mcp.servers.git.env: expected texts by name"),
        ({"git": {"url": 3}}, "mcp.servers.git.url: expected a text"),
        ({"git": {}}, "mcp.servers.git: it needs either a command or a url"),
        ({"git": {"url": "x", "command": ["y"]}}, "mcp.servers.git: it needs either"),
        (["uvx"], "mcp.servers: expected a table"),
    ],
)
def test_wrong_servers(table: object, words: str) -> None:
    with pytest.raises(ConfigInvalid, match="^" + re.escape(words)):
        from_table({"mcp": {"servers": table}})
