"""What is done around llama.cpp's calls, with a tiny model at most; ggml's GPUs are stand-ins."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcursor.catalog import selftest_model
from lcursor.catalog.hardware import Device
from lcursor.errors import ConfigInvalid, ModelUnsuitable, OutOfMemory
from lcursor.fim import gpus, llama


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


TWO = ((CPU, 9), (gpus.GPU, 10 << 30), (gpus.INTEGRATED_GPU, 7), (gpus.GPU, 4 << 30))
NONE = ((CPU, 9), (ACCELERATOR, 8))


@pytest.mark.parametrize(
    ("devices", "number", "free"),
    [
        (TWO, 0, 10 << 30),
        (TWO, 1, 4 << 30),
        (TWO, -1, 14 << 30),  # of all
        (((CPU, 9), (gpus.INTEGRATED_GPU, 7)), 0, 7),  # if there is no other
        (NONE, 0, None),
        (NONE, -1, None),
    ],
)
def test_the_free_memory_of_gpus(
    devices: tuple[tuple[int, int], ...], number: int, free: int | None
) -> None:
    assert gpus.free_bytes(number, ggml(*devices)) == free


def test_the_gpus_have_names_and_sizes() -> None:
    assert gpus.find(ggml(*TWO)) == [
        Device("Card 2", 1 << 40, 10 << 30),
        Device("Card 4", 1 << 40, 4 << 30),
    ]
    assert gpus.find(ggml(*NONE)) == []


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigInvalid, match="there is no GPU 2") as caught:
        gpus.free_bytes(2, ggml(*TWO))
    assert "0 to 1" in caught.value.hint


def test_the_library_of_llama_cpp_has_these_functions() -> None:
    gpus.free_bytes(-1)


def test_a_gpu_whose_memory_is_full_is_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA would end the process."""
    monkeypatch.setattr("lcursor.system.has_nvidia_driver", lambda: True)
    text = "Card 1, 8192, 7000\nCard 2, 8192, 100\n"
    monkeypatch.setattr("lcursor.catalog.hardware.output_of", lambda *_, **__: text)
    assert gpus.find(ggml(*TWO)) == []
    with pytest.raises(OutOfMemory, match="use all of the GPU's memory"):
        gpus.free_bytes(0, ggml(*TWO))
    monkeypatch.setattr("lcursor.catalog.hardware.output_of", lambda *_, **__: text[:19])
    assert len(gpus.find(ggml(*TWO))) == 2
