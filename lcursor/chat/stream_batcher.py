"""Collect the pieces of an answer for a moment, before they are shown and stored.

Uses one thread per answer. The first piece is sent at once; later ones every few milliseconds, as
fast as an eye can follow, in far fewer messages than there are tokens. The chat's file gets them
four times a second, so a crash loses no more than that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SEND_S = 0.025
STORE_S = 0.25

Sink = Callable[[str, str], None]
"""Gets text and reasoning."""


class StreamBatcher:
    """Collects the pieces of one answer.

    Args:
        send: shows them to the user.
        store: writes them to the chat's file.
    """

    def __init__(self, send: Sink, store: Sink) -> None:
        self._send, self._store = send, store
        self._wake = threading.Condition()
        self._unsent = ["", ""]
        self._unstored = ["", ""]
        self._is_closed = False
        self._is_pausing = False
        """New pieces do not wake the thread: that takes time from a server on this CPU."""
        self._thread: threading.Thread | None = None

    def add(self, text: str, reasoning: str = "") -> None:
        """Add a piece; returns at once."""
        with self._wake:
            self._unsent[0] += text
            self._unsent[1] += reasoning
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="lcursor-chat-stream", daemon=True
                )
                self._thread.start()
            if not self._is_pausing:
                self._wake.notify()

    def close(self) -> None:
        """Send and store the rest."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        self._flush(with_store=True)

    def _run(self) -> None:
        stored_s = time.monotonic()
        while not self._is_closed:
            with self._wake:
                wait_s = stored_s + STORE_S - time.monotonic() if any(self._unstored) else None
                self._wake.wait_for(lambda: any(self._unsent) or self._is_closed, wait_s)
            if self._is_closed:
                return
            is_due = time.monotonic() - stored_s >= STORE_S
            self._flush(with_store=is_due)
            if is_due:
                stored_s = time.monotonic()
            with self._wake:
                self._is_pausing = True
                self._wake.wait_for(lambda: self._is_closed, SEND_S)
                self._is_pausing = False

    def _flush(self, *, with_store: bool) -> None:
        with self._wake:
            new, self._unsent = self._unsent, ["", ""]
        if any(new):
            self._send(*new)
            self._unstored = [old + more for old, more in zip(self._unstored, new, strict=True)]
        if with_store and any(self._unstored):
            unstored, self._unstored = self._unstored, ["", ""]
            self._store(*unstored)
