"""The records of next-edit prediction.

Lines have no line ends. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Lines = tuple[str, ...]
Texts = Mapping[str, Lines]
"""The current lines of the known files, by path."""
Kind = Literal["rename", "repetition", "model"]


@dataclass(frozen=True, slots=True)
class Edit:
    """A finished edit of the user: rows of a file and what replaced them."""

    path: str
    row: int
    """First row, when the edit was made."""
    old: Lines
    new: Lines
    is_accepted: bool = False
    """Whether it was an accepted proposal."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A replacement of rows that follows from earlier edits."""

    kind: Kind
    path: str
    row: int
    old: Lines
    """The current lines; empty for an insertion."""
    new: Lines
    confidence: float
    """From 0 to 1."""
    cause: str
    """The reason, for the user: "`timeout` became `deadline` in line 12"."""
    group: str
    """Proposals with one cause share it; rejecting one silences all."""

    @property
    def end_row(self) -> int:
        """The row after the last one that is replaced."""
        return self.row + len(self.old)
