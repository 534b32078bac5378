"""The free memory of GPUs that are not here: ggml is a stand-in."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from lcursor.errors import ConfigInvalid
from lcursor.fim import llama

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

    return SimpleNamespace(
        ggml_backend_dev_count=lambda: len(found),
        ggml_backend_dev_get=get,
        ggml_backend_dev_type=lambda device: at(device)[0],
        ggml_backend_dev_memory=memory,
    )


TWO = ((CPU, 9), (llama.GPU, 10 << 30), (llama.INTEGRATED_GPU, 7), (llama.GPU, 4 << 30))


@pytest.mark.parametrize(("number", "free"), [(0, 10 << 30), (1, 4 << 30), (-1, 14 << 30)])
def test_a_gpu_has_a_number_or_all_are_meant(number: int, free: int) -> None:
    assert llama.free_gpu_bytes(number, ggml(*TWO)) == free


def test_an_integrated_gpu_counts_where_there_is_no_other() -> None:
    assert llama.free_gpu_bytes(0, ggml((CPU, 9), (llama.INTEGRATED_GPU, 7))) == 7


def test_a_gpu_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigInvalid, match="there is no GPU 2") as caught:
        llama.free_gpu_bytes(2, ggml(*TWO))
    assert "0 to 1" in caught.value.hint


@pytest.mark.parametrize("number", [0, -1])
def test_a_machine_without_gpus_has_nothing_to_say(number: int) -> None:
    assert llama.free_gpu_bytes(number, ggml((CPU, 9), (ACCELERATOR, 8))) is None


def test_the_library_of_llama_cpp_has_these_functions() -> None:
    llama.free_gpu_bytes(-1)
