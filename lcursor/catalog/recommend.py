"""Recommend a pair of models for a machine, with the reasons. Pure.

On a GPU the pairs are tried from the best to the smallest; the first one that fits is recommended.
On a CPU the completion model is the one that saves the most keys at the speed of this machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
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
from lcursor.catalog.speed import Measured, Speed, predict

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

SMALL = "qwen2.5-coder-0.5b"
"""The completion model that is installed first, and used until a better one is here."""

WINDOW_TOKENS, TEXT_TOKENS = 130, 6
"""What a suggestion right after a jump costs: tokens that are read, and written until it is
certain enough to be shown."""
DELAYS_S = (1.0, 2.0, 4.0, 6.0)
"""Speed classes: the time of such a suggestion, see `first_s`."""
KEYS_SAVED = {
    "qwen2.5-coder-1.5b": (44, 38, 17, 0),
    "qwen2.5-coder-1.5b-q4_0": (44, 38, 17, 0),
    SMALL: (36, 31, 11, 0),
}
"""Keys that a model on a CPU saves in each speed class, in percent; the best model first.

Measured by `eval keys` for the first three classes, bench/results/2026-11-27-keys-cpu.md; that
nothing is left in the last one is assumed, as is that the Q4_0 copy is as good as its original.
"""
TOLERANCE = 0.05
"""Share of the keys that a better model may save less because it is slower."""
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
        need_completion, need_chat = completion_bytes(completion), chat_bytes(chat)
        if together > gpu_bytes or need_completion > (here.largest_gpu_bytes or gpu_bytes):
            continue
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


def first_s(speed: Speed) -> float:
    """Return the time from a key to the first suggestion after a jump, in seconds."""
    return WINDOW_TOKENS / speed.read_tokens_s + TEXT_TOKENS / speed.write_tokens_s


def keys_saved(model: str, speed: Speed) -> float:
    """Return how many keys a model of `KEYS_SAVED` saves at a speed, in percent."""
    row, delay_s = KEYS_SAVED[model], first_s(speed)
    for (start_s, before), (end_s, after) in pairwise(zip(DELAYS_S, row, strict=True)):
        if delay_s < end_s:
            return before + (after - before) * max(delay_s - start_s, 0.0) / (end_s - start_s)
    return row[-1]


def for_cpu(ram_bytes: int | None, measured: Measured | None) -> tuple[str, Speed | None]:
    """Return the completion model for a CPU, and its speed, if one was measured.

    Args:
        ram_bytes: None if unknown, which is assumed to be enough.
        measured: the speed of any model here; without it, the small model is the choice.
    """
    if measured is None:
        return SMALL, None
    speeds = {name: predict(measured, manifest.find(name)) for name in KEYS_SAVED}
    if ram_bytes is not None and ram_bytes < _CPU_RAM_BYTES:
        return SMALL, speeds[SMALL]
    saved = {name: keys_saved(name, speed) for name, speed in speeds.items()}
    most = max(saved.values())
    best = next((name for name in saved if saved[name] >= most * (1 - TOLERANCE) > 0), SMALL)
    return best, speeds[best]


def _on_cpu(here: Hardware, measured: Measured | None, notes: list[str]) -> Recommendation:
    roomy = here.ram_bytes is None or here.ram_bytes >= _CPU_RAM_BYTES
    completion, speed = for_cpu(here.ram_bytes, measured)
    chat = "qwen2.5-coder-1.5b" if roomy else SMALL
    need_completion, need_chat = completion_bytes(completion), chat_bytes(chat, "on the CPU")
    why = speed.describe() if speed else "how fast larger ones would be here is not measured yet"
    ram = gib(here.ram_bytes) if here.ram_bytes is not None else "an unknown amount"
    if not roomy:
        notes.append("with so little RAM one small model serves both slots; chat will be weak")
    return Recommendation(
        Pick(completion, "on the CPU", need_completion, f"needs {gib(need_completion)}; {why}"),
        Pick(chat, "on the CPU", need_chat, f"needs {gib(need_chat)} of {ram} RAM"),
        tuple(notes),
    )


def recommend(here: Hardware, measured: Measured | None = None) -> Recommendation:
    """Choose a pair of models for a machine.

    Args:
        here: a result of `hardware.detect`.
        measured: the measured speed, from `speed.load`; it matters only without a GPU.
    """
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
    return _on_cpu(here, measured, notes)
