"""The data types of gathered context. Rows are 0-based, ends exclusive."""

from __future__ import annotations

from dataclasses import dataclass

DROPPED = "you dropped it"
"""The note of an item that the user removed, which is not sent to the model."""


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of context for a prompt, or one that was requested and left out.

    Chats store all fields except the text; the editor gets the fields of `ChatItem`.
    """

    key: str
    """Identifies it within a message, and from one token count to the next."""
    kind: str
    """An `AttachmentKind`; in a list of the parts of a prompt also `system` and others."""
    name: str
    """For display: a path relative to the project with 1-based rows, or a description."""
    path: str = ""
    """Absolute path; "" if it is not from a file."""
    first_row: int = 0
    text: str = ""
    note: str = ""
    """Why it is included or left out."""
    is_left_out: bool = False
    rows: int = 0
    """Number of rows of the text, if the text is not loaded."""
    tokens: int = 0
    is_exact: bool = False
    """Whether `tokens` is counted, not estimated."""
    digest: str = ""
    """Digest of the text and its position."""
    sent_row: int = -1
    """First row of its text in the message; -1 if it is not part of it."""

    @property
    def end_row(self) -> int:
        """The row after the last one."""
        return self.first_row + (self.rows or count_rows(self.text))


def missing(kind: str, name: str, why: str) -> Item:
    """Return an item that is left out, with the reason."""
    return Item(f"{kind}:{name}", kind, name, note=why, is_left_out=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows of a file in a prompt, or another message if the path is empty."""

    path: str
    """Absolute path."""
    first_row: int
    lines: tuple[str, ...]
    message: int
    """Number in the chat; a higher one is newer."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Rows of a file found by a search."""

    path: str
    """Path relative to the project."""
    first_row: int
    end_row: int
    text: str
    why: str
    """The reason for the hit, or for leaving it out."""
    scope: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search within the token limit, and the omitted others."""

    hits: tuple[SearchHit, ...] = ()
    """Best first."""
    omitted: tuple[SearchHit, ...] = ()
    """The other hits, without text."""
    tokens: int = 0
    """Estimated tokens of the hits."""
    note: str = ""
    """A note about the search for the user."""


@dataclass(frozen=True, slots=True)
class SymbolLocation:
    """The definition of a name."""

    path: str
    """Path relative to the project."""
    name: str
    kind: str
    first_row: int
    end_row: int
    scope: str = ""


def count_rows(text: str) -> int:
    """Return the number of rows of a text, terminated by line feeds."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))
