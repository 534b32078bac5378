"""Estimate how much memory a model needs: weights, KV cache and the overhead of its process.

With these numbers `recommend.py` chooses models, `llm/fit.py` the context of the chat server, and
`fim/placement.py` the layers on the GPU. Pure.
"""

from __future__ import annotations

from typing import Literal

from lcursor.catalog import manifest
from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import GIB, MIB

Placement = Literal["on the GPU", "on the CPU"]

KV_TYPE_BYTES = {"f16": 2.0, "q8_0": 34 / 32}
"""Bytes per key or value element; q8_0 has a scale of two bytes per 32 elements."""
KV_SCALE: dict[Placement, float] = {"on the GPU": 0.53, "on the CPU": 1.0}
"""Size of the chat server's KV cache relative to f16: q8_0 on a GPU; on a CPU that is slower."""
CHAT_TOKENS = 16384
COMPLETION_TOKENS = 4096
CHAT_EXTRA_BYTES, COMPLETION_EXTRA_BYTES = 600 * MIB, 400 * MIB
"""Overhead of a process: the CUDA context and compute buffers."""
DESKTOP_BYTES = 512 * MIB
"""GPU memory reserved for other programs."""


def gib(count: int) -> str:
    """Return a size in GiB."""
    return f"{count / GIB:.1f} GiB"


def layers(head: Head) -> int:
    """Return how many layers llama.cpp can place; 0 if unknown."""
    count = head_number(head, "block_count")
    return count + 1 if count else 0


def kv_cache_bytes(head: Head, cells: int, kv_type: str = "f16") -> int:
    """Return the size of a KV cache; 0 if unknown.

    Args:
        cells: size of the cache in tokens.
        kv_type: a key of `KV_TYPE_BYTES`.
    """
    heads = head_number(head, "attention.head_count")
    width = head_number(head, "embedding_length") // heads if heads else 0
    keys = head_number(head, "attention.key_length") or width
    values = head_number(head, "attention.value_length") or width
    shared = head_number(head, "attention.head_count_kv") or heads
    numbers = cells * head_number(head, "block_count") * shared * (keys + values)
    return int(numbers * KV_TYPE_BYTES[kv_type])


def head_number(head: Head, key: str) -> int:
    """Return a number of the model's architecture from its GGUF header; 0 if it has none."""
    value = head.scalars.get(f"{head.architecture}.{key}", 0)
    return int(value) if isinstance(value, (int, float)) else 0


def completion_bytes(name: str) -> int:
    """Return the memory that a model of the manifest needs for completion."""
    model = manifest.find(name)
    cache_bytes = model.kv_bytes_per_token * COMPLETION_TOKENS
    return model.bytes + cache_bytes + COMPLETION_EXTRA_BYTES


def server_bytes(weights_bytes: int, kv_bytes: int, tokens: int, placement: Placement) -> int:
    """Return the memory that the chat server needs.

    Args:
        weights_bytes: size of the model's files.
        kv_bytes: bytes per token of an f16 cache.
        tokens: size of the KV cache.
    """
    return weights_bytes + int(kv_bytes * tokens * KV_SCALE[placement]) + CHAT_EXTRA_BYTES


def chat_bytes(name: str, placement: Placement = "on the GPU", tokens: int = CHAT_TOKENS) -> int:
    """Return the memory that a model of the manifest needs for the chat."""
    model = manifest.find(name)
    return server_bytes(model.bytes, model.kv_bytes_per_token, tokens, placement)


def pair_bytes(completion: str, chat: str) -> int:
    """Return the GPU memory that a pair of models needs, including the desktop."""
    return completion_bytes(completion) + chat_bytes(chat) + DESKTOP_BYTES
