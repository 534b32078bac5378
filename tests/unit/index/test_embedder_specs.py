"""The embedders by name, and what they need of the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.catalog import store
from lcursor.errors import ModelMissing, ModelUnknown
from lcursor.index import embed
from lcursor.index.embed import EMBEDDERS, EmbedderSpec


@pytest.mark.parametrize("spec", EMBEDDERS, ids=lambda spec: spec.name)
def test_the_manifest_has_each(spec: EmbedderSpec) -> None:
    model = spec.model
    assert model.slots == ("embedding",)
    assert spec.max_tokens <= model.context_tokens
    network, words = spec.files(Path("/models"))
    assert network.name == model.file
    assert words.name.endswith(".tokenizer.json")
    assert all(each.sha256 and each.bytes_exact for each in model.files)


def test_the_default_is_verified_and_comes_without_a_hub() -> None:
    model = embed.find(embed.DEFAULT).model
    assert model.digest == "verified"
    assert all(each.registry for each in model.files)


def test_an_unknown_name_suggests_the_nearest() -> None:
    assert embed.find("CodeRankEmbed").name == "coderankembed"
    with pytest.raises(ModelUnknown) as caught:
        embed.find("minilm")
    assert caught.value.hint.startswith("Nearest: minilm-l6-v2-int8")
    assert "coderankembed" in caught.value.hint


def test_a_file_that_is_missing_is_named_with_the_command(tmp_path: Path) -> None:
    spec = embed.find("granite-embedding-small-r2")
    for each in spec.model.files:
        with pytest.raises(ModelMissing, match=store.path_of(each, tmp_path).name) as caught:
            spec.check_installed(tmp_path)
        assert caught.value.hint.endswith("models pull granite-embedding-small-r2")
        store.path_of(each, tmp_path).touch()
    spec.check_installed(tmp_path)
