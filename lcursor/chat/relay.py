"""From the model's events to messages and to disk: pieces are gathered for a moment.

Owns a thread for each answer. The first piece goes out at once; then what has come is sent every
few milliseconds, which is as fast as an eye reads and far fewer messages than there are tokens.
What was said reaches the chat's file four times a second, so that a kill takes no more than that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SEND_S = 0.025
KEEP_S = 0.25

Say = Callable[[str, str], None]
"""Given text and reasoning."""


class Relay:
    """Gathers an answer's pieces.

    Args:
        send: shows them to the user.
        keep: writes them down.
    """

    def __init__(self, send: Say, keep: Say) -> None:
        self._send, self._keep = send, keep
        self._wake = threading.Condition()
        self._new = ["", ""]
        self._unkept = ["", ""]
        self._is_closed = False
        self._is_resting = False
        """What comes meanwhile wakes nobody: each waking takes time from a server on this CPU."""
        self._thread: threading.Thread | None = None

    def add(self, text: str, reasoning: str = "") -> None:
        """Take a piece; returns at once."""
        with self._wake:
            self._new[0] += text
            self._new[1] += reasoning
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="lcursor-chat-relay", daemon=True
                )
                self._thread.start()
            if not self._is_resting:
                self._wake.notify()

    def close(self) -> None:
        """Send and write down what is left; nothing comes after it."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        self._flush(is_last=True)

    def _run(self) -> None:
        kept_s = time.monotonic()
        while not self._is_closed:
            with self._wake:
                due_s = kept_s + KEEP_S - time.monotonic() if any(self._unkept) else None
                self._wake.wait_for(lambda: any(self._new) or self._is_closed, due_s)
            if self._is_closed:
                return
            is_due = time.monotonic() - kept_s >= KEEP_S
            self._flush(is_last=is_due)
            if is_due:
                kept_s = time.monotonic()
            with self._wake:
                self._is_resting = True
                self._wake.wait_for(lambda: self._is_closed, SEND_S)
                self._is_resting = False

    def _flush(self, *, is_last: bool) -> None:
        with self._wake:
            new, self._new = self._new, ["", ""]
        if any(new):
            self._send(*new)
            self._unkept = [old + more for old, more in zip(self._unkept, new, strict=True)]
        if is_last and any(self._unkept):
            unkept, self._unkept = self._unkept, ["", ""]
            self._keep(*unkept)
