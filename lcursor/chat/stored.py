"""A chat and its file, which always agree: each change is written as a line before it is seen.

Owns the file. Several Neovims may have the same chat: who changes it locks the file for a moment,
reads what the others wrote meanwhile, then adds to it. Who has an answer written holds the chat's
other lock until that has ended. A file that cannot be written is told once; the chat goes on in
memory, and all of it is written as soon as that works again. Any thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lcursor import locked
from lcursor.chat import archive
from lcursor.chat.conversation import VERSION, Conversation, Op, to_json
from lcursor.errors import ChatBusy, ChatFailed, ChatUnsaved, LcursorError
from lcursor.index.lock import Lock

Make = Callable[[Conversation], Sequence[Op]]

COMPACT_BYTES = 1 << 18
"""A smaller file is not worth to be written anew."""
COMPACT_SHARE = 2
"""So many times its least size a file may have."""
HEAD_BYTES = 64
LOCK_S = 2.0
"""Longest wait for another Neovim that writes; then it has been stopped, and is not waited for."""


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
        self._at = 0
        """How much of the file is in the chat."""
        self._head = b""
        """How the file begins: one that was written anew begins with another number."""
        self._unsaved: list[Op] = []
        self._is_lost = False
        self._turn: Lock | None = None
        self._is_held = False

    @classmethod
    def open(cls, path: Path, complain: Callable[[LcursorError], None] = lambda _: None) -> Stored:
        """Return a chat from its file.

        Raises:
            ChatFailed: it cannot be read.
        """
        stored = cls(path, Conversation(key=path.stem), complain)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ChatFailed(
                f"the chat cannot be read: {error.strerror or error} ({path})",
                "See who may read it",
            ) from error
        try:
            with locked.held(fd, LOCK_S):
                stored._catch_up(fd)
        finally:
            os.close(fd)
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
        with self.lock, self._opened() as fd:
            if fd is not None:
                try:
                    self._catch_up(fd)
                except OSError as error:
                    self._lose(error)
                    fd = None
            done = list[Op]()
            try:
                for op in self._begun(make):
                    self.chat.apply(op)
                    done.append(op)
            finally:
                self._unsaved += done
                if fd is not None:
                    self._write(fd, is_firm)
            return done

    def snapshot(self) -> Conversation:
        """Return the chat as it is now, for who takes longer than others would wait."""
        with self.lock:
            return self.chat.copy()

    def refresh(self) -> None:
        """Take in what other Neovims wrote."""
        with self.lock, contextlib.suppress(OSError):
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with locked.held(fd, LOCK_S):
                    self._catch_up(fd)
            finally:
                os.close(fd)

    def firm(self) -> None:
        """Have all that was written survive also when the power fails."""
        with contextlib.suppress(OSError):
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

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
                    self._turn = Lock.take(self._turn_path)
                except OSError:
                    pass  # no such folder: then nobody else has this chat either
                else:
                    if self._turn is None:
                        raise ChatBusy(
                            "another Neovim has an answer written in this chat",
                            "Wait until it has ended, or begin another chat with :LCChat!",
                        )
            self._is_held = True

    def let_go(self) -> None:
        """End `hold`; who has unsaved messages goes on holding it, as their numbers are taken."""
        with self.lock:
            self._is_held = False
            if self._turn is not None and self.is_saved:
                with contextlib.suppress(OSError):
                    if self._turn.is_mine():
                        self._turn_path.unlink()
                self._turn.release()
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

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Give the locked file, made where there is none; None where there can be none."""
        with contextlib.ExitStack() as stack:
            fd: int | None = None
            while fd is None:
                try:
                    fd = self._file()
                except OSError as error:
                    self._lose(error)
                    break
                with contextlib.ExitStack() as one:
                    one.callback(os.close, fd)
                    one.enter_context(locked.held(fd, LOCK_S))
                    if locked.is_same(self.path, fd):
                        stack.push(one.pop_all())
                    else:  # someone wrote it anew just now
                        fd = None
            yield fd

    def _file(self) -> int:
        if not self.path.parent.is_dir():
            for folder in (self.path.parent.parent, self.path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _catch_up(self, fd: int) -> None:
        """Take in what is in the file and not in the chat."""
        size = os.fstat(fd).st_size
        if not size:
            if self._at:  # someone deleted the chat, and here it goes on
                self._unsaved, self._at, self._reading.seen = [self._whole()], 0, 0
            return
        head = os.pread(fd, HEAD_BYTES, 0)
        is_other = bool(self._at) and (not head.startswith(self._head) or size < self._at)
        self._head = head
        if is_other:  # someone wrote it anew
            self._forget()
        data = _read(fd, self._at, size)
        self._at = size
        before = self._reading.damaged
        archive.take(self.chat, data.split(b"\n"), self._reading, self.path)
        if self._reading.damaged > before:
            self.note = (
                f"{self._reading.damaged} damaged lines of the chat's file were left out "
                f"({self.path})"
            )
        if is_other:
            for op in self._unsaved:
                self.chat.apply(op)

    def _forget(self) -> None:
        """Forget what was read."""
        fresh = Conversation(key=self.chat.key, root=self.chat.root)
        self._reading, self._at = archive.Reading(), 0
        for name in ("said", "summaries", "shown", "edits", "title", "model"):
            setattr(self.chat, name, getattr(fresh, name))

    def _whole(self) -> Op:
        return {"op": "whole", "version": VERSION, "chat": to_json(self.chat)}

    def _write(self, fd: int, is_firm: bool) -> None:
        """Add to the file what is not in it."""
        if not self._unsaved:
            return
        size, first = os.fstat(fd).st_size, self._reading.seen + 1
        data = b"".join(archive.line_of(op, n) for n, op in enumerate(self._unsaved, first))
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # a line that was cut off by whatever killed its writer
        try:
            _append(fd, data)
            if is_firm:
                os.fsync(fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            self._at = os.fstat(fd).st_size
            whole = _read(fd, size, self._at).lstrip(b"\n").count(b"\n")  # 0, if there is order
            del self._unsaved[:whole]
            self._reading.seen += whole
            self._lose(error)
            return
        self._reading.seen += len(self._unsaved)
        self._unsaved.clear()
        self._at, self._head = size + len(data), os.pread(fd, HEAD_BYTES, 0)
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
        if self._reading.damaged or self._at < COMPACT_BYTES:
            return
        if self._at < COMPACT_SHARE * len(archive.line_of(self._whole(), 1)):
            return
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            self.hold()
        except ChatBusy:
            return
        try:
            with self._opened() as fd:
                if fd is None or self._turn is None:
                    return
                self._catch_up(fd)
                found = os.fstat(fd)
                whole = archive.line_of(self._whole(), self._reading.seen)
                new = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    _append(new, whole)
                    os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
                    os.fsync(new)
                finally:
                    os.close(new)
                os.replace(part, self.path)
                self._head, self._at = whole[:HEAD_BYTES], len(whole)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
        finally:
            self.let_go()


def _read(fd: int, first: int, end: int) -> bytes:
    found = b""
    while first < end:
        data = os.pread(fd, end - first, first)
        if not data:
            break
        found += data
        first += len(data)
    return found


def _append(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
