"""Read the header of a GGUF file, and check whether its model can complete code.

Reads only the header, through a memory map, and checks every length against the file's end. A file
of 20 GB takes a few hundred milliseconds. Never loads a model. Any thread.

Source: the GGUF specification in ggml's docs/gguf.md; the lists of architectures and marker texts
follow llama.cpp's `llama-arch.cpp` and `llama-vocab.cpp`.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lcursor.catalog import manifest
from lcursor.errors import ModelCorrupt, ModelMissing, ModelUnsuitable

Scalar = int | float | bool | str

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9

_BLOCKS: dict[int, tuple[int, int]] = {
    **{t: (1, size) for t, size in {0: 4, 1: 2, 24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2}.items()},
    **{
        t: (32, size)
        for t, size in {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 9: 36, 20: 18, 39: 17}.items()
    },
    **{t: (256, size) for t, size in {10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 15: 292}.items()},
    **{t: (256, size) for t, size in {16: 66, 17: 74, 18: 98, 19: 50, 21: 110, 22: 82}.items()},
    **{t: (256, size) for t, size in {23: 136, 29: 56, 34: 54, 35: 66}.items()},
    40: (64, 36),
    41: (128, 18),
    42: (64, 18),
}
"""ggml type -> elements and bytes of a block; a type not listed is not checked for size."""

RECURRENT = frozenset(
    {
        *("mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"),
        *("jamba", "falcon-h1", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h"),
        *("nemotron_h_moe", "qwen3next", "qwen35", "qwen35moe", "qwen4exp", "kimi-linear"),
        *("kimi-k3", "bailingmoe3", "glm5-next", "deepseek4", "minimax-01"),
    }
)
"""Architectures whose state cannot be rolled back, so keystrokes cannot reuse the KV cache."""

_FIM_KEYS = (
    ("fim_pre_token_id", "fim_suf_token_id", "fim_mid_token_id"),
    ("prefix_token_id", "suffix_token_id", "middle_token_id"),
)
MARKERS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("[PREFIX]", "[SUFFIX]"),
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),
    ("<PRE>", "<SUF>", "<MID>"),
    ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("<|prefix|>", "<|suffix|>", "<|middle|>"),
)
"""Texts of the marker tokens; a model needs all of one row."""


class _BrokenError(Exception):
    """The file has no valid GGUF header."""


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a GGUF file."""

    tensors: int
    scalars: dict[str, Scalar]
    """All values except arrays."""
    markers: tuple[str, ...] | None
    """The first row of `MARKERS` that is in the vocabulary."""
    data_bytes: int
    """Minimum size of the whole file."""
    file_bytes: int

    @property
    def architecture(self) -> str:
        """Name of the architecture; "" if unknown."""
        return str(self.scalars.get("general.architecture", ""))

    @property
    def tokenizer(self) -> str:
        """Type of the tokenizer: `gpt2`, `llama`, …; "" if unknown."""
        return str(self.scalars.get("tokenizer.ggml.model", ""))

    @property
    def has_fim(self) -> bool:
        """Whether the vocabulary has markers for fill-in-the-middle."""
        return self.markers is not None or any(
            all(f"tokenizer.ggml.{key}" in self.scalars for key in keys) for keys in _FIM_KEYS
        )


class Tensor(NamedTuple):
    """The position of a tensor in a file.

    Attributes:
        shape: the length of a row first.
        kind: type of its values in ggml.
        start: offset in bytes.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int

    @property
    def size(self) -> int:
        """Bytes; 0 if the type is unknown."""
        block, size = _BLOCKS.get(self.kind, (1, 0))
        return -(-math.prod(self.shape) // block) * size


class _Reader:
    """Reads values from a buffer, with bounds checks."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def skip(self, count: int) -> int:
        """Skip bytes, and return where they start."""
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise _BrokenError("its header is truncated")
        return start

    def number(self, code: str) -> Scalar:
        start = self.skip(struct.calcsize("<" + code))
        value: Scalar = struct.unpack_from("<" + code, self.data, start)[0]
        return value

    def text(self) -> str:
        size = int(self.number("Q"))
        start = self.skip(size)
        return self.data[start : start + size].decode("utf-8", "replace")

    def value(self, kind: int) -> Scalar | None:
        """Return a scalar, or skip an array and return None."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            self._skip_array()
            return None
        if kind not in _SCALARS:
            raise _BrokenError(f"it has a value of the unknown type {kind}")
        return self.number(_SCALARS[kind])

    def _skip_array(self) -> None:
        kind, count = int(self.number("I")), int(self.number("Q"))
        if kind in _SCALARS:
            self.skip(count * struct.calcsize("<" + _SCALARS[kind]))
            return
        if kind != _STRING:
            raise _BrokenError(f"it has an array of the unknown type {kind}")
        # Hot loop: a vocabulary has 150,000 texts.
        data, at, end, size_of = self.data, self.at, len(self.data), struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > end:
                raise _BrokenError("its header is truncated")
            at += 8 + size_of(data, at)[0]
        self.at = at
        self.skip(0)


def _markers(data: mmap.mmap, start: int, end: int) -> tuple[str, ...] | None:
    """Find marker texts in the raw vocabulary, where a length precedes each text."""
    for row in MARKERS:
        raws = (text.encode() for text in row)
        if all(data.find(struct.pack("<Q", len(raw)) + raw, start, end) >= 0 for raw in raws):
            return row
    return None


def _tensors(reader: _Reader, count: int) -> Iterator[Tensor]:
    """Yield the tensors, with starts relative to the start of the data."""
    for _ in range(count):
        name = reader.text()
        shape = tuple(int(reader.number("Q")) for _ in range(int(reader.number("I"))))
        kind, start = int(reader.number("I")), int(reader.number("Q"))
        yield Tensor(name, shape, kind, start)


def _read(data: mmap.mmap) -> Head:
    reader = _Reader(data)
    reader.skip(4)
    version = int(reader.number("I"))
    if version not in (2, 3):
        raise _BrokenError(f"version {version} of the format is not supported")
    tensors, pairs = int(reader.number("Q")), int(reader.number("Q"))
    scalars: dict[str, Scalar] = {}
    markers = None
    for _ in range(pairs):
        key, kind = reader.text(), int(reader.number("I"))
        start = reader.at
        value = reader.value(kind)
        if value is not None:
            scalars[key] = value
        elif key == "tokenizer.ggml.tokens":
            markers = _markers(data, start, reader.at)
    end = max((each.start + each.size for each in _tensors(reader, tensors)), default=0)
    data_start = _aligned(reader.at, scalars)
    return Head(
        tensors=tensors,
        scalars=scalars,
        markers=markers,
        data_bytes=data_start + end if tensors else reader.at,
        file_bytes=len(data),
    )


def _name_of(path: Path) -> str:
    """Return the manifest's name for the model in a file, or the default model."""
    model = manifest.with_file(path.name)
    return model.name if model else "qwen2.5-coder-0.5b"


def _download_hint(path: Path) -> str:
    return (
        f"Get it again: :LCursor install, or in a shell "
        f"python -m lcursor models pull {_name_of(path)}"
    )


def _choose_hint() -> str:
    return (
        "Use a model made for completion: set completion.model to a name of "
        "python -m lcursor models list, for example python -m lcursor models pull "
        "qwen2.5-coder-0.5b"
    )


def read_head(path: Path) -> Head:
    """Read the header of a file.

    Raises:
        ModelMissing: there is no such file, or it cannot be read.
        ModelCorrupt: it is not a GGUF file, or its header is invalid or truncated.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic != b"GGUF":
                what = "is empty" if not magic else f"is not a GGUF file (it begins with {magic!r})"
                raise ModelCorrupt(f"{path} {what}", _download_hint(path))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(data)
    except (_BrokenError, struct.error) as e:
        raise ModelCorrupt(f"{path} is a broken GGUF file: {e}", _download_hint(path)) from e
    except OSError as e:
        raise ModelMissing(
            f"{path} cannot be read ({e.strerror or e})", _download_hint(path)
        ) from e


def tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name.

    Raises:
        ModelMissing, ModelCorrupt: see `check`.
    """
    head = check(path)  # so that the reads below stay inside the file
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        reader = _Reader(data)
        reader.skip(16)  # magic, version, tensors
        for _ in range(int(reader.number("Q"))):
            reader.text()
            reader.value(int(reader.number("I")))
        found = list(_tensors(reader, head.tensors))
        first = _aligned(reader.at, head.scalars)
    return {each.name: each._replace(start=first + each.start) for each in found}


def _aligned(at: int, scalars: Mapping[str, Scalar]) -> int:
    """Return where the data of tensors starts, behind a header that ends at an offset."""
    alignment = max(1, int(scalars.get("general.alignment", 32)))
    return -(-at // alignment) * alignment


def check(path: Path) -> Head:
    """Read the header and check that the file is complete.

    Raises:
        ModelMissing: there is no such file, or it cannot be read.
        ModelCorrupt: it is not a GGUF file, or it is invalid or truncated.
    """
    head = read_head(path)
    if head.file_bytes < head.data_bytes:
        raise ModelCorrupt(
            f"{path} is truncated: {head.file_bytes:,} bytes of {head.data_bytes:,}",
            _download_hint(path),
        )
    if not head.architecture or not head.tensors:
        raise ModelCorrupt(f"{path} is a GGUF file without a model in it", _download_hint(path))
    return head


def check_for_completion(path: Path) -> Head:
    """Check that the file is complete and that its model can complete code while the user types.

    Raises:
        ModelMissing: there is no such file, or it cannot be read.
        ModelCorrupt: it is not a GGUF file, or it is invalid or truncated.
        ModelUnsuitable: it has no fill-in-the-middle tokens, or its architecture is recurrent.
    """
    head = check(path)
    if head.architecture in RECURRENT:
        raise ModelUnsuitable(
            f"{path.name} cannot serve completion: its architecture ({head.architecture}) is "
            "recurrent or hybrid, so nothing can be reused from one keystroke to the next",
            _choose_hint(),
        )
    if not head.has_fim:
        raise ModelUnsuitable(
            f"{path.name} cannot serve completion: its vocabulary has no fill-in-the-middle tokens",
            _choose_hint(),
        )
    return head
