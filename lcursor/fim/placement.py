"""Choose settings for the machine, and the size of the cache that fits into a GPU.

Pure arithmetic. All layers are assumed to have the same size and share of the KV cache; llama.cpp
counts the rest (embedding, output) as one more layer.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import MIB
from lcursor.catalog.memory import gib, kv_cache_bytes, layers
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory

SMALLER = "or choose a smaller completion.model (python -m lcursor models recommend)"
EXTRA_BYTES = 512 * MIB
"""GPU memory for the driver, compute buffers and a screen."""
MIN_CELLS = 4096
"""Minimum cells for which a GPU is worth using; fewer only if configured."""
CELLS_STEP = 256
"""llama.cpp rounds the number of cells up to a multiple of it."""

Machine = Literal["cpu", "gpu", "server"]
SETTINGS = "context_tokens", "prefix_tokens", "suffix_tokens", "files_tokens", "idle_minutes"
DEFAULTS: dict[Machine, tuple[int, ...]] = {
    "cpu": (4096, 384, 128, 256, 0),
    "gpu": (16384, 3072, 1024, 2048, 30),
    # The hardware of a server is unknown, and it evaluates the whole suffix after each key.
    "server": (4096, 768, 96, 256, 0),
}
"""The value that -1 stands for, for each of `SETTINGS`."""


def resolve(config: CompletionConfig, machine: Machine) -> CompletionConfig:
    """Return the settings with the machine's default for each one that is -1.

    In a cache smaller than the default, the budgets for the suffix and other files shrink in
    proportion.
    """
    defaults = dict(zip(SETTINGS, DEFAULTS[machine], strict=True))
    unset = {name: value for name, value in defaults.items() if getattr(config, name) < 0}
    cells = unset.get("context_tokens", config.context_tokens)
    if cells < defaults["context_tokens"]:
        for name in unset.keys() & {"suffix_tokens", "files_tokens"}:
            unset[name] = unset[name] * cells // defaults["context_tokens"]
    return dataclasses.replace(config, **unset)  # type: ignore[arg-type]


def fitting_cells(head: Head, config: CompletionConfig, free_bytes: int | None) -> int:
    """Return the number of cells that fit into the GPU with the weights, at most the configured.

    Args:
        head: header of the model's file.
        config: resolved settings; layers that are not on the GPU need no memory there.
        free_bytes: free GPU memory; None if unknown, which means that all cells fit.

    Raises:
        OutOfMemory: the weights and the minimum of cells do not fit.
    """
    wanted, count = config.context_tokens, layers(head)
    each = kv_cache_bytes(head, 1, config.kv_type)
    if free_bytes is None or not count or not each:
        return wanted
    share = 1.0 if config.gpu_layers < 0 else min(config.gpu_layers / count, 1.0)
    left, least = free_bytes - head.file_bytes * share, min(wanted, MIN_CELLS)
    if left < least * each * share:
        raise OutOfMemory(f"{gib(free_bytes)} of the GPU's memory are free")
    # EXTRA_BYTES is a conservative estimate: if only that part is missing, try anyway.
    fitting = int((left - EXTRA_BYTES) / (each * share)) // CELLS_STEP * CELLS_STEP
    return min(wanted, max(fitting, least))


def advice(head: Head, name: str, config: CompletionConfig, free_bytes: int | None) -> OutOfMemory:
    """Return the error with the required and the free memory, and how many layers would fit.

    It assumes the minimum of cells; for the arguments see `fitting_cells`.
    """
    count, free = layers(head), free_bytes
    cells = min(config.context_tokens, MIN_CELLS)
    needed = head.file_bytes + kv_cache_bytes(head, cells, config.kv_type) + EXTRA_BYTES
    if free is None or not count:
        return OutOfMemory(
            f"{name} does not fit into the GPU's memory: it needs about {gib(needed)}",
            f"Lower completion.gpu_layers, {SMALLER}",
        )
    each = (needed - EXTRA_BYTES) / count
    fitting = max(min(int((free - EXTRA_BYTES) / each), count - 1), 0)
    return OutOfMemory(
        f"{name} does not fit into the GPU's memory: its {count} layers need "
        f"{gib(needed)} ({each / MIB:.0f} MiB each, {gib(EXTRA_BYTES)} "
        f"overhead), and {gib(free)} are free",
        f"Set completion.gpu_layers = {fitting}, {SMALLER}",
    )
