"""Copies in Q4_0, made by llama.cpp of the tiny model of the self-test."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from lcursor.catalog import gguf, manifest, requantize, store
from lcursor.errors import DiskFull, EngineFailed, ModelCorrupt, ModelUnsuitable
from lcursor.fim import llama
from tests.gguf_files import write_model

ENTRY = """
[[model]]
name = "small"
slots = ["completion", "chat"]
family = "granite"
parameters = "1M"
file = "small-Q4_K_M.gguf"
bytes = 1
digest = "hub"
repo = "a/b"
revision = "main"
licence = "MIT"
context_tokens = 1
kv_bytes_per_token = 1
"""


class Watch:
    """Keeps what it is told; `on_position` may raise."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.on_position: Callable[[], None] = lambda: None

    def say(self, text: str) -> None:
        raise AssertionError(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.begun.append(what)

    def at(self, done: int) -> None:
        self.on_position()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a model of the manifest into a models directory of its own."""
    menu = tmp_path / "manifest.toml"
    menu.write_text(ENTRY)
    monkeypatch.setattr(manifest, "MANIFEST", menu)
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "models"))
    path = store.path_of(manifest.find("small"))
    path.parent.mkdir()
    write_model(path)
    return path


def names(source: Path) -> set[str]:
    """Return the files beside the model, without locks."""
    return {path.name for path in source.parent.iterdir() if not path.name.endswith(".lock")}


def use_child(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Run a script of the shell in place of the child; `$4` is the file that it should write."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_a_copy_is_made_and_can_be_used_by_name(source: Path) -> None:
    watch = Watch()
    target = requantize.requantize(source, watch)
    assert target == source.with_name("small-q4_0.gguf")
    assert watch.begun == ["Requantizing to Q4_0", "Checking"]
    assert names(source) == {source.name, target.name, f"{target.name}.json"}

    assert store.resolve("small-q4_0", "completion") == target
    assert manifest.family_of(target) == "granite"
    record = store.read_record(target, manifest.find("small-q4_0"))
    assert record is not None
    assert record.source == "made"
    assert record.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()

    assert gguf.check(target).scalars["general.file_type"] == requantize.Q4_0
    model = llama.Model(target, 0, lambda _: True)
    assert "Q4_0" in model.description
    model.close()


def test_the_file_of_a_user_is_copied_without_a_record(source: Path) -> None:
    own = source.rename(source.with_name("mine.gguf"))
    requantize.requantize(own, Watch())
    assert names(source) == {"mine.gguf", "mine-q4_0.gguf"}


def test_a_copy_is_not_copied_again(source: Path) -> None:
    copy = requantize.requantize(source, Watch())
    with pytest.raises(ModelUnsuitable, match="is Q4_0 already"):
        requantize.requantize(copy, Watch())


def test_other_files_are_rejected(source: Path) -> None:
    source.write_bytes(b"something else")
    with pytest.raises(ModelCorrupt, match="is not a GGUF file"):
        requantize.requantize(source, Watch())
    assert names(source) == {source.name}


def test_what_llama_cpp_says_is_passed_on(source: Path) -> None:
    source.write_bytes(source.read_bytes().replace(b"qwen2", b"qwen0"))
    with pytest.raises(EngineFailed, match=r"could not be requantized \(.*qwen0"):
        requantize.requantize(source, Watch())
    assert names(source) == {source.name}


def test_a_full_disk_is_noticed_before(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(DiskFull):
        requantize.requantize(source, Watch())
    assert names(source) == {source.name}


def test_a_child_that_crashes_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_child(monkeypatch, tmp_path, 'echo half > "$4"; kill -SEGV $$')
    with pytest.raises(EngineFailed, match="ended with SIGSEGV"):
        requantize.requantize(source, Watch())
    assert names(source) == {source.name}


def test_an_interrupt_ends_the_child_and_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "pid"
    use_child(monkeypatch, tmp_path, f'echo half > "$4"; echo $$ > {said}; exec sleep 600')
    watch = Watch()

    def interrupt() -> None:
        if said.exists() and said.read_text():
            raise KeyboardInterrupt

    watch.on_position = interrupt
    with pytest.raises(KeyboardInterrupt):
        requantize.requantize(source, watch)
    assert names(source) == {source.name}
    with pytest.raises(ProcessLookupError):
        os.kill(int(said.read_text()), 0)
