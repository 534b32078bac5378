"""Copies in Q4_0, made by llama.cpp of the tiny model of the self-test."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lcursor.catalog import copies, download, gguf, manifest, selftest_model, store
from lcursor.errors import DiskFull, EngineFailed, ModelCorrupt, ModelUnsuitable
from lcursor.fim import llama, quantize
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
    target = copies.requantize(source, watch)
    assert target == source.with_name("small-q4_0.gguf")
    assert watch.begun == ["Requantizing to Q4_0", "Checking"]
    assert names(source) == {source.name, target.name, f"{target.name}.json"}

    assert store.resolve("small-q4_0", "completion") == target
    assert manifest.family_of(target) == "granite"
    record = store.read_record(target, manifest.find("small-q4_0"))
    assert record is not None
    assert record.source == "made"
    assert record.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()

    assert gguf.check(target).scalars["general.file_type"] == copies.Q4_0
    model = llama.Model(target, 0, lambda _: True)
    assert "Q4_0" in model.description
    model.close()


def test_the_file_of_a_user_is_copied_without_a_record(source: Path) -> None:
    own = source.rename(source.with_name("mine.gguf"))
    copies.requantize(own, Watch())
    assert names(source) == {"mine.gguf", "mine-q4_0.gguf"}


def test_a_copy_is_not_copied_again(source: Path) -> None:
    copy = copies.requantize(source, Watch())
    with pytest.raises(ModelUnsuitable, match="is Q4_0 already"):
        copies.requantize(copy, Watch())


def test_other_files_are_rejected(source: Path) -> None:
    source.write_bytes(b"something else")
    with pytest.raises(ModelCorrupt, match="is not a GGUF file"):
        copies.requantize(source, Watch())
    assert names(source) == {source.name}


def test_an_error_of_llama_cpp_is_reported(source: Path) -> None:
    source.write_bytes(source.read_bytes().replace(b"qwen2", b"qwen0"))
    with pytest.raises(EngineFailed, match=r"could not be requantized \(.*qwen0"):
        copies.requantize(source, Watch())
    assert names(source) == {source.name}


def test_a_full_disk_is_noticed_before(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(DiskFull):
        copies.requantize(source, Watch())
    assert names(source) == {source.name}


def test_a_child_that_crashes_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_child(monkeypatch, tmp_path, 'echo half > "$4"; kill -SEGV $$')
    with pytest.raises(EngineFailed, match="ended with SIGSEGV"):
        copies.requantize(source, Watch())
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
        copies.requantize(source, watch)
    assert names(source) == {source.name}
    with pytest.raises(ProcessLookupError):
        os.kill(int(said.read_text()), 0)


def adapter(source: Path, base: str = "", rank: int = 2, alpha: float = 4.0) -> Path:
    """Write an adapter of the model's first layer into the manifest; return its file."""
    chance = np.random.default_rng(1)
    path = manifest.MANIFEST.with_name("small.adapter.npz")
    arrays: dict[str, Any] = {
        "base": np.array(base or hashlib.sha256(source.read_bytes()).hexdigest()),
        "alpha": np.array(alpha, np.float32),
        "blk.0.attn_q.a": chance.normal(0, 0.1, (rank, 256)).astype(np.float16),
        "blk.0.attn_q.b": chance.normal(0, 0.1, (256, rank)).astype(np.float16),
    }
    np.savez(path, **arrays)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    table = f'[model.adapter]\nfile = "{path.name}"\nsha256 = "{digest}"\n'
    manifest.MANIFEST.write_text(ENTRY + table)
    manifest._load.cache_clear()
    model = manifest.find("small")
    store.write_record(source, model, hashlib.sha256(source.read_bytes()).hexdigest(), "hub", None)
    return path


def weights(path: Path, folder: Path, layer: str) -> NDArray[np.float16]:
    whole = folder / "whole.gguf"
    llama.quantize(path, whole, quantize.F16)
    tensor = gguf.tensors(whole)[f"{layer}.weight"]
    return np.array(np.memmap(whole, np.float16, "r", tensor.start, tensor.shape[::-1]))


def test_an_adapted_copy_has_the_changed_weights_and_completes(
    source: Path, tmp_path: Path
) -> None:
    change = np.load(adapter(source))
    model = manifest.find("small")
    watch = Watch()
    target = copies.adapt(model, watch)
    assert target == source.with_name("small-Q4_K_M-adapted.gguf")
    assert watch.begun == ["Adapting", "Checking"]
    beside = {source.name, f"{source.name}.json", target.name, f"{target.name}.json"}
    assert names(source) == beside
    assert gguf.check(target).scalars["general.file_type"] == copies.Q4_K_M

    product = change["blk.0.attn_q.b"].astype(np.float32) @ change["blk.0.attn_q.a"]
    before, after = (weights(each, tmp_path, "blk.0.attn_q") for each in (source, target))
    assert np.abs(product).max() > 0.05
    assert np.abs(after - (before + 2 * product)).mean() < 0.05 * np.abs(product).mean() + 0.005
    same = [weights(each, tmp_path, "blk.1.attn_output") for each in (source, target)]
    assert np.abs(same[0] - same[1]).mean() < 0.005

    assert store.resolve("small", "completion") == target
    assert store.resolve("small", "chat") == source
    assert manifest.family_of(target) == "granite"
    assert copies.adapt(model, watch) == target
    assert watch.begun == ["Adapting", "Checking"]  # not made again


def test_another_adapter_makes_the_copy_again(source: Path) -> None:
    adapter(source)
    copies.adapt(manifest.find("small"), Watch())
    adapter(source, alpha=1.0)
    assert store.resolve("small", "completion") == source
    target = copies.adapt(manifest.find("small"), Watch())
    assert store.resolve("small", "completion") == target


def test_a_damaged_adapter_is_not_used(source: Path) -> None:
    path = adapter(source)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelCorrupt, match=r"small\.adapter\.npz is missing or damaged"):
        copies.adapt(manifest.find("small"), Watch())
    assert store.resolve("small", "completion") == source


def test_an_adapter_of_another_file_is_not_used(source: Path) -> None:
    adapter(source, base="0" * 64)
    with pytest.raises(EngineFailed, match="trained on another file"):
        copies.adapt(manifest.find("small"), Watch())
    assert names(source) == {source.name, f"{source.name}.json"}
    assert store.resolve("small", "completion") == source


def test_a_full_disk_leaves_the_original(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter(source)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2_000_000))
    with pytest.raises(DiskFull):
        copies.adapt(manifest.find("small"), Watch())
    assert store.resolve("small", "completion") == source


def test_an_adapted_copy_that_changed_is_removed(source: Path) -> None:
    adapter(source)
    model = manifest.find("small")
    target = copies.adapt(model, Watch())
    assert target
    data = bytearray(target.read_bytes())
    data[-1] ^= 1
    stat = target.stat()
    target.write_bytes(data)
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ModelCorrupt, match="has changed since it was made"):
        download.verify(model, Watch())
    assert store.resolve("small", "completion") == source


def test_a_copy_that_computes_something_else_is_not_used(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"small-adapted": {str(size): [1.0, *[0.0] * 63] for size in selftest_model.BATCHES}}
    monkeypatch.setattr(selftest_model, "references", lambda: wrong)
    with pytest.raises(EngineFailed, match="does not compute what it should"):
        quantize.check(source, "small")


def test_files_of_a_killed_process_are_deleted_before_space_is_checked(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(source)
    left = store.partial_of(store.adapted_path(manifest.find("small")))
    for path in (left, store.float16_of(left)):
        path.write_bytes(b"left")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2_000_000))
    with pytest.raises(DiskFull):
        copies.adapt(manifest.find("small"), Watch())
    assert names(source) == {source.name, f"{source.name}.json"}


def test_a_disk_that_becomes_full_is_an_error_of_the_disk(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(source)

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFull):
        copies.adapt(manifest.find("small"), Watch())
    assert names(source) == {source.name, f"{source.name}.json"}


@pytest.mark.linux
def test_the_child_holds_the_lock(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_child(monkeypatch, tmp_path, 'ls -l /proc/self/fd | grep -c "q4_0.gguf.lock" >&2; exit 1')
    with pytest.raises(EngineFailed, match=r"^1\."):
        copies.requantize(source, Watch())


def test_a_layer_that_the_model_lacks_is_named(source: Path, tmp_path: Path) -> None:
    path = adapter(source)
    base = hashlib.sha256(source.read_bytes()).hexdigest()
    other = {name.replace("blk.0", "blk.9"): array for name, array in np.load(path).items()}
    np.savez(path, **other)
    with pytest.raises(ModelCorrupt, match=r"does not fit small-Q4_K_M\.gguf \('blk.9"):
        quantize.merge(source, base, path, tmp_path / "out.gguf", copies.Q4_K_M)


def test_a_name_without_a_file_is_of_no_model() -> None:
    assert manifest.with_file("") is None
