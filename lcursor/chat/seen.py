"""What the model had read when it wrote an answer: got back from the chat's own file.

The message as it was sent is there to the letter, and each attachment has its receipt, by whose
digest a piece of the message is known to be its text. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from lcursor.chat.conversation import Attached, Conversation
from lcursor.context import layout
from lcursor.context.items import Item, Seen
from lcursor.llm.tokens import digest
from lcursor.protocol_chat import AttachmentKind

OF_FILES: Final = frozenset({"file", "buffer", "selection", "screen", "symbol", "codebase", "dir"})
"""Kinds whose text is rows of a file."""


def seen(chat: Conversation, number: int) -> list[Seen]:
    """Return what stood before an answer, the newest first.

    Args:
        chat: as it is.
        number: of the answer; 0 is the last one that is shown.

    Returns:
        Attached rows of files, and with an empty path what both have said before.
    """
    line = chat.line(chat.place(number) or None)
    last = line[-1].number if line else 0
    found = list[Seen]()
    for said in line[::-1]:
        sent = said.sent.split("\n")
        for item in said.items:
            text = _text(sent, item) if item.path and item.kind in OF_FILES else None
            if text is not None:
                found.append(Seen(item.path, item.first_row, _lines(text), said.number))
        if said.number != last:
            found.append(Seen("", 0, _lines(said.text), said.number))
    return found


def fingerprint(item: Item) -> str:
    """Return a digest of an item's text and of where it stands."""
    return digest(f"{item.kind}\n{item.path or item.name}\n{item.first_row}\n{item.text}")


def _text(sent: Sequence[str], item: Attached) -> str | None:
    """Return the text of an attachment; None where it is not to be found in the message."""
    if item.is_left_out or not item.digest:
        return None
    kind = cast("AttachmentKind", item.kind)
    made = Item(item.key, kind, item.name, item.path, item.first_row)
    head = layout.heading(made)
    for at, line in enumerate(sent):
        if line != head or not sent[at + 1 : at + 2] or not sent[at + 1].startswith("```"):
            continue
        text = "\n".join(sent[at + 2 : at + 2 + item.rows])
        for whole in (f"{text}\n", text):
            if fingerprint(replace(made, text=whole)) == item.digest:
                return whole
    return None


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))
