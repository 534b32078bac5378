"""The memory of the GPUs that llama.cpp can use, as reported by ggml.

llama-cpp-python has no wrappers for these functions. The first call initializes the GPUs.
"""

from __future__ import annotations

import ctypes
from typing import Any

from lcursor.errors import ConfigInvalid
from lcursor.fim import llama

GPU, INTEGRATED_GPU = 1, 2  # enum ggml_backend_dev_type


def free_bytes(number: int, ggml: Any = llama.library) -> int | None:
    """Return the free memory of a GPU, or of all GPUs for -1; None if there is none.

    GPUs are numbered as by llama.cpp: integrated ones count only if there are no others.

    Raises:
        ConfigInvalid: there are GPUs, but none of that number.
    """
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    found: dict[int, list[int]] = {GPU: [], INTEGRATED_GPU: []}
    for at in range(ggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(ggml.ggml_backend_dev_get(ctypes.c_size_t(at)))
        kind = ggml.ggml_backend_dev_type(device)
        if kind in found:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
            found[kind].append(free.value)
    gpus = found[GPU] or found[INTEGRATED_GPU]
    if number >= len(gpus) > 0:
        raise ConfigInvalid(
            f"completion.main_gpu: there is no GPU {number}",
            f"Use 0 to {len(gpus) - 1}, or -1 for all",
        )
    return sum(gpus if number < 0 else gpus[number : number + 1]) or None
