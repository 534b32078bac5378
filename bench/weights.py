"""Write GGUF files with random weights, which have the size and the cost of a model.

The tokenizer is copied from a real file. Random blocks are generated once and repeated at varying
offsets, so that the disk limits the speed.

Source: the GGUF specification in ggml's docs/gguf.md; blocks as in ggml's `ggml-common.h`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.shapes import FORMATS, Format, Shape, Tensor, metadata, tensors
from lcursor.catalog import gguf
from lcursor.errors import DiskFull, LcursorError, ModelError

ALIGNMENT = 32
POOL_BYTES = 32 << 20
RESERVED_BYTES = 256 << 20
"""Left free on the disk."""

_U32, _I32, _F32, _STRING, _ARRAY = 4, 5, 6, 8, 9
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
        DiskFull: it does not fit; nothing was written.
        ModelError: the donor is broken.
        LcursorError: the folder cannot be written.
    """
    path = path_of(shape, folder)
    if _is_whole(path, shape):
        return path
    partial = path.with_name(path.name + ".partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        needed, free = shape.bytes + RESERVED_BYTES, shutil.disk_usage(folder).free
        if needed > free:
            raise DiskFull(
                f"{path} needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
                "Free some space, or name another --folder",
            )
        with partial.open("wb") as file:
            done = 0
            for chunk in _chunks(shape, gguf.read_raw(donor, "tokenizer.")):
                file.write(chunk)
                done += len(chunk)
                on_progress(min(done / shape.bytes, 1.0))
        partial.replace(path)
    except OSError as error:
        raise LcursorError(
            f"{path} cannot be written ({error.strerror or error})", "Name another --folder"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _is_whole(path: Path, shape: Shape) -> bool:
    """Whether the file exists and has this shape."""
    try:
        scalars = gguf.check(path).scalars
    except ModelError:
        return False
    return all(
        abs(float(scalars.get(key, 0)) - value) <= 1e-6 * abs(value)
        for key, value in metadata(shape).items()
        if not isinstance(value, str)
    )


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
