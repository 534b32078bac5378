"""What the rooms of an edit hand to each other.

Vocabulary: imports nothing of ours. Lines have no line ends. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Lines = tuple[str, ...]
FileKind = Literal["edit", "create", "delete", "rename"]
Format = Literal["whole", "search_replace", "udiff"]
"""How a model writes a change: the new text of a region, blocks of what is there and what shall be,
or a diff."""


@dataclass(frozen=True, slots=True)
class Change:
    """Lines of a base that become others; none of either is an insertion or a deletion."""

    first_row: int
    last_row: int
    """Behind the last."""
    old: Lines
    new: Lines


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about a change before it is shown."""

    name: str
    """`parses`, `indent`, `symbols`, `size`, `format`, `lint`, `test` or `diagnostics`."""
    is_ok: bool
    text: str = ""
    """What is wrong, for people and for the model that tries again; of a check that is passed, a
    remark for people, or empty."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a turn does to one file."""

    path: str
    """Absolute."""
    kind: FileKind = "edit"
    to: str = ""
    """Absolute; of a rename."""
    base: str = ""
    """`digest` of the lines that the rows are of; empty for a file that is created."""
    changes: tuple[Change, ...] = ()
    """In the order of their rows; none overlaps another."""
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """Rows that are written anew as a whole."""

    first_row: int
    last_row: int
    what: str
    """For people: `function parse`."""


def lines_of(text: str) -> Lines:
    """Return the lines of a buffer's text as it crosses the wire: at least one, as a buffer has."""
    return tuple(text.split("\n"))


def digest(lines: Sequence[str]) -> str:
    """Return the SHA-256 of lines joined by newlines, in hexadecimal; the editor has the same."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
