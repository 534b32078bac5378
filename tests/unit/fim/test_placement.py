"""The defaults of each machine, and how many layers are offered when not all fit the GPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from lcursor.catalog import memory
from lcursor.catalog.gguf import Head
from lcursor.catalog.hardware import GIB, MIB
from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory
from lcursor.fim import placement

QWEN_7B: dict[str, str | int] = {
    "general.architecture": "qwen2",
    "qwen2.block_count": 28,
    "qwen2.embedding_length": 3584,
    "qwen2.attention.head_count": 28,
    "qwen2.attention.head_count_kv": 4,
}

CONFIG = placement.resolve(CompletionConfig(), "gpu")


def head(scalars: Mapping[str, str | int] = QWEN_7B, file_bytes: int = 4683073184) -> Head:
    return Head(339, dict(scalars), ("x",), file_bytes, file_bytes)


def test_the_cache_of_qwen_is_56_kib_a_token() -> None:
    assert memory.kv_cache_bytes(head(), 1) == 56 * 1024
    assert memory.kv_cache_bytes(head(), 1, "q8_0") == 56 * 1024 * 17 // 32
    assert memory.layers(head()) == 29


@pytest.mark.parametrize(
    ("free", "offered"), [(4 * GIB, 22), (3 * GIB, 15), (600 * MIB, 0), (0, 0), (40 * GIB, 28)]
)
def test_an_error_suggests_fewer_layers_and_names_the_memory(free: int, offered: int) -> None:
    error = placement.advice(head(), "qwen2.5-coder-7b", CONFIG, free)
    assert f"completion.gpu_layers = {offered}," in error.hint
    assert "29 layers need 5.1 GiB" in error.message
    assert f"{free / GIB:.1f} GiB are free" in error.message


def test_the_suggested_number_of_layers_fits() -> None:
    for free in range(GIB, 6 * GIB, 256 * MIB):
        error = placement.advice(head(), "q", CONFIG, free)
        count = int(error.hint.split("= ")[1].split(",")[0])
        each = (head().file_bytes + memory.kv_cache_bytes(head(), 4096)) / 29
        assert count * each + placement.EXTRA_BYTES <= free
        assert (count + 1) * each + placement.EXTRA_BYTES > free or count == 28


def test_without_known_memory_there_is_a_general_hint() -> None:
    for error in (
        placement.advice(head(), "q", CONFIG, None),
        placement.advice(head({"general.architecture": "x"}), "q", CONFIG, GIB),
    ):
        assert "Lower completion.gpu_layers" in error.hint


@pytest.mark.parametrize(
    ("machine", "cells", "before", "after", "files", "minutes"),
    [
        ("cpu", 4096, 384, 128, 256, 0),
        ("gpu", 16384, 3072, 1024, 2048, 30),
        ("server", 4096, 768, 96, 256, 0),
    ],
)
def test_unset_options_follow_the_machine(
    machine: placement.Machine, cells: int, before: int, after: int, files: int, minutes: int
) -> None:
    found = placement.resolve(CompletionConfig(), machine)
    windows = (found.prefix_tokens, found.suffix_tokens, found.files_tokens)
    assert (found.context_tokens, *windows) == (cells, before, after, files)
    assert found.idle_minutes == minutes
    least = found.prefix_tokens + found.suffix_tokens + found.files_tokens + found.max_tokens
    assert least < cells


@pytest.mark.parametrize("machine", ["cpu", "gpu", "server"])
def test_set_options_stay(machine: placement.Machine) -> None:
    config = CompletionConfig(
        context_tokens=1000, prefix_tokens=99, suffix_tokens=0, files_tokens=0, idle_minutes=5
    )
    assert placement.resolve(config, machine) == config


def test_a_small_cache_is_mostly_for_the_text_before_the_cursor() -> None:
    found = placement.resolve(CompletionConfig(context_tokens=1024), "cpu")
    assert (found.prefix_tokens, found.suffix_tokens, found.files_tokens) == (384, 32, 64)
    found = placement.resolve(CompletionConfig(context_tokens=1024, suffix_tokens=300), "gpu")
    assert (found.prefix_tokens, found.suffix_tokens, found.files_tokens) == (3072, 300, 128)


@pytest.mark.parametrize(
    ("free", "changed", "cells"),
    [
        (24 * GIB, {}, 16384),
        (5800 * MIB, {}, 14848),  # another Neovim has its model there
        (4800 * MIB, {}, 4096),  # the estimate of the rest may be too much, so it is tried
        (5300 * MIB, {"kv_type": "q8_0"}, 11008),
        (5300 * MIB, {"context_tokens": 2048}, 2048),
        (3000 * MIB, {"gpu_layers": 14}, 12544),
        (None, {}, 16384),
    ],
)
def test_the_cache_takes_no_more_than_is_free(
    free: int | None, changed: dict[str, Any], cells: int
) -> None:
    config = dataclasses.replace(CONFIG, **changed)
    assert placement.fitting_cells(head(), config, free) == cells


@pytest.mark.parametrize(("free", "layers"), [(4600 * MIB, -1), (0, -1), (2000 * MIB, 14)])
def test_a_gpu_without_memory_for_the_fewest_cells_is_not_tried(free: int, layers: int) -> None:
    config = dataclasses.replace(CONFIG, gpu_layers=layers)
    with pytest.raises(OutOfMemory):
        placement.fitting_cells(head(), config, free)


def test_a_file_that_says_nothing_of_its_cache_is_tried() -> None:
    assert placement.fitting_cells(head({"general.architecture": "x"}), CONFIG, GIB) == 16384
