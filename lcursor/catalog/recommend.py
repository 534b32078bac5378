"""Decides which pair of models a machine would take, and says why. Pure: a value in, a value out.

The pairs are tried from the best to the smallest; the first that fits is taken. What a pair needs
is computed from the manifest: both files, both KV caches, and what a backend takes beside them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from lcursor.catalog import manifest
from lcursor.catalog.hardware import GIB, MIB, Hardware

Place = Literal["on the GPU", "on the CPU"]

CHAT_TOKENS = 16384
COMPLETION_TOKENS = 4096
KV_SCALE: dict[Place, float] = {"on the GPU": 0.53, "on the CPU": 1.0}
"""Size of the chat server's KV cache relative to f16: q8_0, but on a CPU, where that is slower."""
CHAT_EXTRA_BYTES, _COMPLETION_EXTRA_BYTES = 600 * MIB, 400 * MIB
"""Of each process beside weights and cache: the CUDA context and compute buffers."""
DESKTOP_BYTES = 512 * MIB

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
"""Completion and chat, best first: a better chat model goes before a better completion model."""

CPU_COMPLETION = ((8, "qwen2.5-coder-1.5b"), (0, "qwen2.5-coder-0.5b"))
"""Fewest physical cores with which a completion model keeps up with typing, the best model first.

A name may be that of a Q4_0 copy, such as qwen2.5-coder-1.5b-q4_0.
"""
_CPU_RAM_BYTES = 4 * GIB
"""Below this much RAM one small model has to do both."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One slot's model."""

    model: str
    place: Place
    need_bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A pair of models, and what else should be said."""

    completion: Pick
    chat: Pick
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return asdict(self)


def completion_bytes(name: str) -> int:
    """Return what a model takes in the completion slot."""
    return manifest.find(name).memory_bytes(COMPLETION_TOKENS) + _COMPLETION_EXTRA_BYTES


def chat_bytes(name: str, place: Place = "on the GPU", tokens: int = CHAT_TOKENS) -> int:
    """Return what a model takes in the chat slot."""
    return manifest.find(name).memory_bytes(tokens, KV_SCALE[place]) + CHAT_EXTRA_BYTES


def pair_bytes(completion: str, chat: str) -> int:
    """Return what a pair needs of a GPU, with what a desktop takes."""
    return completion_bytes(completion) + chat_bytes(chat) + DESKTOP_BYTES


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"


def _on_gpu(here: Hardware, gpu_bytes: int) -> Recommendation | None:
    for completion, chat in GPU_PAIRS:
        together = pair_bytes(completion, chat)
        if together > gpu_bytes:
            continue
        need_completion, need_chat = completion_bytes(completion), chat_bytes(chat)
        notes = []
        if here.gpu_free_bytes is not None and here.gpu_free_bytes < need_completion + need_chat:
            notes.append(
                f"only {_gib(here.gpu_free_bytes)} of the GPU's {_gib(gpu_bytes)} are free now: "
                f"close what else uses it before both run"
            )
        return Recommendation(
            Pick(
                completion,
                "on the GPU",
                need_completion,
                f"needs {_gib(need_completion)} with {COMPLETION_TOKENS:,} tokens; the largest "
                f"that fits beside the chat model",
            ),
            Pick(
                chat,
                "on the GPU",
                need_chat,
                f"needs {_gib(need_chat)} with {CHAT_TOKENS:,} tokens; both need "
                f"{_gib(together)} of {_gib(gpu_bytes)}, desktop included",
            ),
            tuple(notes),
        )
    return None


def _on_cpu(here: Hardware, notes: list[str]) -> Recommendation:
    # A machine that hides its RAM is taken for a common one.
    roomy = here.ram_bytes is None or here.ram_bytes >= _CPU_RAM_BYTES
    few, completion = CPU_COMPLETION[-1]
    if roomy:
        few, completion = next(row for row in CPU_COMPLETION if here.cores >= row[0])
    chat = "qwen2.5-coder-1.5b" if roomy else "qwen2.5-coder-0.5b"
    need_completion, need_chat = completion_bytes(completion), chat_bytes(chat, "on the CPU")
    cores = f"{here.cores} physical core{'s' if here.cores != 1 else ''}"
    if few:
        size = manifest.find(completion).parameters
        why = f"{cores} ({few} are enough for {size} to keep up with typing)"
    else:
        why = f"{cores}: a larger one would not keep up with typing"
    ram = _gib(here.ram_bytes) if here.ram_bytes is not None else "an unknown amount"
    if not roomy:
        notes.append("with so little RAM one small model serves both slots; chat will be weak")
    return Recommendation(
        Pick(completion, "on the CPU", need_completion, f"needs {_gib(need_completion)}; {why}"),
        Pick(chat, "on the CPU", need_chat, f"needs {_gib(need_chat)} of {ram} RAM"),
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
            f"the GPU's {_gib(here.gpu_bytes)} are too little for a pair of models: "
            f"the smallest needs {_gib(pair_bytes(*GPU_PAIRS[-1]))}"
        )
    elif here.vendor in ("amd", "apple"):
        sizes = ", ".join(
            f"{_gib(pair_bytes(*pair))} for {pair[0]} + {pair[1]}" for pair in GPU_PAIRS[1::2]
        )
        notes.append(
            f"lcursor cannot read the memory of an {here.gpu}, so this is for the CPU. "
            f"What pairs need on a GPU: {sizes}"
        )
    return _on_cpu(here, notes)
