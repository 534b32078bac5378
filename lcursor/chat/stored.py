"""A chat and its file, which always agree: each change is written as a line before it is seen.

Owns what the file says; `log_file.py` has the file, which several Neovims may add to. Who has an
answer written holds the chat's other lock until that has ended. A file that cannot be written is
told once; the chat goes on in memory, and all of it is written as soon as that works again. Any
thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lcursor.chat import archive
from lcursor.chat.conversation import VERSION, Conversation, Op, to_json
from lcursor.errors import ChatBusy, ChatFailed, ChatUnsaved, LcursorError
from lcursor.storage import file_lock
from lcursor.storage.log_file import LogFile

Make = Callable[[Conversation], Sequence[Op]]

COMPACT_BYTES = 1 << 18
"""A smaller file is not worth to be written anew."""
COMPACT_SHARE = 2
"""So many times its least size a file may have."""


class Stored:
    """A chat and its file.

    Args:
        path: of the file; it and its folder are made at the first change.
        chat: as it is, where it is new.
        complain: told, on the thread of a change, that the file cannot be written; once for each
            time that it begins.
    """

    def __init__(
        self,
        path: Path,
        chat: Conversation,
        complain: Callable[[LcursorError], None] = lambda _: None,
    ) -> None:
        self.path, self.chat = path, chat
        self.lock = threading.RLock()
        """Held by who reads the chat while others may change it."""
        self.note = ""
        """What could not be read."""
        self._complain = complain
        self._reading = archive.Reading()
        self._file = LogFile(path)
        self._unsaved: list[Op] = []
        self._is_lost = False
        self._turn: int | None = None
        self._is_held = False

    @classmethod
    def open(cls, path: Path, complain: Callable[[LcursorError], None] = lambda _: None) -> Stored:
        """Return a chat from its file.

        Raises:
            ChatFailed: it cannot be read.
        """
        stored = cls(path, Conversation(key=path.stem), complain)
        try:
            with stored._file.lock_for_reading() as fd:
                stored._catch_up(fd)
        except OSError as error:
            raise ChatFailed(
                f"the chat cannot be read: {error.strerror or error} ({path})",
                "See who may read it",
            ) from error
        stored._compact()
        return stored

    @property
    def is_saved(self) -> bool:
        """Whether all is in the file."""
        return not self._unsaved

    def change(self, make: Make, *, is_firm: bool = True) -> list[Op]:
        """Change the chat, and its file.

        Args:
            make: given the chat as it is, also by what others did, returns operations.
            is_firm: have it survive also when the power fails; else only when we are killed.

        Raises:
            KeyError: an operation speaks of a message that is not there; those before it stay.
            ValueError: it makes no sense.
        """
        with self.lock, self._file.lock_for_writing() as fd:
            if not isinstance(fd, OSError):
                try:
                    self._catch_up(fd)
                except OSError as error:
                    fd = error
            if isinstance(fd, OSError):
                self._lose(fd)
            done = list[Op]()
            try:
                for op in self._begun(make):
                    self.chat.apply(op)
                    done.append(op)
            finally:
                self._unsaved += done
                if not isinstance(fd, OSError):
                    self._write(fd, is_firm)
            return done

    def snapshot(self) -> Conversation:
        """Return the chat as it is now, for who takes longer than others would wait."""
        with self.lock:
            return self.chat.copy()

    def refresh(self) -> None:
        """Take in what other Neovims wrote."""
        with self.lock, contextlib.suppress(OSError), self._file.lock_for_reading() as fd:
            self._catch_up(fd)

    def firm(self) -> None:
        """Have all that was written survive also when the power fails."""
        with contextlib.suppress(OSError):
            self._file.fsync()

    def hold(self) -> None:
        """Keep others from having an answer written, until `let_go`.

        Raises:
            ChatBusy: one is being written.
        """
        with self.lock:
            if self._is_held:
                raise ChatBusy("an answer is being written in this chat", "Stop it first")
            if self._turn is None:
                try:
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._turn = file_lock.try_lock(self._turn_path)
                except OSError:
                    pass  # no such folder: then nobody else has this chat either
                else:
                    if self._turn is None:
                        raise ChatBusy(
                            "another Neovim has an answer written in this chat",
                            "Wait until it has ended, or begin another chat with :LCChat!",
                        )
            self._is_held = True

    def is_written(self) -> bool:
        """Return whether somebody, here or elsewhere, has an answer written."""
        try:
            self.hold()
        except ChatBusy:
            return True
        self.let_go()
        return False

    def let_go(self) -> None:
        """End `hold`; who has unsaved messages goes on holding it, as their numbers are taken."""
        with self.lock:
            self._is_held = False
            if self._turn is not None and self.is_saved:
                with contextlib.suppress(OSError):
                    if file_lock.is_same_file(self._turn_path, self._turn):
                        self._turn_path.unlink()
                os.close(self._turn)
                self._turn = None

    def close(self) -> None:
        """Write what waits, and let go."""
        with self.lock:
            if self._unsaved:
                self.change(lambda _: ())
            self.let_go()

    @property
    def _turn_path(self) -> Path:
        return self.path.with_suffix(".lock")

    def _begun(self, make: Make) -> Iterator[Op]:
        """Yield the operations, before the first of all the one that begins a file."""
        if not self._reading.seen and not self._unsaved:
            yield {
                "op": "chat",
                "version": VERSION,
                "key": self.chat.key,
                "root": self.chat.root,
                "at_s": time.time(),
            }
        yield from make(self.chat)

    def _catch_up(self, fd: int) -> None:
        """Take in what is in the file and not in the chat."""
        if not os.fstat(fd).st_size:
            if self._file.read_bytes:  # someone deleted the chat, and here it goes on
                self._unsaved, self._reading.seen = [self._whole()], 0
                self._file.reset()
            return
        lines, is_fresh = self._file.read_new(fd)
        if is_fresh:  # it is read first, or someone wrote it anew
            self._forget()
        before = self._reading.damaged
        archive.take(self.chat, lines, self._reading, self.path)
        if self._reading.damaged > before:
            self.note = (
                f"{self._reading.damaged} damaged lines of the chat's file were left out "
                f"({self.path})"
            )
        if is_fresh:
            for op in self._unsaved:
                self.chat.apply(op)

    def _forget(self) -> None:
        """Forget what was read."""
        fresh = Conversation(key=self.chat.key, root=self.chat.root)
        self._reading = archive.Reading()
        for name in ("said", "summaries", "shown", "edits", "title", "model"):
            setattr(self.chat, name, getattr(fresh, name))

    def _whole(self) -> Op:
        return {"op": "whole", "version": VERSION, "chat": to_json(self.chat)}

    def _write(self, fd: int, is_firm: bool) -> None:
        """Add to the file what is not in it."""
        if not self._unsaved:
            return
        first = self._reading.seen + 1
        lines = [archive.line_of(op, n) for n, op in enumerate(self._unsaved, first)]
        count, error = self._file.append(fd, lines, fsync=is_firm)
        del self._unsaved[:count]
        self._reading.seen += count
        if error is not None:
            self._lose(error)
            return
        if self._is_lost:
            self._is_lost = False
            if not self._is_held:
                self.let_go()

    def _lose(self, error: OSError) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._complain(
            ChatUnsaved(
                f"the chat cannot be saved: {error.strerror or error} ({self.path})",
                "It goes on in memory, and is saved with the next message once there is room",
            )
        )

    def _compact(self) -> None:
        """Write the file anew where it is much longer than it need be, and nobody has it."""
        size = self._file.read_bytes
        if self._reading.damaged or size < COMPACT_BYTES:
            return
        if size < COMPACT_SHARE * len(archive.line_of(self._whole(), 1)):
            return
        try:
            self.hold()
        except ChatBusy:
            return
        try:
            with self._file.lock_for_writing() as fd:
                if isinstance(fd, OSError) or self._turn is None:
                    return
                self._catch_up(fd)
                whole = archive.line_of(self._whole(), self._reading.seen)
                self._file.replace(fd, whole, keep_mtime=True)
        except OSError:
            pass  # it stays long
        finally:
            self.let_go()
