"""What the rooms of the index hand to each other.

Vocabulary: imports nothing of ours. Paths are relative to the project's root, with `/` between
parts; bytes that are no UTF-8 are surrogate escapes. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

ChunkKind = Literal["code", "outline", "lines"]
"""Whole syntax nodes; a class with its bodies left out; lines of a text that nothing parses."""

Mode = Literal["lexical", "vector", "hybrid"]


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file looked like when it was read; differs as soon as it may have changed."""

    size_bytes: int
    mtime_ns: int
    digest: bytes
    """sha256 of the content, the first 16 bytes."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file that is found and embedded as one."""

    first_row: int
    end_row: int
    text: str
    scope: str
    """Names around it, outermost first, with ` > ` between; "" at the top of the file."""
    kind: ChunkKind
    digest: bytes
    """16 bytes; the same for the same text under the same header, wherever it stands."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition."""

    name: str
    kind: str
    """`function`, `method`, `class`, `interface`, `enum`, `constant`, `module`, `type`, …"""
    first_row: int
    end_row: int
    scope: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file in pieces."""

    language: str
    """Its name, in lower case; `text` where nothing parses it."""
    chunks: Sequence[Chunk]
    symbols: Sequence[Symbol]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as the store has it."""

    id: int
    path: str
    language: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class StoredSymbol:
    """A definition as the store has it."""

    path: str
    language: str
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must be; empty lets everything pass."""

    paths: tuple[str, ...] = ()
    """Globs, or parts of a path."""
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Kinds of symbols that the chunk defines."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What a search found."""

    path: str
    first_row: int
    end_row: int
    scope: str
    language: str
    text: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """What made the score: `lexical`, `vector`, `symbol`, `recent`, and each rule by its name."""
    is_stale: bool = False
    """The file has changed since it was read."""
