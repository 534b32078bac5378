"""How many layers are offered when a model does not fit the GPU."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import GIB, MIB, Hardware
from lcursor.fim import placement

QWEN_7B: dict[str, str | int] = {
    "general.architecture": "qwen2",
    "qwen2.block_count": 28,
    "qwen2.embedding_length": 3584,
    "qwen2.attention.head_count": 28,
    "qwen2.attention.head_count_kv": 4,
}


def head(scalars: Mapping[str, str | int] = QWEN_7B, file_bytes: int = 4683073184) -> Head:
    return Head(3, 339, dict(scalars), ("x",), file_bytes, file_bytes)


def machine(free: int | None) -> Hardware:
    return Hardware("nvidia", "GPU", 8 * GIB, free, 32 * GIB, 8)


def test_the_cache_of_qwen_is_56_kib_a_token() -> None:
    assert placement.cache_bytes(head(), 1) == 56 * 1024
    assert placement.layers(head()) == 29


@pytest.mark.parametrize(
    ("free", "offered"), [(4 * GIB, 22), (3 * GIB, 15), (600 * MIB, 0), (0, 0), (40 * GIB, 28)]
)
def test_fewer_layers_are_offered_with_the_numbers(free: int, offered: int) -> None:
    error = placement.advice(head(), "qwen2.5-coder-7b", 4096, machine(free))
    assert f"completion.gpu_layers = {offered}," in error.hint
    assert "29 layers need 5.1 GiB" in error.message
    assert f"{free / GIB:.1f} GiB are free" in error.message


def test_what_is_offered_fits() -> None:
    for free in range(GIB, 6 * GIB, 256 * MIB):
        error = placement.advice(head(), "q", 4096, machine(free))
        count = int(error.hint.split("= ")[1].split(",")[0])
        each = (head().file_bytes + placement.cache_bytes(head(), 4096)) / 29
        assert count * each + placement.BESIDES_BYTES <= free
        assert (count + 1) * each + placement.BESIDES_BYTES > free or count == 28


def test_without_numbers_there_is_still_advice() -> None:
    for error in (
        placement.advice(head(), "q", 4096, machine(None)),
        placement.advice(head({"general.architecture": "x"}), "q", 4096, machine(GIB)),
    ):
        assert "Lower completion.gpu_layers" in error.hint
