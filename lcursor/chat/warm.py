"""What a server has read of a chat, kept on disk, so that a stored chat goes on where it was.

Owns when a state is saved, restored and erased. It is saved when a turn has ended and nothing came
after it for a while, since a server that saves answers nobody. It is restored when the server is
another run than the one that wrote the last answer, or slept since: else it still has what it read,
and more of it than the file. A server that keeps nothing is asked for nothing. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lcursor.chat.conversation import Conversation
from lcursor.errors import LcursorError
from lcursor.llm import slots
from lcursor.llm.pool import Connection

IDLE_S = 20.0
LEAST_TOKENS = 512
"""What is newer than the saved state, before it is written anew: it can have gigabytes."""
LEAST_FREE_BYTES = 2 << 30
"""With less room on the disk nothing is saved."""
SLOT = 0
"""Servers that keep states are ours and have one slot."""


def file_name(key: str, branch: int, model: str) -> str:
    """Return the name of a saved state.

    Args:
        key: of the chat.
        branch: number of the question that the branch began with.
        model: by its name.
    """
    words = hashlib.sha256(f"{key}\n{branch}\n{model}".encode()).hexdigest()
    return f"{_start(key)}-{words[:16]}.kv"


def branch_of(chat: Conversation, last: int) -> int:
    """Return what names a branch: the last message on it that others were said in the place of."""
    line = chat.line(last)
    children: dict[int, int] = {}
    for each in chat.said.values():
        children[each.parent] = children.get(each.parent, 0) + 1
    forks = (each.number for each in reversed(line) if children[each.parent] > 1)
    return next(forks, 0)


class Warmth:
    """Saves and restores states.

    Args:
        path: where a server of ours keeps a state of this name.
        idle_s: how long nothing has to happen before a state is saved.
        is_asleep: whether a server has let go of what it read; asked where that may be.
        awake_s: for so long after a turn none has.
        timer: calls a function after a time, unless it is canceled; as `threading.Timer`.
    """

    def __init__(
        self,
        path: Callable[[str], Path],
        idle_s: float = IDLE_S,
        is_asleep: Callable[[Connection], bool] = lambda _: False,
        awake_s: float = 0.0,
        timer: Callable[..., threading.Timer] = threading.Timer,
    ) -> None:
        self._path, self._idle_s = path, idle_s
        self._is_asleep, self._awake_s, self._later = is_asleep, awake_s, timer
        self._used_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._erased: set[str] = set()
        self._saved: dict[str, int] = {}

    def bring(self, reached: Connection, chat: Conversation, last: int) -> bool:
        """Restore what the server read of a chat, where it is not in its memory any more."""
        self.hush()
        written = [each.server for each in chat.line(last) if each.server]
        if not reached.served.can_keep or not written:
            return False
        if written[-1] == reached.server and self._has(reached):
            return False
        for branch in {branch_of(chat, last): None, 0: None}:
            name = file_name(chat.key, branch, reached.served.model)
            if not self._path(name).is_file():
                continue
            if reached.client.restore_slot(SLOT, name):
                return True
            slots.forget(self._path(name))  # the server may have ended of it
            self._saved.pop(name, None)
            break
        return False

    def keep_later(self, reached: Connection, chat: Conversation, last: int, read: int) -> None:
        """Save what the server has read of a chat, unless something comes before.

        Args:
            reached: the server.
            chat: as it is.
            last: the message up to which it was read.
            read: that many tokens.
        """
        if not reached.served.can_keep:
            return
        self._used_s[reached.server] = time.monotonic()
        name = file_name(chat.key, branch_of(chat, last), reached.served.model)
        with self._lock:
            if 0 <= read - self._saved.get(name, -LEAST_TOKENS) < LEAST_TOKENS:
                return
            self._cancel()

            def save() -> None:
                with self._lock:
                    if self._timer is not timer:
                        return  # it was canceled, or `close` saves instead
                    self._timer = None
                self._keep(reached, name, chat.key, read)

            timer = self._timer = self._later(self._idle_s, save)
            timer.daemon = True
            timer.start()

    def hush(self) -> None:
        """Save nothing now: a turn begins."""
        with self._lock:
            self._cancel()

    def erase(self, key: str) -> None:
        """Delete all states of a chat."""
        with self._lock:
            self._erased.add(key)
        for path in self._path("").glob(f"{_start(key)}-*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def close(self, wait_s: float) -> None:
        """Save now what would be saved later, if there is time for it.

        A server that was asked goes on with it when nobody waits any more.
        """
        with self._lock:
            timer = self._timer
            if timer is not None:
                timer.cancel()
        if timer is not None and wait_s > 0:
            saving = threading.Thread(target=timer.function, daemon=True)
            saving.start()
            saving.join(wait_s)

    def _has(self, reached: Connection) -> bool:
        """Return whether a server still has what it read."""
        used_s = self._used_s.get(reached.server)
        is_recent = used_s is not None and time.monotonic() - used_s < self._awake_s
        return is_recent or not self._is_asleep(reached)

    def _keep(self, reached: Connection, name: str, key: str, read: int) -> None:
        """Save a state. Thread: the timer's, or one of `close`."""
        with contextlib.suppress(LcursorError, OSError):
            folder = self._path("")
            is_roomy = shutil.disk_usage(folder).free >= LEAST_FREE_BYTES
            if is_roomy and not reached.client.save_slot(SLOT, slots.part(name)):
                slots.forget(self._path(slots.part(name)))  # it may be half of one
            elif is_roomy:
                slots.settle(self._path(name))
                self._saved[name] = read
                slots.forget_old(folder)
        with self._lock:
            is_erased = key in self._erased
        if is_erased:
            self.erase(key)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _start(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
