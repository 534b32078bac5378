"""Models of several files: an embedder with its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lcursor.__main__ import app
from lcursor.catalog import download, manifest, store
from lcursor.catalog.manifest import Model
from lcursor.errors import DownloadFailed, ModelCorrupt, ModelMissing
from tests.unit.catalog.conftest import BLOB, COMMIT, PART_BYTES

GIT_BLOB = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a"


@pytest.fixture
def pair(tiny: Model) -> Model:
    return manifest.find("tiny-embedder")


def state_of(name: str) -> str:
    done = CliRunner().invoke(app, ["models", "list", "--json"])
    return str(next(row["state"] for row in json.loads(done.stdout) if row["name"] == name))


def test_a_companion_takes_from_its_model_what_it_does_not_say(pair: Model) -> None:
    (words,) = pair.companions
    assert (words.name, words.licence, words.slots) == (pair.name, pair.licence, pair.slots)
    assert (words.repo, words.path, words.registry) == (
        "someone/Tiny-ONNX",
        "onnx/tokenizer.json",
        None,
    )
    assert pair.path == pair.file
    assert [each.file for each in pair.files] == [words.file, pair.file]
    assert pair.all_bytes == len(BLOB) + PART_BYTES


def test_all_files_are_pulled_the_main_one_last(
    pair: Model, fake_hub: Any, wheels: Path, notes: Any
) -> None:
    fake_hub.etag = GIT_BLOB  # the hub knows no sha256 of a small file
    target = download.pull(pair, notes)
    words = store.path_of(pair.companions[0])
    assert target.read_bytes() == BLOB[:PART_BYTES]
    assert words.read_bytes() == BLOB
    assert fake_hub.paths == ["/someone/Tiny-ONNX/resolve/main/onnx/tokenizer.json"]
    record = store.read_record(words, pair.companions[0])
    assert record is not None
    assert (record.source, record.commit) == ("hub", COMMIT)
    assert "Asking the hub for someone/Tiny-ONNX" in notes.text
    assert "no hub has tiny-embedder.onnx" in notes.text
    assert store.resolve(pair.name, "embedding") == target


def test_a_companion_with_other_bytes_is_rejected(pair: Model, fake_hub: Any, notes: Any) -> None:
    fake_hub.etag, fake_hub.blob = GIT_BLOB, BLOB[:-1] + b"?"
    with pytest.raises(ModelCorrupt, match="was removed"):
        download.pull(pair, notes)
    assert not store.path_of(pair.companions[0]).exists()
    assert not store.path_of(pair).exists()


def test_without_a_sha256_of_ours_gits_digest_is_not_enough(
    tiny: Model, fake_hub: Any, notes: Any
) -> None:
    fake_hub.etag = GIT_BLOB
    with pytest.raises(DownloadFailed, match="not a model hub"):
        download.pull(manifest.find("tiny-hub"), notes)


def test_neither_file_alone_is_the_model(
    pair: Model, fake_hub: Any, wheels: Path, notes: Any
) -> None:
    fake_hub.etag = GIT_BLOB
    assert state_of(pair.name) == "absent"
    target = download.pull(pair, notes)
    assert state_of(pair.name) == "here"
    words = store.path_of(pair.companions[0])
    words.unlink()
    assert state_of(pair.name) == "partial"
    with pytest.raises(ModelMissing, match=words.name):
        store.resolve(pair.name, "embedding")
    with pytest.raises(ModelMissing):
        download.verify(pair, notes)
    assert download.pull(pair, notes) == target
    words.write_bytes(BLOB[:-1] + b"?")
    with pytest.raises(ModelCorrupt, match="wrong sha256"):
        download.verify(pair, notes)
