"""The shapes of models, and files with random weights, without llama.cpp."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import gpu, weights
from bench.weights import FORMATS, SHAPES, TINY, Shape, metadata, tensors
from lcursor.__main__ import app
from lcursor.catalog import gguf, hardware, manifest
from lcursor.errors import LcursorError, ModelError, OutOfMemory
from lcursor.fim import llama

SMALL = replace(TINY, layers=1, vocab=6)
EXPERTS = replace(SMALL, name="small-moe", tied=False, experts=4, used=2, expert_ffn=256)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def write_donor(path: Path, tokens: tuple[str, ...] = ("a", "b", "c", "d")) -> Path:
    """Write a file that has a tokenizer, one tensor and a key that is nobody's."""
    pairs = {
        "general.architecture": struct.pack("<I", 8) + text("qwen2"),
        "qwen2.block_count": struct.pack("<II", 4, 99),
        "tokenizer.ggml.model": struct.pack("<I", 8) + text("gpt2"),
        "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, len(tokens))
        + b"".join(map(text, tokens)),
        "tokenizer.ggml.token_type": struct.pack(
            f"<IIQ{len(tokens)}i", 9, 5, len(tokens), 1, 1, 1, 3
        ),
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs))
    head += b"".join(text(key) + value for key, value in pairs.items())
    head += text("weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(32))
    return path


@pytest.fixture
def donor(tmp_path: Path) -> Path:
    return write_donor(tmp_path / "donor.gguf")


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_weighs_what_the_published_file_does(name: str) -> None:
    shape, published = SHAPES[name], manifest.find(SHAPES[name].model)
    doubled = shape.vocab * shape.hidden * 144 // 256 if shape.tied else 0  # the embedding, kept
    assert shape.bytes + doubled == pytest.approx(published.bytes, rel=0.01)
    assert shape.token_bytes == published.kv_bytes_per_token


@pytest.mark.parametrize("shape", [*SHAPES.values(), TINY, EXPERTS], ids=lambda shape: shape.name)
def test_a_shapes_tensors_are_whole_blocks_with_their_own_names(shape: Shape) -> None:
    layout = list(tensors(shape))
    assert len({tensor.name for tensor in layout}) == len(layout)
    for tensor in layout:
        assert tensor.sizes[0] % FORMATS[tensor.format][1] == 0
    said = metadata(shape)
    assert said[f"{shape.architecture}.block_count"] == shape.layers
    assert shape.active_bytes <= shape.bytes


def test_of_many_experts_a_token_reads_few() -> None:
    shape = SHAPES["30b-a3b"]
    assert 1.5e9 < shape.active_bytes < 2.2e9


@pytest.mark.parametrize("shape", [SMALL, EXPERTS], ids=lambda shape: shape.name)
def test_a_written_file_is_whole(tmp_path: Path, donor: Path, shape: Shape) -> None:
    told: list[float] = []
    path = weights.ensure(shape, tmp_path / "new" / "folder", donor, told.append)
    head = gguf.check(path)
    assert head.file_bytes - head.data_bytes < weights.ALIGNMENT
    assert head.tensors == len(list(tensors(shape)))
    assert head.architecture == shape.architecture
    assert head.scalars[f"{shape.architecture}.block_count"] == 1
    assert "timing only" in str(head.scalars["general.name"])
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_the_vocabulary_is_filled_up(donor: Path) -> None:
    raw = gguf.read_raw(donor, "tokenizer.")
    assert set(raw) == {f"tokenizer.ggml.{key}" for key in ("model", "tokens", "token_type")}
    full = weights.padded(raw, 6)
    tokens, types = full["tokenizer.ggml.tokens"], full["tokenizer.ggml.token_type"]
    assert struct.unpack_from("<IIQ", tokens) == (9, 8, 6)
    assert tokens.endswith(text("d") + text("[PAD4]") + text("[PAD5]"))
    assert struct.unpack("<IIQ6i", types) == (9, 5, 6, 1, 1, 1, 3, 5, 5)
    assert weights.padded(raw, 4) == raw


@pytest.mark.parametrize("vocab", [3, 0])
def test_a_vocabulary_is_never_cut(donor: Path, vocab: int) -> None:
    with pytest.raises(ModelError, match="4 tokens does not fit"):
        weights.padded(gguf.read_raw(donor, "tokenizer."), vocab)


def test_a_file_is_written_once(tmp_path: Path, donor: Path) -> None:
    path = weights.ensure(SMALL, tmp_path, donor, lambda done: None)
    before = path.stat().st_mtime_ns, path.stat().st_ino
    donor.unlink()
    assert weights.ensure(SMALL, tmp_path, donor, lambda done: None) == path
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_what_is_broken_off_is_not_left(tmp_path: Path, donor: Path) -> None:
    def stop(done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.ensure(SMALL, tmp_path / "new", donor, stop)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path, donor: Path) -> None:
    with pytest.raises(LcursorError, match="cannot be written") as caught:
        weights.ensure(SMALL, donor / "below", donor, lambda done: None)
    assert "--folder" in caught.value.hint


NOTHING = hardware.Hardware("none", None, None, None, 8 << 30, 2)
NVIDIA = hardware.Hardware("nvidia", "Some GPU", 12 << 30, 3 << 30, 64 << 30, 8)


def test_without_a_gpu_it_says_how_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    monkeypatch.setattr(hardware, "detect", lambda: NOTHING)
    done = CliRunner().invoke(app, ["bench", "gpu"])
    assert isinstance(done.exception, LcursorError)
    assert re.match("no GPU here. --cpu measures the CPU instead", str(done.exception))
    gpu.check_gpu(on_cpu=True)


def test_a_build_without_gpus_is_distinguished_from_a_machine_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    monkeypatch.setattr(hardware, "detect", lambda: NVIDIA)
    with pytest.raises(LcursorError, match=r"has a GPU \(Some GPU\), and llama.cpp was built"):
        gpu.check_gpu(on_cpu=False)


@pytest.mark.parametrize(
    ("name", "on_cpu", "fits"),
    [("1.5b", False, True), ("7b", False, False), ("7b", True, True), ("30b-a3b", True, True)],
)
def test_what_does_not_fit_is_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, on_cpu: bool, fits: bool
) -> None:
    monkeypatch.setattr(hardware, "detect", lambda: NVIDIA)
    if fits:
        assert f"{SHAPES[name].bytes / 1e9:.1f} GB on the disk" in gpu.needs(
            SHAPES[name], tmp_path, on_cpu
        )
        return
    with pytest.raises(OutOfMemory, match=r"GPU memory, and there are 3\.2 GB"):
        gpu.needs(SHAPES[name], tmp_path, on_cpu)


def test_an_unknown_shape_names_the_known_ones() -> None:
    done = CliRunner().invoke(app, ["bench", "gpu", "--shape", "3b"])
    assert done.exit_code == 2
    assert "1.5b, 7b, 30b-a3b, tiny, all" in re.sub(r"[\s│]+", " ", done.stderr)
