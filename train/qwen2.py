"""Qwen2 in torch, with trainable low-rank changes of its linear layers; weights from a GGUF file.

Source of the architecture: the Qwen2 technical report, and llama.cpp's `qwen2` graph.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

LAYERS = {
    "attn_q": True,
    "attn_k": True,
    "attn_v": True,
    "attn_output": False,
    "ffn_gate": False,
    "ffn_up": False,
    "ffn_down": False,
}
"""Linear layers of a block; whether they have a bias."""


class Shape(NamedTuple):
    """Numbers of a model's metadata."""

    blocks: int
    heads: int
    kv_heads: int
    width: int
    rope_base: float
    epsilon: float


class Linear(nn.Module):
    """A frozen linear layer plus `scale` x up(down(x)), of the rank r.

    Attributes:
        down: [r, in], float32; random at first.
        up: [out, r], float32; zero at first.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int, scale: float) -> None:
        super().__init__()
        self.weight, self.bias, self.scale = weight, bias, scale
        wide = weight.shape[1]
        self.down = nn.Parameter(torch.randn(rank, wide) / math.sqrt(wide))
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output for x [n, in]."""
        low = F.linear(x, self.down.to(x.dtype))
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(low, self.up.to(x.dtype))


class Qwen2(nn.Module):
    """The model; only the low-rank changes are trainable.

    Args:
        path: a GGUF file of any precision.
        dtype: of the frozen weights and of the computation.
    """

    def __init__(
        self, path: Path, rank: int, alpha: float, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        super().__init__()
        reader = gguf.GGUFReader(path)
        tensors = {each.name: each for each in reader.tensors}
        self.dtype = dtype

        def tensor(name: str) -> Tensor:
            found = tensors[name]
            values = gguf.quants.dequantize(found.data, found.tensor_type)
            return torch.from_numpy(np.array(values, np.float32)).to(dtype)

        self.shape = _shape(reader)
        self.embedding = tensor("token_embd.weight")
        is_tied = "output.weight" not in tensors
        self.output = self.embedding if is_tied else tensor("output.weight")
        self.output_norm = tensor("output_norm.weight")
        self.norms: list[tuple[Tensor, Tensor]] = []
        self.blocks = nn.ModuleList()
        for number in range(self.shape.blocks):
            at = f"blk.{number}"
            self.norms.append((tensor(f"{at}.attn_norm.weight"), tensor(f"{at}.ffn_norm.weight")))
            layers = {
                name: Linear(
                    tensor(f"{at}.{name}.weight"),
                    tensor(f"{at}.{name}.bias") if has_bias else None,
                    rank,
                    alpha / rank,
                )
                for name, has_bias in LAYERS.items()
            }
            self.blocks.append(nn.ModuleDict(layers))

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the last hidden states [n, width] of tokens [n]."""
        shape, count = self.shape, len(tokens)
        x = self.embedding[tokens]
        turn = self._rotation(count)
        for block, (attention_norm, ffn_norm) in zip(self.blocks, self.norms, strict=True):
            layers: Any = block
            y = self._normed(x, attention_norm)
            q = layers["attn_q"](y).view(count, shape.heads, -1).transpose(0, 1)
            k = layers["attn_k"](y).view(count, shape.kv_heads, -1).transpose(0, 1)
            v = layers["attn_v"](y).view(count, shape.kv_heads, -1).transpose(0, 1)
            q, k = _rotated(q, turn), _rotated(k, turn)
            share = shape.heads // shape.kv_heads
            k, v = k.repeat_interleave(share, 0), v.repeat_interleave(share, 0)
            seen = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
            x = x + layers["attn_output"](seen.transpose(0, 1).reshape(count, -1))
            y = self._normed(x, ffn_norm)
            x = x + layers["ffn_down"](F.silu(layers["ffn_gate"](y)) * layers["ffn_up"](y))
        return self._normed(x, self.output_norm)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of hidden states [n, width], float32."""
        return F.linear(hidden, self.output).float()

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.shape.epsilon)).to(
            x.dtype
        ) * weight

    def _rotation(self, count: int) -> tuple[Tensor, Tensor]:
        half = self.shape.width // self.shape.heads // 2
        speeds = self.shape.rope_base ** (-torch.arange(half).float() / half)
        angles = torch.outer(torch.arange(count).float(), speeds)
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)


def _shape(reader: gguf.GGUFReader) -> Shape:
    def number(name: str) -> Any:
        field = reader.fields[f"qwen2.{name}"]
        return field.parts[field.data[0]][0]

    return Shape(
        int(number("block_count")),
        int(number("attention.head_count")),
        int(number("attention.head_count_kv")),
        int(number("embedding_length")),
        float(number("rope.freq_base")),
        float(number("attention.layer_norm_rms_epsilon")),
    )


def _rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary positions to x [heads, n, head width]; halves are paired."""
    cos, sin = turn
    one, two = x.chunk(2, -1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)
