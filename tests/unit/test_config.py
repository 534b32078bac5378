"""Settings that cross the wire: types are checked, unknown sections are ignored."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor import config
from lcursor.config import ChatConfig, Config, ModelConfig
from lcursor.errors import ConfigInvalid


def chat(**table: Any) -> ChatConfig:
    return config.from_table({"chat": table}).chat


@pytest.mark.parametrize("table", [{}, {"chat": {}}, {"chat": None}, {"keymaps": {"accept": "x"}}])
def test_what_is_not_set_is_the_default(table: dict[str, Any]) -> None:
    assert config.from_table(table) == Config()


def test_a_setting_is_read_and_one_of_the_editor_ignored() -> None:
    table = {"completion": {"max_tokens": 9, "debounce_ms": 5}}
    assert config.from_table(table).completion.max_tokens == 9


def test_named_models() -> None:
    table = {
        "b": {"url": "http://x", "context_tokens": 5},
        "a": {"url": "unix:///s", "key_env": "K"},
    }
    assert chat(models=table).models == (
        ModelConfig("a", "unix:///s", key_env="K"),
        ModelConfig("b", "http://x", context_tokens=5),
    )


@pytest.mark.parametrize("empty", [[], {}])
def test_an_empty_table_of_lua(empty: object) -> None:
    assert chat(models=empty).models == ()


@pytest.mark.parametrize(
    ("value", "globs"),
    [(["*.vault", "a/*"], ("*.vault", "a/*")), ([], ()), ({}, ()), ({"mine": "*.b"}, ("*.b",))],
)
def test_a_list_of_globs(value: object, globs: tuple[str, ...]) -> None:
    assert config.from_table({"completion": {"secrets": value}}).completion.secrets == globs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("secrets", value) for value in ("*.vault", [3], [["*.vault"]], {"a": 3}, None)),
        *(("max_tokens", value) for value in ("9", 9.5, True, None)),
    ],
)
def test_a_wrong_type_is_reported_with_its_setting(name: str, value: object) -> None:
    with pytest.raises(ConfigInvalid, match=rf"completion\.{name}"):
        config.from_table({"completion": {name: value}})


def test_a_whole_number_is_good_for_a_share() -> None:
    assert chat(temperature=1) == ChatConfig(temperature=1.0)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"models": {"b": {"modle": "x"}}}, "chat.models.b: no such setting: modle"),
        ({"models": {"b": {"url": 3}}}, "chat.models.b.url: expected str, found int"),
        ({"models": {"b": {"name": "c"}}}, "chat.models.b: no such setting: name"),
        ({"models": {"b": "http://x"}}, "chat.models: expected a name and a table"),
        ({"models": {1: {}}}, "chat.models: expected a name and a table"),
        ({"models": ["http://x"]}, "chat.models: expected tuple, found list"),
        ({"server": True}, "chat.server: expected str, found bool"),
        ({"max_tokens": 0.5}, "chat.max_tokens: expected int, found float"),
        ({"enabled": 1}, "chat.enabled: expected bool, found int"),
    ],
)
def test_wrong_types(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as e:
        chat(**table)
    assert e.value.hint
    assert "http://x" not in e.value.message


def test_a_section_that_is_no_table() -> None:
    with pytest.raises(ConfigInvalid, match="chat: expected a table"):
        config.from_table({"chat": 3})
