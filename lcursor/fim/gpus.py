"""The GPUs that llama.cpp can use, and their free memory."""

from __future__ import annotations

import ctypes
from typing import Any

from lcursor.catalog import hardware
from lcursor.catalog.hardware import Device
from lcursor.errors import ConfigInvalid, OutOfMemory
from lcursor.fim.llama import library

GPU, INTEGRATED_GPU = 1, 2  # enum ggml_backend_dev_type


def find(ggml: Any = library) -> list[Device]:
    """Return the GPUs that this build can use, numbered as by llama.cpp.

    Integrated ones count only if there are no others. The first call initializes them, which would
    end this process while other programs use all memory of an NVIDIA GPU: then the list is empty.
    """
    if hardware.is_nvidia_full():
        return []
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_description.restype = ctypes.c_char_p
    found: dict[int, list[Device]] = {GPU: [], INTEGRATED_GPU: []}
    for at in range(ggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(ggml.ggml_backend_dev_get(ctypes.c_size_t(at)))
        kind = ggml.ggml_backend_dev_type(device)
        if kind in found:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
            name = ggml.ggml_backend_dev_description(device).decode("utf-8", "replace")
            found[kind].append(Device(name, total.value, free.value))
    return found[GPU] or found[INTEGRATED_GPU]


def free_bytes(number: int, ggml: Any = library) -> int | None:
    """Return the free memory of a GPU, or of all GPUs for -1; None if there is none.

    Raises:
        ConfigInvalid: there are GPUs, but none of that number.
        OutOfMemory: other programs use all memory of one.
    """
    found = find(ggml)
    if not found and hardware.is_nvidia_full():
        raise OutOfMemory("other programs use all of the GPU's memory")
    if number >= len(found) > 0:
        raise ConfigInvalid(
            f"completion.main_gpu: there is no GPU {number}",
            f"Use 0 to {len(found) - 1}, or -1 for all",
        )
    chosen = found if number < 0 else found[number : number + 1]
    return sum(device.free_bytes for device in chosen) or None
