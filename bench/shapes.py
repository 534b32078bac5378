"""The shapes of models: which tensors they have, of which size and type, and their metadata. Pure.

Source: config.json of the models' public repositories (Qwen/Qwen2.5-Coder-1.5B, -7B and
Qwen/Qwen3-Coder-30B-A3B-Instruct on Hugging Face); tensor names and metadata keys as llama.cpp's
`src/models/qwen2.cpp` and `qwen3moe.cpp` load them; which weights get six bits instead of four as
`src/llama-quant.cpp` does for Q4_K_M.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

Format = Literal["F32", "Q4_K", "Q6_K"]

FORMATS: dict[Format, tuple[int, int, int]] = {
    "F32": (0, 1, 4),
    "Q4_K": (12, 256, 144),
    "Q6_K": (14, 256, 210),
}
"""Number in ggml, elements and bytes of a block."""

Q4_K_M = 15  # general.file_type


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file."""

    name: str
    sizes: tuple[int, ...]
    """Of each dimension, the row first."""
    format: Format

    @property
    def bytes(self) -> int:
        """Its size in the file."""
        _, elements, size = FORMATS[self.format]
        return prod(self.sizes) // elements * size


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers that make a model's cost.

    Attributes:
        model: the name in the manifest of the model with this shape; "" where there is none.
        experts: 0 where all weights are used for each token.
        expert_ffn: width of one expert.
        tied: whether the embedding is the output as well.
    """

    name: str
    model: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    vocab: int
    tied: bool
    rope_base: float = 1e6
    context: int = 32768
    experts: int = 0
    used: int = 0
    expert_ffn: int = 0

    @property
    def architecture(self) -> str:
        """Its name in GGUF."""
        return "qwen3moe" if self.experts else "qwen2"

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return sum(tensor.bytes for tensor in tensors(self))

    @property
    def active_bytes(self) -> int:
        """What one token reads of the weights."""
        return sum(
            tensor.bytes * self.used // self.experts if "_exps." in tensor.name else tensor.bytes
            for tensor in tensors(self)
            if self.tied or tensor.name != "token_embd.weight"
        )

    @property
    def token_bytes(self) -> int:
        """What one token takes in the KV cache, in f16."""
        return 2 * 2 * self.layers * self.kv_heads * self.head


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            name="1.5b",
            model="qwen2.5-coder-1.5b",
            layers=28,
            hidden=1536,
            heads=12,
            kv_heads=2,
            head=128,
            ffn=8960,
            vocab=151936,
            tied=True,
        ),
        Shape(
            name="7b",
            model="qwen2.5-coder-7b",
            layers=28,
            hidden=3584,
            heads=28,
            kv_heads=4,
            head=128,
            ffn=18944,
            vocab=152064,
            tied=False,
        ),
        Shape(
            name="30b-a3b",
            model="qwen3-coder-30b-a3b",
            layers=48,
            hidden=2048,
            heads=32,
            kv_heads=4,
            head=128,
            ffn=5472,  # of the configuration; no layer is dense
            vocab=151936,
            tied=False,
            rope_base=1e7,
            context=262144,
            experts=128,
            used=8,
            expert_ffn=768,
        ),
    )
}
TINY = Shape(
    name="tiny",
    model="",
    layers=2,
    hidden=256,
    heads=4,
    kv_heads=2,
    head=64,
    ffn=512,
    vocab=151936,
    tied=True,
)
"""No model has it; it shows that what is written is read."""


def tensors(shape: Shape) -> Iterator[Tensor]:
    """Yield the tensors in the order of the file."""
    hidden = shape.hidden
    embedding = (hidden, shape.vocab)
    yield Tensor("token_embd.weight", embedding, "Q6_K" if shape.tied else "Q4_K")
    for layer in range(shape.layers):
        yield from _layer(shape, layer)
    yield Tensor("output_norm.weight", (hidden,), "F32")
    if not shape.tied:
        yield Tensor("output.weight", embedding, "Q6_K")


def _layer(shape: Shape, layer: int) -> Iterator[Tensor]:
    hidden, q, kv = shape.hidden, shape.heads * shape.head, shape.kv_heads * shape.head
    finer: Format = "Q6_K" if _has_more_bits(layer, shape.layers) else "Q4_K"

    def tensor(name: str, format: Format, *sizes: int) -> Tensor:  # noqa: A002 - it is one
        return Tensor(f"blk.{layer}.{name}", sizes, format)

    yield tensor("attn_norm.weight", "F32", hidden)
    yield tensor("attn_q.weight", "Q4_K", hidden, q)
    yield tensor("attn_k.weight", "Q4_K", hidden, kv)
    yield tensor("attn_v.weight", finer, hidden, kv)
    yield tensor("attn_output.weight", "Q4_K", q, hidden)
    yield tensor("ffn_norm.weight", "F32", hidden)
    if shape.experts:
        yield tensor("attn_q_norm.weight", "F32", shape.head)
        yield tensor("attn_k_norm.weight", "F32", shape.head)
        yield tensor("ffn_gate_inp.weight", "F32", hidden, shape.experts)
        wide = (hidden, shape.expert_ffn, shape.experts)
        yield tensor("ffn_gate_exps.weight", "Q4_K", *wide)
        yield tensor("ffn_up_exps.weight", "Q4_K", *wide)
        yield tensor("ffn_down_exps.weight", finer, shape.expert_ffn, hidden, shape.experts)
        return
    yield tensor("attn_q.bias", "F32", q)
    yield tensor("attn_k.bias", "F32", kv)
    yield tensor("attn_v.bias", "F32", kv)
    yield tensor("ffn_gate.weight", "Q4_K", hidden, shape.ffn)
    yield tensor("ffn_up.weight", "Q4_K", hidden, shape.ffn)
    yield tensor("ffn_down.weight", finer, shape.ffn, hidden)


def _has_more_bits(layer: int, layers: int) -> bool:
    """Whether Q4_K_M gives this layer's values and its last projection six bits."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def metadata(shape: Shape) -> dict[str, str | int | float]:
    """Return what the file says about the model, the tokenizer aside."""
    found: dict[str, str | int | float] = {
        "general.architecture": shape.architecture,
        "general.name": f"{shape.name}: random weights, for timing only",
        "general.file_type": Q4_K_M,
        "general.quantization_version": 2,
    }
    own: dict[str, str | int | float] = {
        "block_count": shape.layers,
        "context_length": shape.context,
        "embedding_length": shape.hidden,
        "feed_forward_length": shape.ffn,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": shape.rope_base,
    }
    if shape.experts:
        own |= {
            "attention.key_length": shape.head,
            "attention.value_length": shape.head,
            "expert_count": shape.experts,
            "expert_used_count": shape.used,
            "expert_feed_forward_length": shape.expert_ffn,
        }
    return found | {f"{shape.architecture}.{key}": value for key, value in own.items()}
