"""What is done around llama.cpp's calls, with a tiny model at most; ggml's GPUs are stand-ins."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcursor.catalog import selftest_model
from lcursor.catalog.hardware import Device
from lcursor.errors import ConfigInvalid, ModelUnsuitable
from lcursor.fim import llama


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_a_piece_of_any_length_is_returned_whole(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    piece = bytes(65 + number % 26 for number in range(size))

    def to_piece(vocab: None, token: int, buffer: Any, room: int, *rest: object) -> int:
        if room < size:
            return -size
        ctypes.memmove(buffer, piece, size)
        return size

    monkeypatch.setattr("lcursor.fim.llama.L.llama_token_to_piece", to_piece)
    model = llama.Model.__new__(llama.Model)
    model._vocab = None
    assert model.piece(7) == piece


def test_an_unknown_architecture_is_reported_in_the_words_of_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "odd.gguf"
    selftest_model.write(path)
    path.write_bytes(path.read_bytes().replace(b"qwen2", b"qwen0"))
    with pytest.raises(ModelUnsuitable, match="unknown model architecture: 'qwen0'"):
        llama.Model(path, 0, lambda _: True)


CPU, ACCELERATOR = 0, 3


def ggml(*found: tuple[int, int]) -> Any:
    """Return what stands for ggml with devices of these kinds and free bytes."""

    def at(device: ctypes.c_void_p) -> tuple[int, int]:
        assert device.value is not None
        return found[device.value - 1]

    def memory(device: ctypes.c_void_p, free: Any, total: Any) -> None:
        free._obj.value, total._obj.value = at(device)[1], 1 << 40

    def get(number: ctypes.c_size_t) -> int:
        return number.value + 1

    def describe(device: ctypes.c_void_p) -> bytes:
        return f"Card {device.value}".encode()

    return SimpleNamespace(
        ggml_backend_dev_count=lambda: len(found),
        ggml_backend_dev_get=get,
        ggml_backend_dev_type=lambda device: at(device)[0],
        ggml_backend_dev_memory=memory,
        ggml_backend_dev_description=describe,
    )


TWO = ((CPU, 9), (llama.GPU, 10 << 30), (llama.INTEGRATED_GPU, 7), (llama.GPU, 4 << 30))
NONE = ((CPU, 9), (ACCELERATOR, 8))


@pytest.mark.parametrize(
    ("devices", "number", "free"),
    [
        (TWO, 0, 10 << 30),
        (TWO, 1, 4 << 30),
        (TWO, -1, 14 << 30),  # of all
        (((CPU, 9), (llama.INTEGRATED_GPU, 7)), 0, 7),  # if there is no other
        (NONE, 0, None),
        (NONE, -1, None),
    ],
)
def test_the_free_memory_of_gpus(
    devices: tuple[tuple[int, int], ...], number: int, free: int | None
) -> None:
    assert llama.free_gpu_bytes(number, ggml(*devices)) == free


def test_the_gpus_have_names_and_sizes() -> None:
    assert llama.gpus(ggml(*TWO)) == [
        Device("Card 2", 1 << 40, 10 << 30),
        Device("Card 4", 1 << 40, 4 << 30),
    ]
    assert llama.gpus(ggml(*NONE)) == []


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigInvalid, match="there is no GPU 2") as caught:
        llama.free_gpu_bytes(2, ggml(*TWO))
    assert "0 to 1" in caught.value.hint


def test_the_library_of_llama_cpp_has_these_functions() -> None:
    llama.free_gpu_bytes(-1)
