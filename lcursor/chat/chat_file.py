"""A chat and its file: every change is appended as a line before it becomes visible.

Several Neovims can append to a file (`storage/log_file.py`); while one writes an answer, the chat
is locked. A write error is reported once, and all unsaved changes are written with the next
successful write. Damaged lines are skipped and counted. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lcursor.chat.conversation import VERSION, Conversation, Op
from lcursor.errors import ChatBusy, ChatFailed, ChatUnsaved, LcursorError
from lcursor.storage import file_lock, stored
from lcursor.storage.log_file import LogFile

MakeOps = Callable[[Conversation], Sequence[Op]]


class ChatFile:
    """A chat and its file.

    Args:
        path: of the file; it and its folder are created with the first change.
        chat: the state of a new chat.
        on_error: called on the thread of a change if the file cannot be written; called again
            only after a successful write.
    """

    def __init__(
        self,
        path: Path,
        chat: Conversation,
        on_error: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.path, self.chat = path, chat
        self._damaged = 0
        self._lock = threading.RLock()
        self._on_error = on_error
        self._file = LogFile(path)
        self._unsaved: list[Op] = []
        self._has_failed = False
        self._turn_fd = -1
        self._is_locked = False

    @classmethod
    def open(
        cls, path: Path, on_error: Callable[[LcursorError], None] = lambda _: None
    ) -> ChatFile:
        """Read a chat from its file.

        Raises:
            ChatFailed: it cannot be read, or a newer lcursor wrote it.
        """
        file = cls(path, Conversation(key=path.stem), on_error)
        try:
            file._read()
        except OSError as error:
            text = f"the chat cannot be read: {error.strerror or error} ({path})"
            raise ChatFailed(text, "Check its permissions") from error
        return file

    @property
    def is_saved(self) -> bool:
        """Whether all changes are in the file."""
        return not self._unsaved

    @property
    def note(self) -> str:
        """A note on damaged lines; "" if there are none."""
        count = self._damaged
        return f"{count} damaged lines of {self.path} were skipped" if count else ""

    def change(self, make: MakeOps, *, fsync: bool = True) -> list[Op]:
        """Change the chat and its file.

        Args:
            make: returns operations, given the chat with the changes of other processes.
            fsync: make the change survive a power failure.

        Raises:
            KeyError: an operation refers to a missing message; earlier operations remain applied.
            ValueError: an operation is impossible.
        """
        with self._lock, self._file.lock_for_writing() as fd:
            error = fd if isinstance(fd, OSError) else self._catch_up(fd)
            done = list[Op]()
            try:
                for op in [*self._header(), *make(self.chat)]:
                    self.chat.apply(op)
                    done.append(op)
            finally:
                self._unsaved += done
                if error is None and isinstance(fd, int) and self._unsaved:
                    lines = [stored.encode_line(op) for op in self._unsaved]
                    error = self._file.append(fd, lines, fsync=fsync)
                    if error is None:
                        self._unsaved.clear()
                self._report(error)
            return done

    def snapshot(self) -> Conversation:
        """Return a copy of the chat."""
        with self._lock:
            return self.chat.copy()

    def refresh(self) -> None:
        """Read the changes of other processes."""
        with contextlib.suppress(OSError):
            self._read()

    def lock_turn(self) -> None:
        """Prevent other answers in this chat until `unlock_turn`.

        Raises:
            ChatBusy: an answer is being written.
        """
        with self._lock:
            if self._is_locked:
                raise ChatBusy("an answer is being written in this chat", "Stop it first")
            if self._turn_fd < 0:
                # Without a folder no other process has this chat.
                with contextlib.suppress(OSError):
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    fd = file_lock.try_lock(self._turn_path)
                    if fd is None:
                        raise ChatBusy(
                            "another Neovim is writing an answer in this chat",
                            "Wait for its end, or start another chat with :LCChat!",
                        )
                    self._turn_fd = fd
            self._is_locked = True

    def is_turn_running(self) -> bool:
        """Return whether an answer is being written, here or in another process."""
        try:
            self.lock_turn()
        except ChatBusy:
            return True
        self.unlock_turn()
        return False

    def unlock_turn(self) -> None:
        """Release the lock, or keep it until numbered messages are saved."""
        with self._lock:
            self._is_locked = False
            if self._turn_fd >= 0 and self.is_saved:
                with contextlib.suppress(OSError):
                    if file_lock.is_same_file(self._turn_path, self._turn_fd):
                        self._turn_path.unlink()
                os.close(self._turn_fd)
                self._turn_fd = -1

    def close(self) -> None:
        """Write unsaved changes, and unlock the chat."""
        with self._lock:
            if self._unsaved:
                self.change(lambda _: ())
            self.unlock_turn()

    @property
    def _turn_path(self) -> Path:
        return self.path.with_suffix(".lock")

    def _header(self) -> list[Op]:
        """Return the first operation of a new file."""
        if self._file.read_bytes or self._unsaved:
            return []
        key, root = self.chat.key, self.chat.root
        return [{"op": "chat", "version": VERSION, "key": key, "root": root, "at_s": time.time()}]

    def _read(self) -> None:
        with self._lock, self._file.lock_for_reading() as fd:
            if error := self._catch_up(fd):
                raise error

    def _catch_up(self, fd: int) -> OSError | None:
        """Apply the changes of other processes; return the error if that failed."""
        try:
            lines, is_from_start = self._file.read_new(fd)
        except OSError as error:
            return error
        if is_from_start:  # the first read, or the file was replaced
            self.chat = Conversation(key=self.chat.key, root=self.chat.root)
            self._damaged = 0
        unsaved = map(stored.encode_line, self._unsaved if is_from_start else ())
        for line in [*lines, *unsaved]:
            try:
                self.chat.restore(stored.decode_line(line))
            except stored.DAMAGE:
                self._damaged += 1
        return None

    def _report(self, error: OSError | None) -> None:
        """Report the first of several errors; after a success, release a lock that was kept."""
        if error is None and self._has_failed and not self._is_locked:
            self.unlock_turn()
        elif error is not None and not self._has_failed:
            self._on_error(
                ChatUnsaved(
                    f"the chat cannot be saved: {error.strerror or error} ({self.path})",
                    "It is kept in memory, and saved with a later message",
                )
            )
        self._has_failed = error is not None
