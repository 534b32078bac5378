from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.catalog import gguf
from lcursor.errors import LcursorError, ModelCorrupt, ModelMissing, ModelUnsuitable

Write = Callable[..., bytes]


def write(tmp_path: Path, data: bytes, name: str = "x.gguf") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_the_properties_of_a_valid_file(gguf_bytes: Write, tmp_path: Path) -> None:
    head = gguf.check_for_completion(write(tmp_path, gguf_bytes()))
    assert (head.architecture, head.tokenizer, head.tensors) == ("qwen2", "gpt2", 1)
    assert head.markers == ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
    assert head.data_bytes == head.file_bytes


@pytest.mark.parametrize("row", gguf.MARKERS, ids=lambda row: row[0])
def test_each_familys_markers_are_found_by_text(
    gguf_bytes: Write, tmp_path: Path, row: tuple[str, ...]
) -> None:
    head = gguf.check_for_completion(write(tmp_path, gguf_bytes(tokens=("x", *row, "y"))))
    assert head.markers == row


def test_markers_are_found_by_key(gguf_bytes: Write, tmp_path: Path) -> None:
    keys = {f"tokenizer.ggml.fim_{part}_token_id": 1 for part in ("pre", "suf", "mid")}
    head = gguf.check_for_completion(write(tmp_path, gguf_bytes(tokens=("a", "b"), keys=keys)))
    assert head.markers is None
    assert head.has_fim


@pytest.mark.parametrize(
    "tokens",
    [
        ("a", "b"),
        ("<|fim_prefix|>", "<|fim_suffix|>"),
        ("x<|fim_prefix|>", "x<|fim_suffix|>", "x<|fim_middle|>"),
    ],
)
def test_a_model_without_markers_is_rejected(
    gguf_bytes: Write, tmp_path: Path, tokens: tuple[str, ...]
) -> None:
    path = write(tmp_path, gguf_bytes(tokens=tokens))
    with pytest.raises(ModelUnsuitable, match="no fill-in-the-middle tokens") as caught:
        gguf.check_for_completion(path)
    assert "python -m lcursor models pull qwen2.5-coder-0.5b" in caught.value.hint
    gguf.check(path)


@pytest.mark.parametrize("architecture", ["qwen35moe", "mamba2", "falcon-h1", "granitehybrid"])
def test_a_recurrent_model_is_rejected(
    gguf_bytes: Write, tmp_path: Path, architecture: str
) -> None:
    with pytest.raises(ModelUnsuitable, match=architecture):
        gguf.check_for_completion(write(tmp_path, gguf_bytes(architecture=architecture)))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is empty"),
        (b"PK\3\4 some archive", "is not a GGUF file"),
        (b"<html>404</html>", "is not a GGUF file"),
        (b"GGUF", "header is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 99, 0, 0), "version 99"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "header is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "header is truncated"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62), "header is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "without a model"),
    ],
)
def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, data: bytes, complaint: str) -> None:
    with pytest.raises(ModelCorrupt, match=complaint):
        gguf.check_for_completion(write(tmp_path, data))


def test_the_hint_names_the_model_whose_file_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, b"oops", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")
    with pytest.raises(ModelCorrupt) as caught:
        gguf.check(path)
    assert caught.value.hint.endswith("python -m lcursor models pull qwen2.5-coder-1.5b")


def test_a_file_without_an_architecture_is_no_model(gguf_bytes: Write, tmp_path: Path) -> None:
    with pytest.raises(ModelCorrupt, match="without a model"):
        gguf.check_for_completion(write(tmp_path, gguf_bytes(architecture=None)))


def test_every_truncation_is_noticed(gguf_bytes: Write, tmp_path: Path) -> None:
    whole = gguf_bytes()
    for length in range(len(whole)):
        with pytest.raises(ModelCorrupt):
            gguf.check_for_completion(write(tmp_path, whole[:length]))


def test_a_truncated_file_says_both_sizes(gguf_bytes: Write, tmp_path: Path) -> None:
    whole = gguf_bytes()
    with pytest.raises(ModelCorrupt, match=f"{len(whole) - 1:,} bytes of {len(whole):,}"):
        gguf.check(write(tmp_path, whole[:-1]))


def test_a_file_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        gguf.check(tmp_path / "no.gguf")
    with pytest.raises(ModelMissing):
        gguf.check(tmp_path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbage_never_breaks_the_reader(
    gguf_bytes: Write, tmp_path: Path, data: st.DataObject
) -> None:
    whole = bytearray(gguf_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path, bytes(whole))
    with contextlib.suppress(LcursorError):  # any other exception fails the test
        assert gguf.check_for_completion(path).has_fim
