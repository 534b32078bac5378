"""A chat in its file: every change is appended as a line before anybody sees it.

Several Neovims may append to a file (`storage/log_file.py`); while an answer is written, the chat
is locked. If the file cannot be written, that is reported once, and everything is written as soon
as it works again. Damaged lines are skipped and counted. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.chat.conversation import VERSION, Conversation, Op, rescue_text, to_json
from lcursor.errors import ChatBusy, ChatFailed, ChatUnsaved, LcursorError
from lcursor.storage import file_lock
from lcursor.storage.log_file import LogFile

MakeOps = Callable[[Conversation], Sequence[Op]]

COMPACT_BYTES = 1 << 18
"""A smaller file is not compacted."""
COMPACT_RATIO = 2
"""A file is compacted if that makes it so many times smaller."""


@dataclass(slots=True)
class ReadState:
    """How far a file was read."""

    last_op: int = 0
    """Number of the last operation."""
    damaged: int = 0
    """Lines that are no operations, or refer to messages that do not exist."""


class ChatFile:
    """A chat and its file.

    Args:
        path: of the file; it and its folder are created at the first change.
        chat: the state of a new chat.
        on_error: called on the thread of a change if the file cannot be written, and not again
            until it could be.
    """

    def __init__(
        self,
        path: Path,
        chat: Conversation,
        on_error: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.path, self.chat = path, chat
        self.lock = threading.RLock()
        """Hold it to read the chat while others may change it."""
        self.note = ""
        """What could not be read."""
        self._on_error = on_error
        self._state = ReadState()
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
            ChatFailed: it cannot be read.
        """
        found = cls(path, Conversation(key=path.stem), on_error)
        try:
            with found._file.lock_for_reading() as fd:
                found._catch_up(fd)
        except OSError as error:
            raise _unreadable(path, error) from error
        found._compact()
        return found

    @property
    def is_saved(self) -> bool:
        """Whether everything is in the file."""
        return not self._unsaved

    def change(self, make: MakeOps, *, fsync: bool = True) -> list[Op]:
        """Change the chat and its file.

        Args:
            make: gets the chat with the changes of other processes, returns operations.
            fsync: make the change survive a power failure.

        Raises:
            KeyError: an operation refers to a missing message; those before it are kept.
            ValueError: an operation is impossible.
        """
        with self.lock, self._file.lock_for_writing() as fd:
            if not isinstance(fd, OSError):
                try:
                    self._catch_up(fd)
                except OSError as error:
                    fd = error
            if isinstance(fd, OSError):
                self._report(fd)
            done = list[Op]()
            try:
                for op in self._with_header(make):
                    self.chat.apply(op)
                    done.append(op)
            finally:
                self._unsaved += done
                if not isinstance(fd, OSError):
                    self._write(fd, fsync)
            return done

    def snapshot(self) -> Conversation:
        """Return a copy of the chat."""
        with self.lock:
            return self.chat.copy()

    def refresh(self) -> None:
        """Read what other processes wrote."""
        with (
            self.lock,
            contextlib.suppress(OSError),
            self._file.lock_for_reading() as fd,
        ):
            self._catch_up(fd)

    def flush(self) -> None:
        """Make everything that was written survive a power failure."""
        with contextlib.suppress(OSError):
            self._file.fsync()

    def lock_turn(self) -> None:
        """Keep others from starting an answer, until `unlock_turn`.

        Raises:
            ChatBusy: an answer is being written.
        """
        with self.lock:
            if self._is_locked:
                raise ChatBusy("an answer is being written in this chat", "Stop it first")
            if self._turn_fd < 0:
                with contextlib.suppress(OSError):  # without a folder nobody else has this chat
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
        """End `lock_turn`; other processes stay out while unsaved messages have numbers."""
        with self.lock:
            self._is_locked = False
            if self._turn_fd >= 0 and self.is_saved:
                with contextlib.suppress(OSError):
                    if file_lock.is_same_file(self._turn_path, self._turn_fd):
                        self._turn_path.unlink()
                os.close(self._turn_fd)
                self._turn_fd = -1

    def close(self) -> None:
        """Write what is unsaved, and unlock the chat."""
        with self.lock:
            if self._unsaved:
                self.change(lambda _: ())
            self.unlock_turn()

    @property
    def _turn_path(self) -> Path:
        return self.path.with_suffix(".lock")

    def _with_header(self, make: MakeOps) -> Iterator[Op]:
        """Yield the operations; in a new file the header first."""
        if not self._state.last_op and not self._unsaved:
            yield {
                "op": "chat",
                "version": VERSION,
                "key": self.chat.key,
                "root": self.chat.root,
                "at_s": time.time(),
            }
        yield from make(self.chat)

    def _catch_up(self, fd: int) -> None:
        """Apply what others added to the file."""
        if not os.fstat(fd).st_size:
            if self._file.read_bytes:  # the chat was deleted elsewhere, and continues here
                self._unsaved, self._state.last_op = [self._whole()], 0
                self._file.reset()
            return
        lines, is_from_start = self._file.read_new(fd)
        if is_from_start:
            self._reset()
        before = self._state.damaged
        apply_lines(self.chat, lines, self._state, self.path)
        if self._state.damaged > before:
            self.note = f"{self._state.damaged} damaged lines of {self.path} were skipped"
        if is_from_start:
            for op in self._unsaved:
                self.chat.apply(op)

    def _reset(self) -> None:
        empty = Conversation(key=self.chat.key, root=self.chat.root)
        self._state = ReadState()
        for name in ("messages", "summaries", "shown", "edits", "title", "model"):
            setattr(self.chat, name, getattr(empty, name))

    def _whole(self) -> Op:
        return {"op": "whole", "version": VERSION, "chat": to_json(self.chat)}

    def _write(self, fd: int, fsync: bool) -> None:
        """Append what is unsaved."""
        if not self._unsaved:
            return
        first = self._state.last_op + 1
        lines = [encode(op, number) for number, op in enumerate(self._unsaved, first)]
        count, error = self._file.append(fd, lines, fsync=fsync)
        del self._unsaved[:count]
        self._state.last_op += count
        if error is not None:
            self._report(error)
        elif self._has_failed:
            self._has_failed = False
            if not self._is_locked:
                self.unlock_turn()

    def _report(self, error: OSError) -> None:
        if self._has_failed:
            return
        self._has_failed = True
        self._on_error(
            ChatUnsaved(
                f"the chat cannot be saved: {error.strerror or error} ({self.path})",
                "It is kept in memory, and saved with the next message once that works",
            )
        )

    def _compact(self) -> None:
        """Replace a file that is much longer than its state, unless it is in use."""
        size = self._file.read_bytes
        if self._state.damaged or size < COMPACT_BYTES:
            return
        if size < COMPACT_RATIO * len(encode(self._whole(), 1)):
            return
        try:
            self.lock_turn()
        except ChatBusy:
            return
        try:
            with self._file.lock_for_writing() as fd:
                if isinstance(fd, OSError) or self._turn_fd < 0:
                    return
                self._catch_up(fd)
                line = encode(self._whole(), self._state.last_op)
                self._file.replace(fd, line, keep_mtime=True)
        except OSError:
            pass  # it stays long
        finally:
            self.unlock_turn()


def read(path: Path) -> tuple[Conversation, ReadState]:
    """Return a chat from its file, without locking it.

    Raises:
        ChatFailed: it cannot be read, or a newer lcursor wrote it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    chat = Conversation(key=path.stem)
    return chat, apply_lines(chat, data.split(b"\n"), ReadState(), path)


def apply_lines(
    chat: Conversation, lines: Sequence[bytes], state: ReadState, path: Path
) -> ReadState:
    """Apply lines of a file to a chat, and update how far it was read.

    An operation that was written twice, because the first write seemed to fail, is applied once.

    Raises:
        ChatFailed: a newer lcursor wrote it.
    """
    for line in filter(None, lines):
        try:
            op = json.loads(line)
            number = int(op["n"])
            is_newer = op.get("version", 0) > VERSION
        except (ValueError, KeyError, TypeError):
            state.damaged += 1
            continue
        if number <= state.last_op:
            continue
        state.last_op = number
        if is_newer:
            raise ChatFailed(
                f"a newer lcursor wrote this chat ({path})", "Update lcursor, then restart Neovim"
            )
        try:
            chat.apply(op)
        except (ValueError, KeyError, TypeError):
            state.damaged += 1
            rescue_text(chat, op)
    return state


def encode(op: Op, number: int) -> bytes:
    """Return an operation as a line of a file."""
    return json.dumps({"n": number, **op}, separators=(",", ":")).encode() + b"\n"


def _unreadable(path: Path, error: OSError) -> ChatFailed:
    text = f"the chat cannot be read: {error.strerror or error} ({path})"
    return ChatFailed(text, "Check who may read it")
