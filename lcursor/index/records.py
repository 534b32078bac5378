"""The data types of the index: files, chunks, symbols, filters and hits.

Imports nothing of ours. Paths are relative to the project's root, with `/` between parts; bytes
that are not UTF-8 are surrogate escapes. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

ChunkKind = Literal["code", "outline", "lines"]
"""Whole syntax nodes; a class without the bodies of methods; lines of a text without grammar."""

Mode = Literal["lexical", "vector", "hybrid"]


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file when it was read; another one if it may have changed."""

    size_bytes: int
    mtime_ns: int
    digest: bytes
    """The first 16 bytes of the sha256 of its content."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that is searched and embedded as one."""

    first_row: int
    end_row: int
    text: str
    scope: str
    """Names of the definitions around it, outermost first, joined by ` > `; "" at the top level."""
    kind: ChunkKind
    digest: bytes
    """16 bytes; the same for the same text with the same file name and scope."""


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
    """The chunks and symbols of a file."""

    language: str
    """In lower case; `text` if unknown."""
    chunks: Sequence[Chunk]
    symbols: Sequence[Symbol]


@dataclass(frozen=True, slots=True)
class StoredChunk(Chunk):
    """A chunk in the store."""

    id: int
    path: str
    language: str


@dataclass(frozen=True, slots=True)
class StoredSymbol(Symbol):
    """A definition in the store."""

    path: str
    language: str


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on hits; an empty one is always met."""

    paths: tuple[str, ...] = ()
    """Globs, or parts of paths."""
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Kinds of symbols, one of which the chunk defines."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A result of a search."""

    path: str
    first_row: int
    end_row: int
    scope: str
    language: str
    text: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    """The parts of the score: `lexical`, `vector`, `symbol`, `recent`, and each rule by name."""
    is_stale: bool = False
    """The file has changed since it was indexed."""
