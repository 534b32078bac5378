"""What the rooms of the context hand to each other, and to the chat.

Vocabulary: imports nothing of ours but the protocol's names. Rows are 0-based, ends exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass

from lcursor.protocol_chat import AttachmentKind

DROPPED = "you dropped it"
"""The note of an item that the user does not want in; the model is not told of it."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that goes into a prompt, or that was asked for and does not."""

    key: str
    """Names it among the items of one message, and from one bill to the next."""
    kind: AttachmentKind
    name: str
    """As it is shown: a path relative to the project with rows counted from 1, or what it is."""
    path: str = ""
    """Absolute; empty for what is in no file."""
    first_row: int = 0
    text: str = ""
    note: str = ""
    """Why it is in, or why it is not."""
    is_left_out: bool = False

    @property
    def end_row(self) -> int:
        """The row after its last one."""
        return self.first_row + rows_of(self.text)


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows of a file as a model read them, or with an empty path what was only said to it."""

    path: str
    """Absolute."""
    first_row: int
    lines: tuple[str, ...]
    message: int
    """Of the chat; a higher one is newer."""


def rows_of(text: str) -> int:
    """Return how many rows a text has, as Neovim counts them: a line feed ends one."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a file that a search found."""

    path: str
    """Relative to the project's root."""
    first_row: int
    end_row: int
    text: str
    why: str
    """It was found, or was not used."""
    scope: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a search found and how much of it fits."""

    used: tuple[Piece, ...] = ()
    """The best first."""
    left_out: tuple[Piece, ...] = ()
    """Without text."""
    tokens: int = 0
    """Of what is used, by a rough count."""
    note: str = ""
    """What a person should know of how it was found; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a name is defined."""

    path: str
    """Relative to the project's root."""
    name: str
    kind: str
    first_row: int
    end_row: int
    scope: str = ""
