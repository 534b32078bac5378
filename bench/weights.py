"""Write GGUF files with random weights, which have the shape, the size and the cost of a model.

The tokenizer is copied from a real file. Random blocks are generated once and repeated at varying
offsets, so that the disk limits the speed.

Source: config.json of the models' public repositories (Qwen/Qwen2.5-Coder-1.5B, -7B and
Qwen/Qwen3-Coder-30B-A3B-Instruct on Hugging Face); tensor names and metadata keys as llama.cpp's
`src/models/qwen2.cpp` and `qwen3moe.cpp` load them; which weights get six bits instead of four as
`src/llama-quant.cpp` does for Q4_K_M; the GGUF specification in ggml's docs/gguf.md.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lcursor.catalog import gguf
from lcursor.errors import LcursorError, ModelError

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
    "1.5b": Shape(
        "1.5b", "qwen2.5-coder-1.5b", 28, 1536, 12, 2, head=128, ffn=8960, vocab=151936, tied=True
    ),
    "7b": Shape(
        "7b", "qwen2.5-coder-7b", 28, 3584, 28, 4, head=128, ffn=18944, vocab=152064, tied=False
    ),
    "30b-a3b": Shape(
        *("30b-a3b", "qwen3-coder-30b-a3b", 48, 2048, 32, 4),
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
}
TINY = Shape("tiny", "", 2, 256, 4, 2, head=64, ffn=512, vocab=151936, tied=True)
"""The shape of no model; it shows that files are written and read correctly."""


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


ALIGNMENT = 32
POOL_BYTES = 32 << 20

_U32, _F32, _STRING, _ARRAY = 4, 6, 8, 9
_UNUSED = 5  # token type of llama.cpp

OnProgress = Callable[[float], None]


def path_of(shape: Shape, folder: Path) -> Path:
    """Return the path of the file of a shape."""
    return folder / f"timing-only-{shape.name}.gguf"


def ensure(shape: Shape, folder: Path, donor: Path, on_progress: OnProgress) -> Path:
    """Return the file of a shape; write it if there is none.

    Args:
        shape: of the model.
        folder: for the file; created if missing.
        donor: a GGUF whose tokenizer is copied.
        on_progress: called with 0.0 to 1.0.

    Raises:
        ModelError: the donor is broken.
        LcursorError: the file cannot be written.
    """
    path = path_of(shape, folder)
    if path.is_file():
        return path
    partial = path.with_name(path.name + ".partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            done = 0
            for chunk in _chunks(shape, gguf.read_raw(donor, "tokenizer.")):
                file.write(chunk)
                done += len(chunk)
                on_progress(min(done / shape.bytes, 1.0))
        partial.replace(path)
    except OSError as error:
        raise LcursorError(
            f"{path} needs {shape.bytes / 1e9:.1f} GB and cannot be written "
            f"({error.strerror or error})",
            "Name another --folder",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _chunks(shape: Shape, tokenizer: dict[str, bytes]) -> Iterator[bytes]:
    """Yield the content of the file."""
    pairs = {key: _encoded(value) for key, value in metadata(shape).items()}
    pairs |= padded(tokenizer, shape.vocab)
    layout = list(tensors(shape))
    head = [b"GGUF", struct.pack("<IQQ", 3, len(layout), len(pairs))]
    head += [_text(key) + value for key, value in pairs.items()]
    offset = 0
    for tensor in layout:
        sizes = struct.pack(f"<I{len(tensor.sizes)}Q", len(tensor.sizes), *tensor.sizes)
        number = FORMATS[tensor.format][0]
        head.append(_text(tensor.name) + sizes + struct.pack("<IQ", number, offset))
        offset += tensor.bytes + _gap(tensor.bytes)
    start = b"".join(head)
    yield start + bytes(_gap(len(start)))
    rng = np.random.default_rng(1)
    pools: dict[Format, bytes] = {"Q4_K": _q4_k(rng), "Q6_K": _q6_k(rng)}
    for tensor in layout:
        if tensor.format == "F32":
            yield _floats(tensor, rng)
        else:
            yield from _repeated(pools[tensor.format], tensor, rng)
        yield bytes(_gap(tensor.bytes))


def _gap(size: int) -> int:
    return -size % ALIGNMENT


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _encoded(value: str | int | float) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    return struct.pack("<If", _F32, value)


def padded(tokenizer: dict[str, bytes], vocab: int) -> dict[str, bytes]:
    """Pad a tokenizer with unused tokens up to the size of a vocabulary, as converters do.

    Raises:
        ModelError: the tokenizer has more tokens already, or none.
    """
    tokens = tokenizer.get("tokenizer.ggml.tokens", b"")
    kind, inner, count = struct.unpack_from("<IIQ", tokens) if len(tokens) >= 16 else (0, 0, 0)
    if (kind, inner) != (_ARRAY, _STRING) or count > vocab:
        raise ModelError(
            f"the donor's vocabulary of {count} tokens does not fit a shape with {vocab}",
            "Pull the donor again: python -m lcursor models pull qwen2.5-coder-0.5b",
        )
    names = b"".join(_text(f"[PAD{number}]") for number in range(count, vocab))
    more = {
        "tokenizer.ggml.tokens": names,
        "tokenizer.ggml.token_type": struct.pack("<i", _UNUSED) * (vocab - count),
        "tokenizer.ggml.scores": struct.pack("<f", 0.0) * (vocab - count),
    }
    found = dict(tokenizer)
    for key in more.keys() & tokenizer.keys():
        kinds, payload = tokenizer[key][:8], tokenizer[key][16:]
        found[key] = kinds + struct.pack("<Q", vocab) + payload + more[key]
    return found


# With the scales below, weights have a deviation of about 0.025: products do not overflow.


def _q4_k(rng: np.random.Generator) -> bytes:
    """Draw blocks of q * scale - min, with four bits for q and six for scale and min."""
    blocks = _bytes(rng, "Q4_K")
    blocks[:, :4] = np.array([1e-4, 7.5e-4], np.float16).view(np.uint8)
    return blocks.tobytes()


def _q6_k(rng: np.random.Generator) -> bytes:
    """Draw blocks of q * scale, with six bits for q and eight for scale."""
    blocks = _bytes(rng, "Q6_K")
    shape = (len(blocks), 16)
    blocks[:, 192:208] = rng.integers(-16, 16, shape, np.int8).view(np.uint8)
    blocks[:, 208:] = np.array([1.5e-4], np.float16).view(np.uint8)
    return blocks.tobytes()


def _bytes(rng: np.random.Generator, form: Format) -> NDArray[np.uint8]:
    size = FORMATS[form][2]
    return rng.integers(0, 256, (POOL_BYTES // size, size), np.uint8)


def _repeated(pool: bytes, tensor: Tensor, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield the blocks of a tensor, from a random offset in the pool."""
    size = FORMATS[tensor.format][2]
    at = int(rng.integers(len(pool) // size)) * size
    left = tensor.bytes
    while left:
        chunk = pool[at : at + left]
        left, at = left - len(chunk), 0
        yield chunk


def _floats(tensor: Tensor, rng: np.random.Generator) -> bytes:
    if tensor.name.endswith("norm.weight"):
        ones: bytes = np.ones(tensor.sizes, np.float32).tobytes()
        return ones
    if tensor.name.endswith(".bias"):
        return bytes(tensor.bytes)
    width = tensor.sizes[0] ** -0.5
    drawn: NDArray[np.float32] = rng.standard_normal(tensor.sizes, np.float32)
    data: bytes = (drawn * np.float32(width)).tobytes()
    return data


def needs(shape: Shape, cells: int) -> int:
    """Estimate the memory that a shape takes with two caches of so many tokens and the graphs."""
    return shape.bytes + 2 * cells * shape.token_bytes + (700 << 20)


def default_folder() -> Path:
    """Return the default folder: `timing` in the cache of lcursor."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) / "lcursor/timing").expanduser()
