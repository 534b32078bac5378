"""Recommend a pair of models for a machine, with the reasons. Pure.

The pairs are tried from the best to the smallest; the first one that fits is recommended.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lcursor.catalog import manifest
from lcursor.catalog.hardware import GIB, Hardware
from lcursor.catalog.memory import (
    CHAT_TOKENS,
    COMPLETION_TOKENS,
    Placement,
    chat_bytes,
    completion_bytes,
    gib,
    pair_bytes,
)

GPU_PAIRS = (
    ("qwen2.5-coder-7b", "qwen3-coder-30b-a3b"),
    ("qwen2.5-coder-1.5b", "qwen3-coder-30b-a3b"),
    ("qwen2.5-coder-1.5b", "devstral-small-24b"),
    ("qwen2.5-coder-0.5b", "devstral-small-24b"),
    ("qwen2.5-coder-1.5b", "qwen2.5-coder-7b"),
    ("qwen2.5-coder-0.5b", "qwen2.5-coder-7b"),
    ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"),
    ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"),
)
"""Completion and chat models, best first: the chat model matters more."""

CPU_COMPLETION = (
    (8, "qwen2.5-coder-1.5b"),
    (2, "qwen2.5-coder-1.5b-q4_0"),
    (0, "qwen2.5-coder-0.5b"),
)
"""Minimum physical cores with which a completion model keeps up with typing, best model first.

On 2 cores with AVX-512, right after a jump, the 1.5B as Q4_0 had 22 of 60 lines exact and the 0.5B
as Q4_K_M 13, with the last key answered after 0.5 s and 0.25 s at the median: `bench typing`,
bench/results/2026-11-23-weights-cpu.md. Other processors were not measured.
"""
_CPU_RAM_BYTES = 4 * GIB
"""With less RAM, one small model serves both slots."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The model of one slot."""

    model: str
    placement: Placement
    need_bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A pair of models, and notes for the user."""

    completion: Pick
    chat: Pick
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


def _on_gpu(here: Hardware, gpu_bytes: int) -> Recommendation | None:
    for completion, chat in GPU_PAIRS:
        together = pair_bytes(completion, chat)
        if together > gpu_bytes:
            continue
        need_completion, need_chat = completion_bytes(completion), chat_bytes(chat)
        notes = []
        if here.gpu_free_bytes is not None and here.gpu_free_bytes < need_completion + need_chat:
            notes.append(
                f"only {gib(here.gpu_free_bytes)} of the GPU's {gib(gpu_bytes)} are free now: "
                f"close other programs that use it"
            )
        return Recommendation(
            Pick(
                completion,
                "on the GPU",
                need_completion,
                f"needs {gib(need_completion)} with {COMPLETION_TOKENS:,} tokens; the largest "
                f"that fits next to the chat model",
            ),
            Pick(
                chat,
                "on the GPU",
                need_chat,
                f"needs {gib(need_chat)} with {CHAT_TOKENS:,} tokens; both need "
                f"{gib(together)} of {gib(gpu_bytes)}, desktop included",
            ),
            tuple(notes),
        )
    return None


def _on_cpu(here: Hardware, notes: list[str]) -> Recommendation:
    # A machine with unknown RAM is assumed to have enough.
    roomy = here.ram_bytes is None or here.ram_bytes >= _CPU_RAM_BYTES
    few, completion = CPU_COMPLETION[-1]
    if roomy:
        few, completion = next(row for row in CPU_COMPLETION if here.cores >= row[0])
    chat = "qwen2.5-coder-1.5b" if roomy else "qwen2.5-coder-0.5b"
    need_completion, need_chat = completion_bytes(completion), chat_bytes(chat, "on the CPU")
    cores = f"{here.cores} physical core{'s' if here.cores != 1 else ''}"
    if few:
        size = manifest.find(completion).parameters
        why = f"{cores}, enough for {size} to keep up with typing"
    else:
        why = f"{cores}: a larger one would not keep up with typing"
    ram = gib(here.ram_bytes) if here.ram_bytes is not None else "an unknown amount"
    if not roomy:
        notes.append("with so little RAM one small model serves both slots; chat will be weak")
    return Recommendation(
        Pick(completion, "on the CPU", need_completion, f"needs {gib(need_completion)}; {why}"),
        Pick(chat, "on the CPU", need_chat, f"needs {gib(need_chat)} of {ram} RAM"),
        tuple(notes),
    )


def recommend(here: Hardware) -> Recommendation:
    """Choose a pair of models for a machine."""
    notes: list[str] = []
    if here.gpu_bytes is not None:
        found = _on_gpu(here, here.gpu_bytes)
        if found is not None:
            return found
        notes.append(
            f"the GPU's {gib(here.gpu_bytes)} are too little for a pair of models: "
            f"the smallest needs {gib(pair_bytes(*GPU_PAIRS[-1]))}"
        )
    elif here.vendor in ("amd", "apple"):
        sizes = ", ".join(
            f"{gib(pair_bytes(*pair))} for {pair[0]} + {pair[1]}" for pair in GPU_PAIRS[1::2]
        )
        notes.append(
            f"lcursor cannot read the memory of an {here.gpu}, so this is for the CPU. "
            f"GPU memory needed by pairs of models: {sizes}"
        )
    return _on_cpu(here, notes)
