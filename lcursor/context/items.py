"""The data types of gathered context. Rows are 0-based, ends exclusive."""

from __future__ import annotations

from dataclasses import dataclass

DROPPED = "you dropped it"
"""The note of an item that the user removed; the model is not told about it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of context for a prompt, or one that was requested and left out.

    Chats store all fields but the text; the editor gets those of `ChatItem`.
    """

    key: str
    """Identifies it within a message, and from one token count to the next."""
    kind: str
    """An `AttachmentKind`; in a list of what a prompt contains, also `system` and the like."""
    name: str
    """For display: a path relative to the project with 1-based rows, or a description."""
    path: str = ""
    """Absolute; empty if it is not from a file."""
    first_row: int = 0
    text: str = ""
    note: str = ""
    """Why it is included or left out."""
    is_left_out: bool = False
    rows: int = 0
    """Of the text, if that is not here."""
    tokens: int = 0
    is_exact: bool = False
    """Whether `tokens` is counted, not estimated."""
    digest: str = ""
    """Of the text and its place."""
    sent_row: int = -1
    """Where its text begins in the message; -1 if it is not in it."""

    @property
    def end_row(self) -> int:
        """The row after its last one."""
        return self.first_row + (self.rows or count_rows(self.text))


def missing(kind: str, name: str, why: str) -> Item:
    """Return an item that says why something is not included."""
    return Item(f"{kind}:{name}", kind, name, note=why, is_left_out=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows of a file as a model read them; with an empty path, another message."""

    path: str
    """Absolute."""
    first_row: int
    lines: tuple[str, ...]
    message: int
    """Number in the chat; a higher one is newer."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Rows of a file that a search found."""

    path: str
    """Relative to the project."""
    first_row: int
    end_row: int
    text: str
    why: str
    """Why it was found, or not used."""
    scope: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search that fit into a number of tokens, and the others."""

    hits: tuple[SearchHit, ...] = ()
    """Best first."""
    omitted: tuple[SearchHit, ...] = ()
    """Without text."""
    tokens: int = 0
    """Estimate for the hits."""
    note: str = ""
    """What the user should know about the search."""


@dataclass(frozen=True, slots=True)
class SymbolLocation:
    """The definition of a name."""

    path: str
    """Relative to the project."""
    name: str
    kind: str
    first_row: int
    end_row: int
    scope: str = ""


def count_rows(text: str) -> int:
    """Return the number of rows of a text; a line feed ends a row."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))
