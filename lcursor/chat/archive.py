"""Where chats are kept: a folder for each project, in it a file for each chat.

Owns `$XDG_DATA_HOME/lcursor/chats`. Files are 0600 in folders of 0700, and hold what the user and
the model said, and what was attached. `stored.py` writes them. Reading a damaged one loses what
the damaged lines said and nothing else, and says so. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lcursor.chat.conversation import VERSION, Conversation, Op, preview_of, rescue
from lcursor.errors import ChatFailed, ChatMissing
from lcursor.storage import folders

ENDING = ".jsonl"
KEY = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """One chat of the archive, as a list shows it."""

    key: str
    title: str
    root: str
    model: str
    messages: int
    updated_s: float
    preview: str


@dataclass(slots=True)
class Reading:
    """What came of reading operations."""

    seen: int = 0
    """Number of the last operation."""
    damaged: int = 0
    """Lines that are no operations, or speak of what is not there."""


def home() -> Path:
    """Return the folder of all chats; it need not exist."""
    return folders.data_home() / "chats"


def new_key() -> str:
    """Return a name for a new chat, which no other one has."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


class Archive:
    """The chats of a user.

    Args:
        folder: of all of them; by default `home()`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()

    def path(self, key: str, root: str) -> Path:
        """Return where a chat of a project is kept."""
        return self.place(root) / f"{key}{ENDING}"

    def place(self, root: str) -> Path:
        """Return the folder of a project's chats; it need not exist."""
        word = re.sub(r"[^\w.-]+", "-", Path(root).name, flags=re.ASCII)[:32].strip("-.") or "root"
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        return self.folder / f"{word}-{digest}"

    def find(self, key: str) -> Path:
        """Return the file of a chat.

        Raises:
            ChatMissing: there is none of that name.
        """
        if KEY.fullmatch(key):
            for path in self.folder.glob(f"*/{key}{ENDING}"):
                return path
        raise ChatMissing(f"there is no chat {key}", "Choose one with :LCursor chats")

    def newest(self, root: str) -> str:
        """Return the key of a project's chat that was changed last; "" where there is none."""
        found = [(_changed_ns(path), path.stem) for path in self._files(self.place(root))]
        return max(found, default=(0, ""))[1]

    def rows(self, root: str = "") -> tuple[list[Row], str]:
        """Return the chats of a project, or all, the newest first; and what could not be read."""
        folders = [self.place(root)] if root else sorted(self.folder.glob("*"))
        found, lost = list[tuple[int, Row]](), 0
        for path in (path for folder in folders for path in self._files(folder)):
            try:
                chat, _ = read(path)
                changed_ns = _changed_ns(path)
            except ChatFailed:
                lost += 1
                continue
            if chat.said:
                found.append((changed_ns, row_of(chat, changed_ns / 1e9)))
        found.sort(key=lambda each: (-each[0], each[1].key))
        note = f"{lost} of them cannot be read; they are in {self.folder}" if lost else ""
        return [row for _, row in found], note

    def delete(self, key: str) -> None:
        """Delete a chat for good.

        Raises:
            ChatMissing: there is none of that name.
            ChatFailed: its file cannot be deleted.
        """
        path = self.find(key)
        try:
            path.unlink()
        except OSError as error:
            raise ChatFailed(
                f"the chat cannot be deleted: {error.strerror or error} ({path})",
                "See who may write there",
            ) from error
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # where it was the last one

    def _files(self, folder: Path) -> Iterator[Path]:
        return (path for path in folder.glob(f"*{ENDING}") if KEY.fullmatch(path.stem))


def row_of(chat: Conversation, updated_s: float) -> Row:
    """Return a chat as a list shows it."""
    return Row(
        chat.key,
        chat.name(),
        chat.root,
        chat.model,
        len(chat.line()),
        updated_s,
        preview_of(chat.first_question()),
    )


def read(path: Path) -> tuple[Conversation, Reading]:
    """Return a chat from its file.

    Raises:
        ChatFailed: it cannot be read, or a newer lcursor wrote it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ChatFailed(
            f"the chat cannot be read: {error.strerror or error} ({path})", "See who may read it"
        ) from error
    chat = Conversation(key=path.stem)
    return chat, take(chat, data.split(b"\n"), Reading(), path)


def take(chat: Conversation, lines: list[bytes], reading: Reading, path: Path) -> Reading:
    """Apply lines of a file to a chat; return how far one is now.

    An operation that is there twice, since its first writing was thought to have failed, counts
    once. What cannot be applied is skipped, but for the words in it.

    Raises:
        ChatFailed: a newer lcursor wrote it.
    """
    for line in filter(None, lines):
        try:
            op = json.loads(line)
            number = int(op["n"])
            is_newer = op.get("version", 0) > VERSION
        except (ValueError, KeyError, TypeError):
            reading.damaged += 1
            continue
        if number <= reading.seen:
            continue
        reading.seen = number
        if is_newer:
            raise ChatFailed(
                f"a newer lcursor wrote this chat ({path})", "Update lcursor, then restart Neovim"
            )
        try:
            chat.apply(op)
        except (ValueError, KeyError, TypeError):
            reading.damaged += 1
            rescue(chat, op)
    return reading


def line_of(op: Op, number: int) -> bytes:
    """Return an operation as a line of a file."""
    return json.dumps({"n": number, **op}, separators=(",", ":")).encode() + b"\n"


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
