"""The data types of the index: files, chunks, symbols, filters and hits.

Imports no other module. Paths are relative to the project's root, separated by `/`; bytes that are
not UTF-8 are surrogate escapes. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

ChunkKind = Literal["code", "outline", "lines"]
"""Whole syntax nodes; a class without method bodies; lines of a text without a grammar."""

Mode = Literal["lexical", "vector", "hybrid"]


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file when it was read; a different one means a possible change."""

    size_bytes: int
    mtime_ns: int
    digest: bytes
    """The first 16 bytes of the sha256 of its content."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that is searched and embedded as a unit."""

    first_row: int
    end_row: int
    text: str
    scope: str
    """Names of the enclosing definitions, outermost first, joined by ` > `; "" at the top level."""
    kind: ChunkKind
    digest: bytes
    """16-byte digest of the text, the file name and the scope."""


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
    """Lower-case name; `text` if unknown."""
    chunks: Sequence[Chunk]
    symbols: Sequence[Symbol]


@dataclass(frozen=True, slots=True)
class StoredChunk(Chunk):
    """A chunk in the store."""

    id: int
    path: str
    language: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a chunk comes from."""

    path: str
    scope: str
    kind: ChunkKind
    is_defining: bool
    """Whether a definition begins in it."""


@dataclass(frozen=True, slots=True)
class StoredSymbol(Symbol):
    """A definition in the store."""

    path: str
    language: str


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions for hits; an empty one always passes."""

    paths: tuple[str, ...] = ()
    """Globs, or parts of paths."""
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Kinds of symbols, of which the chunk must define one."""


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
    """Whether the file has changed since it was indexed."""


def hit_of(row: Mapping[str, Any]) -> Hit:
    """Return a hit from its fields in a worker's answer, which may have more."""
    return Hit(**{each.name: row[each.name] for each in fields(Hit)})
