"""Names become models with an address and a key; questions find theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.config import ChatConfig, ModelConfig
from lcursor.errors import ConfigInvalid, KeyMissing, ModelError, ModelUnknown
from lcursor.llm import models
from lcursor.llm.records import ServedModel

BIG = ModelConfig("big", url="https://x.example/v1/", api="openai", model="glm", key_env="BIG_KEY")
NEAR = ModelConfig("near", url="http://127.0.0.1:8012", context_tokens=9000)


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (ChatConfig(), ["local"]),
        (ChatConfig(model="qwen3"), ["qwen3"]),
        (ChatConfig(models=(BIG, NEAR)), ["local", "big", "near"]),
        (ChatConfig(model="near", models=(BIG, NEAR)), ["near", "local", "big"]),
        (ChatConfig(model="qwen3", models=(BIG,)), ["qwen3", "big"]),
        (ChatConfig(server="off", models=(BIG, NEAR)), ["big", "near"]),
        (ChatConfig(server="off", model="near", models=(BIG, NEAR)), ["near", "big"]),
        (ChatConfig(server="off"), []),
    ],
)
def test_the_models_one_can_talk_to(config: ChatConfig, names: list[str]) -> None:
    assert models.targets(config) == names
    if names and (config.model or config.server != "off"):
        assert models.default(config) == names[0]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("big", ""),
        ("local", ""),
        ("mine", ""),  # what the server has now
        ("qwen2.5-coder-7b", ""),  # of the manifest, here or not
        ("bigg", "Did you mean big?"),
        ("qwen2.5-coder-7", "Did you mean qwen2.5-coder-7b or "),
        ("zzzz", "There are big, near, local, "),
        ("/nowhere/a.gguf", "Correct the path"),
        ("codestral-22b", "Models for it: "),
    ],
)
def test_a_name_that_no_model_has(name: str, hint: str) -> None:
    config = ChatConfig(models=(BIG, NEAR))
    if not hint:
        return models.check(config, name, "mine")
    with pytest.raises(ModelError) as e:
        models.check(config, name, "mine")
    assert e.value.hint.startswith(hint)
    return None


def test_names_without_a_local_server() -> None:
    config = ChatConfig(server="off", models=(BIG, NEAR))
    models.check(config, "near")
    for name in ("local", "qwen2.5-coder-7b", "/nowhere/a.gguf"):
        with pytest.raises(ModelUnknown, match="no model called"):
            models.check(config, name)


def test_a_file_of_ones_own_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.touch()
    models.check(ChatConfig(), str(path))


def test_none_to_talk_to() -> None:
    with pytest.raises(ConfigInvalid, match="there is no chat model") as e:
        models.default(ChatConfig(server="off"))
    assert "chat.model to a name in models" in e.value.hint
    with pytest.raises(ConfigInvalid, match="there is no chat model") as e:
        models.default(ChatConfig(server="off", models=(BIG, NEAR)))  # nobody named one of them
    assert "chat.model to one of big, near" in e.value.hint
    with pytest.raises(ConfigInvalid, match="has no 'qwen3'"):
        models.default(ChatConfig(server="off", model="qwen3", models=(BIG,)))


def test_a_target_has_its_key_and_does_not_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIG_KEY", "sk-secret")
    found = models.target(ChatConfig(models=(BIG, NEAR)), "big")
    assert found == ServedModel(
        "big", "https://x.example/v1", "glm", "openai", "sk-secret", 0, "models.big."
    )
    assert "sk-secret" not in repr(found)
    near = models.target(ChatConfig(models=(BIG, NEAR)), "near")
    assert near == ServedModel("near", "http://127.0.0.1:8012", "", "", "", 9000, "models.near.")


def test_a_key_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BIG_KEY", raising=False)
    with pytest.raises(KeyMissing, match="BIG_KEY") as e:
        models.target(ChatConfig(models=(BIG,)), "big")
    assert "models.big.key_env" in e.value.hint


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ModelConfig("x"), "models.x.url: there is no address"),
        (ModelConfig("x", url="127.0.0.1:80"), "models.x.url: '127.0.0.1:80' is not the address"),
        (ModelConfig("x", url="unix://x.sock"), "models.x.url"),
        (ModelConfig("x", url="http://h", api="grpc"), "models.x.api: there is no 'grpc'"),
    ],
)
def test_invalid_settings_of_models_are_rejected(model: ModelConfig, words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words) as e:
        models.target(ChatConfig(models=(model,)), "x")
    assert e.value.hint


def test_an_unknown_name_is_reported_with_the_known() -> None:
    with pytest.raises(ConfigInvalid, match="has no 'bgi': there are big, near"):
        models.target(ChatConfig(models=(BIG, NEAR)), "bgi")
