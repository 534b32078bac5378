"""Models with fixed random weights, and the logits that a correct build computes with a tiny one.

The self-tests of the engine and of the chat server read fixed tokens and compare the logits with
those of a portable build (`models/selftest.json`). Builds round differently, so the measure is the
normalized mean squared error: 0 is equal, 1 is as far off as a constant. Pure but for the files.

Source: the GGUF specification in ggml's docs/gguf.md; blocks as in ggml's `ggml-common.h`; tensor
names as llama.cpp's `src/models/qwen2.cpp` loads them.
"""

from __future__ import annotations

import functools
import json
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[2] / "models" / "selftest.json"

BATCHES = (1, 2, 4, 8, 64, 512)
"""Batch sizes in tokens: engines choose different kernels for different sizes."""
MAX_BATCH_OF_DEFAULT = 64
"""Largest batch for the default model: a portable build needs minutes for 512 tokens."""
MAX_ERROR = 0.02
"""The largest error of a correct build. Measured against the portable build: at most 0.002 for
builds with AVX2, AVX-512 and AMX, which round differently; a wrong kernel gives about 1."""
SAMPLES = 64
"""Logits that are compared, evenly spread over the vocabulary."""

VOCABULARY = 512
_ALIGNMENT = 32
_SEED = 20260
_MAX_DISTINCT = 1 << 18
"""Weights of a tensor after which its random values repeat."""

# Type number in ggml, weights and bytes per block.
_FORMATS = {
    "F32": (0, 1, 4),
    "Q5_0": (6, 32, 22),
    "Q8_0": (8, 32, 34),
    "Q4_K": (12, 256, 144),
    "Q6_K": (14, 256, 210),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a Qwen2 model, and the formats of its weights."""

    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    layers: tuple[tuple[str, str, str, str], ...]
    """Formats of each layer: attention, value, up and gate, down."""
    head: int = 128
    vocabulary: int = 151_936
    context: int = 32_768
    embedding: str = "Q4_K"


# One layer in the formats of Q4_K_M, and one in its fallbacks for rows whose length is not a
# multiple of 256, as in Qwen2.5-Coder 0.5B.
TINY = Shape(
    256,
    768,
    4,
    2,
    (("Q4_K", "Q6_K", "Q4_K", "Q6_K"), ("Q5_0", "Q8_0", "Q5_0", "Q4_K")),
    head=64,
    vocabulary=VOCABULARY,
    context=1024,
    embedding="Q8_0",
)


def tokens(count: int, vocabulary: int = VOCABULARY) -> list[int]:
    """Return the fixed tokens that a self-test reads; none is a special token."""
    usable = min(vocabulary, 100_000) - 16
    return [8 + (17 + 37 * i + i * i) % usable for i in range(count)]


def sample(logits: Sequence[float]) -> list[float]:
    """Return the logits that are compared."""
    step = len(logits) // SAMPLES
    return [round(float(logits[i * step]), 4) for i in range(SAMPLES)]


def error(found: Sequence[float], expected: Sequence[float]) -> float:
    """Return the normalized mean squared error of samples, ignoring a constant shift."""
    if not all(map(_is_finite, found)):
        return float("inf")
    shift = (sum(found) - sum(expected)) / len(expected)
    mean = sum(expected) / len(expected)
    off = sum((a - shift - b) ** 2 for a, b in zip(found, expected, strict=True))
    return off / sum((b - mean) ** 2 for b in expected)


def _is_finite(value: float) -> bool:
    return value - value == 0


@functools.cache
def references() -> dict[str, dict[str, list[float]]]:
    """Return samples by model (`tiny`, a name, or `adapted` of a name), then by batch size."""
    found: dict[str, dict[str, list[float]]] = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return found


def adapted(model: str) -> str:
    """Return the name under which the samples of a model with its adapter are recorded."""
    return f"{model}-adapted"


def write(path: Path, shape: Shape = TINY, markers: Sequence[str] = ()) -> None:
    """Write a model, always the same bytes for a shape; the tiny one has 1.5 MB.

    Args:
        markers: spellings of the last tokens of the vocabulary, for a model that fills in the
            middle.
    """
    layout = _tensors(shape)
    pairs = metadata(shape, markers)
    head = [b"GGUF", struct.pack("<IQQ", 3, len(layout), len(pairs))]
    head += [_text(key) + _encoded(value) for key, value in pairs.items()]
    offset = 0
    for name, sizes, form in layout:
        number, elements, size = _FORMATS[form]
        head.append(_text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        head.append(struct.pack("<IQ", number, offset))
        length = prod(sizes) // elements * size
        offset += length + -length % _ALIGNMENT
    start = b"".join(head)
    rng = random.Random(_SEED)
    with path.open("wb") as file:
        file.write(start + bytes(-len(start) % _ALIGNMENT))
        for name, sizes, form in layout:
            count = prod(sizes)
            data = _weights(rng, name, min(count, _MAX_DISTINCT), form)
            times, rest = divmod(count, _MAX_DISTINCT) if count > _MAX_DISTINCT else (1, 0)
            for _ in range(times):
                file.write(data)
            _, elements, size = _FORMATS[form]
            file.write(data[: rest // elements * size])
            file.write(bytes(-file.tell() % _ALIGNMENT))


def _tensors(shape: Shape) -> list[tuple[str, tuple[int, ...], str]]:
    """Return name, sizes (row length first) and format of each tensor."""
    hidden, ffn, keys = shape.hidden, shape.ffn, shape.kv_heads * shape.head
    layout: list[tuple[str, tuple[int, ...], str]] = [
        ("token_embd.weight", (hidden, shape.vocabulary), shape.embedding),
        ("output_norm.weight", (hidden,), "F32"),
        ("output.weight", (hidden, shape.vocabulary), "Q6_K"),
    ]
    for number, (attention, value, up, down) in enumerate(shape.layers):
        layer = [
            ("attn_norm.weight", (hidden,), "F32"),
            ("attn_q.weight", (hidden, hidden), attention),
            ("attn_q.bias", (hidden,), "F32"),
            ("attn_k.weight", (hidden, keys), attention),
            ("attn_k.bias", (keys,), "F32"),
            ("attn_v.weight", (hidden, keys), value),
            ("attn_v.bias", (keys,), "F32"),
            ("attn_output.weight", (hidden, hidden), attention),
            ("ffn_norm.weight", (hidden,), "F32"),
            ("ffn_gate.weight", (hidden, ffn), up),
            ("ffn_up.weight", (hidden, ffn), up),
            ("ffn_down.weight", (ffn, hidden), down),
        ]
        layout += [(f"blk.{number}.{name}", sizes, form) for name, sizes, form in layer]
    return layout


def metadata(shape: Shape = TINY, markers: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metadata of a model; see `write`."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += [f"word{number}" for number in range(len(names), shape.vocabulary)]
    kinds = [2, 3, 3, *[6] * 256]  # unknown, control, bytes; all others are normal
    kinds += [1] * (shape.vocabulary - len(kinds))
    if markers:
        start = shape.vocabulary - len(markers)
        names[start:], kinds[start:] = markers, [3] * len(markers)
        names[start - 1] = "\N{LOWER ONE EIGHTH BLOCK}"  # a space
    return {
        "general.architecture": "qwen2",
        "general.name": "lcursor self-test",
        "qwen2.block_count": len(shape.layers),
        "qwen2.context_length": shape.context,
        "qwen2.embedding_length": shape.hidden,
        "qwen2.feed_forward_length": shape.ffn,
        "qwen2.attention.head_count": shape.heads,
        "qwen2.attention.head_count_kv": shape.kv_heads,
        "qwen2.attention.layer_norm_rms_epsilon": 1e-6,
        "qwen2.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.scores": [-float(number) for number in range(shape.vocabulary)],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
    }


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _encoded(value: Any) -> bytes:
    """Return a metadata value after its type."""
    kind, data = _typed(value)
    return struct.pack("<I", kind) + data


def _typed(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    kind = 5 if isinstance(value[0], int) else _typed(value[0])[0]  # token types are signed
    items = b"".join(struct.pack("<i", each) if kind == 5 else _typed(each)[1] for each in value)
    return 9, struct.pack("<IQ", kind, len(value)) + items


# The scales give weights a deviation of about 0.06: products neither vanish nor overflow.


def _weights(rng: random.Random, name: str, count: int, form: str) -> bytes:
    _, elements, size = _FORMATS[form]
    if form == "F32":
        base = 1.0 if name.endswith("norm.weight") else 0.0
        return struct.pack(f"<{count}f", *(base + rng.uniform(-0.1, 0.1) for _ in range(count)))
    blocks = (rng.randbytes(size) for _ in range(count // elements))
    if form == "Q5_0":
        return b"".join(struct.pack("<e", 0.0065) + block[2:] for block in blocks)
    if form == "Q8_0":
        return b"".join(struct.pack("<e", 0.0008) + block[2:] for block in blocks)
    if form == "Q4_K":
        return b"".join(struct.pack("<ee", 3e-4, 2.2e-3) + block[4:] for block in blocks)
    return b"".join(_q6_k(block) for block in blocks)


def _q6_k(block: bytes) -> bytes:
    """Keep the weights of a block of random bytes, and bound its 16 scales to -16 … 15."""
    scales = bytes((byte % 32 - 16) & 0xFF for byte in block[192:208])
    return block[:192] + scales + struct.pack("<e", 3.6e-4)
