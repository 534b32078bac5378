"""The records that the modules of an edit share.

Imports no other module. Lines have no line ends. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

Lines = tuple[str, ...]
FileKind = Literal["edit", "create", "delete", "rename"]
Format = Literal["whole", "search_replace", "udiff"]
"""The form of a model's answer: the whole new text, search/replace blocks, or a diff."""


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement of lines; an insertion has no old lines, a deletion no new ones."""

    first_row: int
    last_row: int
    old: Lines
    new: Lines

    @property
    def key(self) -> str:
        """Identifies its text, whatever its rows."""
        return digest((digest(self.old), digest(self.new)))


@dataclass(frozen=True, slots=True)
class Check:
    """The result of checking a change before it is shown."""

    name: str
    """`parses`, `indent`, `symbols`, `size`, `effect`, `format`, `lint`, `test`."""
    is_ok: bool
    text: str = ""
    """The problem, for the user and the model's next attempt; a remark if it passed."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file."""

    path: str
    """Absolute path."""
    kind: FileKind = "edit"
    to: str = ""
    """Absolute new path of a renamed file."""
    base: str = ""
    """`digest` of the lines that the rows refer to; "" for a new file."""
    changes: tuple[Change, ...] = ()
    """Changes in the order of their rows, without overlaps."""
    checks: tuple[Check, ...] = ()
    is_guarded: bool = False
    """Whether it runs code by itself, so that it is only accepted after it was opened."""
    unneeded: tuple[str, ...] = ()
    """`Change.key` of those without which the tests pass, too; see `agent.minimal`."""


@dataclass(frozen=True, slots=True)
class Region:
    """Rows that a model rewrites as a whole."""

    first_row: int
    last_row: int
    what: str
    """Description for the user: `function parse`."""


def to_wire(record: Any) -> Any:
    """Return a record, or records in a sequence, as values of a message."""
    if is_dataclass(record):
        return {each.name: to_wire(getattr(record, each.name)) for each in fields(record)}
    return list(map(to_wire, record)) if isinstance(record, (list, tuple)) else record


def lines_of(text: str) -> Lines:
    """Return the lines of a buffer's text in a message; at least one, as in a buffer."""
    return tuple(text.split("\n"))


def digest(lines: Sequence[str]) -> str:
    """Return the SHA-256 of lines joined by newlines, as the editor computes it."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
