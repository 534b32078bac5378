"""What to do when a model does not fit the GPU: how many of its layers would, in numbers.

Pure arithmetic on what the file and the machine say. Layers are taken to be of one size, with a
share of the KV cache each; llama.cpp counts what is neither (embedding, output) as one more.
"""

from __future__ import annotations

from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import GIB, MIB, Hardware
from lcursor.errors import OutOfMemory

SMALLER = "or choose a smaller completion.model (python -m lcursor models recommend)"
BESIDES_BYTES = 512 * MIB
"""What the driver, the buffers of the computation and a screen take besides."""
CELL_BYTES = 2
"""A key or a value in the cache is a half-precision number."""


def layers(head: Head) -> int:
    """Return how many layers llama.cpp can place, or 0 where the file does not say."""
    count = int(head.scalars.get(f"{head.architecture}.block_count", 0))
    return count + 1 if count else 0


def cache_bytes(head: Head, cells: int) -> int:
    """Return the size of a KV cache; 0 where the file does not say what it needs."""

    def number(key: str) -> int:
        return int(head.scalars.get(f"{head.architecture}.{key}", 0))

    heads = number("attention.head_count")
    width = number("embedding_length") // heads if heads else 0
    keys = number("attention.key_length") or width
    values = number("attention.value_length") or width
    shared = number("attention.head_count_kv") or heads
    return cells * number("block_count") * shared * (keys + values) * CELL_BYTES


def advice(head: Head, name: str, cells: int, hardware: Hardware) -> OutOfMemory:
    """Return the error that says what is needed, what is there and how many layers would fit.

    Args:
        head: of the model's file.
        name: of the model, for a person.
        cells: tokens of the cache.
        hardware: the machine; its GPU's free memory decides.
    """
    count, free = layers(head), hardware.gpu_free_bytes
    needed = head.file_bytes + cache_bytes(head, cells) + BESIDES_BYTES
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
