"""Estimates how much memory a model needs: its weights, and its KV cache.

Pure arithmetic on the head of a model's file.
"""

from __future__ import annotations

from lcursor.catalog.gguf import Head

KV_TYPE_BYTES = {"f16": 2.0, "q8_0": 34 / 32}
"""Size of one number of a key or a value; q8_0 has a scale of two bytes for each 32 numbers."""


def layers(head: Head) -> int:
    """Return how many layers llama.cpp can place; 0 if unknown."""
    count = _number(head, "block_count")
    return count + 1 if count else 0


def kv_cache_bytes(head: Head, cells: int, kv_type: str = "f16") -> int:
    """Return the size of a KV cache; 0 if unknown.

    Args:
        head: head of the model's file.
        cells: tokens of the cache.
        kv_type: a key of `KV_TYPE_BYTES`.
    """
    heads = _number(head, "attention.head_count")
    width = _number(head, "embedding_length") // heads if heads else 0
    keys = _number(head, "attention.key_length") or width
    values = _number(head, "attention.value_length") or width
    shared = _number(head, "attention.head_count_kv") or heads
    numbers = cells * _number(head, "block_count") * shared * (keys + values)
    return int(numbers * KV_TYPE_BYTES[kv_type])


def _number(head: Head, key: str) -> int:
    return int(head.scalars.get(f"{head.architecture}.{key}", 0))
