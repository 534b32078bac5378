"""Save the local server's KV cache of a conversation to disk, so that it goes on without reading.

A state is saved after some idle time, because the server does not respond while it saves. It is
restored if the server restarted or unloaded its model since the last answer. Does nothing with
servers that cannot save. Only the last conversation is saved, so chats and agents share this
object, in which at most one save is scheduled. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from lcursor.errors import LcursorError
from lcursor.llm import slots
from lcursor.llm.connection import Connection

IDLE_S = 20.0
MIN_NEW_TOKENS = 512
"""Minimum of new tokens before another save: a state can have gigabytes."""
MIN_FREE_BYTES = 2 << 30
"""Minimum free space on the disk after a save."""


def file_name(key: str, branch: int, model: str) -> str:
    """Return the name of a saved state.

    Args:
        key: of a chat or a run.
        branch: the part of a chat; 0 for the first one.
    """
    digest = hashlib.sha256(f"{key}\n{branch}\n{model}".encode()).hexdigest()
    return f"{_prefix(key)}-{digest[:16]}.kv"


class SlotStates:
    """Saves and restores the states of conversations.

    Args:
        path: returns the path of a state by its name, and the folder for "".
        idle_s: time without a request before a state is saved.
        is_asleep: queries whether a server has unloaded its model.
        awake_s: time after a request in which it cannot have done so.
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
        self._is_asleep, self._awake_s, self._new_timer = is_asleep, awake_s, timer
        self._used_s: dict[str, float] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._erased: set[str] = set()
        self._saved: dict[str, int] = {}

    def restore(self, connection: Connection, names: Iterable[str], server: str) -> bool:
        """Restore the first state that exists if the server does not have it in memory.

        Args:
            names: results of `file_name`, the best first.
            server: `Connection.server` of the last answer; "" if there is none.
        """
        self.cancel_save()
        if not connection.served.can_save_slots or not server:
            return False
        if server == connection.server and self._is_in_memory(connection):
            return False
        for name in names:
            if not self._path(name).is_file():
                continue
            if connection.client.restore_slot(name):
                return True
            slots.forget(self._path(name))  # the server may have crashed on it
            self._saved.pop(name, None)
            break
        return False

    def schedule_save(self, connection: Connection, name: str, read_tokens: int) -> None:
        """Save the state of a conversation later, unless another request comes first.

        Args:
            name: a result of `file_name`.
            read_tokens: length of the prompt and its answer.
        """
        if not connection.served.can_save_slots:
            return
        self._used_s[connection.server] = time.monotonic()
        with self._lock:
            if 0 <= read_tokens - self._saved.get(name, -MIN_NEW_TOKENS) < MIN_NEW_TOKENS:
                return
            self._cancel()

            def save() -> None:
                with self._lock:
                    if self._timer is not timer:
                        return  # canceled, or `close` saves
                    self._timer = None
                self._save(connection, name, read_tokens)

            timer = self._timer = self._new_timer(self._idle_s, save)
            timer.daemon = True
            timer.start()

    def cancel_save(self) -> None:
        """Cancel the scheduled save, because a request starts."""
        with self._lock:
            self._cancel()

    def erase(self, key: str) -> None:
        """Delete all states of a chat or a run."""
        prefix = _prefix(key)
        with self._lock:
            self._erased.add(prefix)
        self._erase(prefix)

    def _erase(self, prefix: str) -> None:
        for path in self._path("").glob(f"{prefix}-*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def close(self, wait_s: float) -> None:
        """Do the scheduled save now; the server finishes it even after a timeout."""
        with self._lock:
            timer = self._timer
            if timer is not None:
                timer.cancel()
        if timer is not None and wait_s > 0:
            saving = threading.Thread(target=timer.function, daemon=True)
            saving.start()
            saving.join(wait_s)

    def _is_in_memory(self, connection: Connection) -> bool:
        used_s = self._used_s.get(connection.server)
        is_recent = used_s is not None and time.monotonic() - used_s < self._awake_s
        return is_recent or not self._is_asleep(connection)

    def _save(self, connection: Connection, name: str, read_tokens: int) -> None:
        """Save a state. Thread: the timer's, or one of `close`."""
        with contextlib.suppress(LcursorError, OSError):
            folder = self._path("")
            has_space = shutil.disk_usage(folder).free >= MIN_FREE_BYTES
            if has_space and not connection.client.save_slot(slots.part(name)):
                slots.forget(self._path(slots.part(name)))  # it may be incomplete
            elif has_space:
                slots.finish(self._path(name))
                self._saved[name] = read_tokens
                slots.forget_old(folder)
        prefix = name.partition("-")[0]
        with self._lock:
            is_erased = prefix in self._erased
        if is_erased:
            self._erase(prefix)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _prefix(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:16]
