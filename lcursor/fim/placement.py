"""What suits the machine that the model runs on, and how much fits into a GPU where not all does.

Pure arithmetic on what the settings, the file and the machine say. Layers are taken to be of one
size, with a share of the KV cache each; llama.cpp counts what is neither (embedding, output) as one
more.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import GIB, MIB
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory

SMALLER = "or choose a smaller completion.model (python -m lcursor models recommend)"
BESIDES_BYTES = 512 * MIB
"""What the driver, the buffers of the computation and a screen take besides."""
CELL_BYTES = {"f16": 2.0, "q8_0": 34 / 32}
"""Of one number of a key or a value; q8_0 has a scale of two bytes for each 32."""
MIN_CELLS = 4096
"""Cells without which a GPU is not worth it; fewer only where the user wants so."""
CELLS_STEP = 256
"""llama.cpp rounds the number of cells up to a multiple of it."""

Machine = Literal["cpu", "gpu", "server"]
DEFAULTS: dict[Machine, dict[str, int]] = {
    "cpu": {
        "context_tokens": 4096,
        "prefix_tokens": 768,
        "suffix_tokens": 512,
        "files_tokens": 256,
        "idle_minutes": 0,
    },
    "gpu": {
        "context_tokens": 16384,
        "prefix_tokens": 3072,
        "suffix_tokens": 1024,
        "files_tokens": 2048,
        "idle_minutes": 30,
    },
    # It is not known what a server runs on, and it reads the whole suffix again after each key.
    "server": {
        "context_tokens": 4096,
        "prefix_tokens": 768,
        "suffix_tokens": 96,
        "files_tokens": 256,
        "idle_minutes": 0,
    },
}
"""What a setting of -1 means."""


def resolve(config: CompletionConfig, machine: Machine) -> CompletionConfig:
    """Return the settings with the default of the machine for each one that is -1.

    In a cache that is smaller than the default, what is read besides the text before the cursor
    shrinks in proportion.
    """
    defaults = DEFAULTS[machine]
    unset = {name: value for name, value in defaults.items() if getattr(config, name) < 0}
    cells = unset.get("context_tokens", config.context_tokens)
    if cells < defaults["context_tokens"]:
        for name in unset.keys() & {"suffix_tokens", "files_tokens"}:
            unset[name] = unset[name] * cells // defaults["context_tokens"]
    return dataclasses.replace(config, **unset)  # type: ignore[arg-type]


def layers(head: Head) -> int:
    """Return how many layers llama.cpp can place, or 0 where the file does not say."""
    count = int(head.scalars.get(f"{head.architecture}.block_count", 0))
    return count + 1 if count else 0


def cache_bytes(head: Head, cells: int, kv_type: str = "f16") -> int:
    """Return the size of a KV cache; 0 where the file does not say what it needs."""

    def number(key: str) -> int:
        return int(head.scalars.get(f"{head.architecture}.{key}", 0))

    heads = number("attention.head_count")
    width = number("embedding_length") // heads if heads else 0
    keys = number("attention.key_length") or width
    values = number("attention.value_length") or width
    shared = number("attention.head_count_kv") or heads
    numbers = cells * number("block_count") * shared * (keys + values)
    return int(numbers * CELL_BYTES[kv_type])


def fitting_cells(head: Head, config: CompletionConfig, free_bytes: int | None) -> int:
    """Return how many cells the GPU has memory for beside the weights, at most those wanted.

    Args:
        head: of the model's file.
        config: resolved settings; those of its layers that are not on the GPU take nothing there.
        free_bytes: free memory of the GPU; None where it is not known, and then all are wanted.

    Raises:
        OutOfMemory: the weights and the fewest cells do not fit.
    """
    wanted, count = config.context_tokens, layers(head)
    each = cache_bytes(head, 1, config.kv_type)
    if free_bytes is None or not count or not each:
        return wanted
    share = 1.0 if config.gpu_layers < 0 else min(config.gpu_layers / count, 1.0)
    left, least = free_bytes - head.file_bytes * share, min(wanted, MIN_CELLS)
    if left < least * each * share:
        raise OutOfMemory(f"{free_bytes / GIB:.1f} GiB of the GPU's memory are free")
    # What is needed besides is an estimate on the safe side: where it alone is missing, try.
    fitting = int((left - BESIDES_BYTES) / (each * share)) // CELLS_STEP * CELLS_STEP
    return min(wanted, max(fitting, least))


def advice(head: Head, name: str, config: CompletionConfig, free_bytes: int | None) -> OutOfMemory:
    """Return the error that says what is needed, what is there and how many layers would fit.

    Args:
        head: of the model's file.
        name: of the model, for a person.
        config: resolved settings; the fewest cells are counted.
        free_bytes: free memory of the GPU; None where it is not known.
    """
    count, free = layers(head), free_bytes
    cells = min(config.context_tokens, MIN_CELLS)
    needed = head.file_bytes + cache_bytes(head, cells, config.kv_type) + BESIDES_BYTES
    if free is None or not count:
        return OutOfMemory(
            f"{name} does not fit into the GPU's memory: it needs about {needed / GIB:.1f} GiB",
            f"Lower completion.gpu_layers, {SMALLER}",
        )
    each = (needed - BESIDES_BYTES) / count
    fitting = max(min(int((free - BESIDES_BYTES) / each), count - 1), 0)
    return OutOfMemory(
        f"{name} does not fit into the GPU's memory: its {count} layers need "
        f"{needed / GIB:.1f} GiB ({each / MIB:.0f} MiB each, {BESIDES_BYTES / GIB:.1f} GiB "
        f"besides), and {free / GIB:.1f} GiB are free",
        f"Set completion.gpu_layers = {fitting}, {SMALLER}",
    )
