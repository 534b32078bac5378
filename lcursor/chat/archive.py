"""The list of all chats: a folder per project, with a file per chat.

The folder is `$XDG_DATA_HOME/lcursor/chats`; files have mode 0600, folders 0700. `chat_file.py`
reads and writes a file. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from lcursor.chat.chat_file import ChatFile
from lcursor.chat.conversation import Conversation, preview_of
from lcursor.errors import ChatFailed, ChatMissing
from lcursor.protocol.chat import ChatRow
from lcursor.storage import folders

SUFFIX = ".jsonl"
KEY = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}", re.ASCII)


def default_folder() -> Path:
    """Return the folder of all chats; it need not exist."""
    return folders.data_home() / "chats"


def new_key() -> str:
    """Return a unique name for a new chat."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"


class Archive:
    """The chats of a user.

    Args:
        folder: of all chats; `default_folder()` if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def path(self, key: str, root: str) -> Path:
        """Return the path of a chat of a project."""
        return self.project_folder(root) / f"{key}{SUFFIX}"

    def project_folder(self, root: str) -> Path:
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
            for path in self.folder.glob(f"*/{key}{SUFFIX}"):
                return path
        raise ChatMissing(f"there is no chat {key}", "Choose one with :LCursor chat list")

    def newest(self, root: str) -> str:
        """Return the key of a project's last modified chat; "" if there is none."""
        found = [(_mtime_ns(path), path.stem) for path in self._files(self.project_folder(root))]
        return max(found, default=(0, ""))[1]

    def rows(self, root: str = "") -> tuple[list[ChatRow], str]:
        """Return the chats of a project, or all, newest first, and a note on unreadable ones."""
        project_folders = [self.project_folder(root)] if root else sorted(self.folder.glob("*"))
        chat_rows, unreadable = list[ChatRow](), 0
        for path in (path for each in project_folders for path in self._files(each)):
            try:
                chat = ChatFile.open(path).chat
            except ChatFailed:
                unreadable += 1
                continue
            if chat.messages:
                chat_rows.append(_row(chat, _mtime_ns(path) / 1e9))
        chat_rows.sort(key=lambda each: (-each["updated_s"], each["chat"]))
        note = f"{unreadable} chats in {self.folder} cannot be read" if unreadable else ""
        return chat_rows, note

    def delete(self, key: str) -> None:
        """Delete a chat permanently.

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
                "Check the folder's permissions",
            ) from error
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # if it was the last one

    def _files(self, folder: Path) -> Iterator[Path]:
        return (path for path in folder.glob(f"*{SUFFIX}") if KEY.fullmatch(path.stem))


def _row(chat: Conversation, updated_s: float) -> ChatRow:
    return {
        "chat": chat.key,
        "title": chat.display_title(),
        "root": chat.root,
        "model": chat.model,
        "messages": len(chat.branch()),
        "updated_s": updated_s,
        "preview": preview_of(chat.first_question()),
    }


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
