"""The models that the chat slot and the edit slot share, by reference.

Made for who asks first, let go of by who leaves last: after a change of the settings the old ones
live until their last turn was stopped. Returns at once; any thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lcursor.config import ChatConfig
from lcursor.reporting import Notify

if TYPE_CHECKING:
    from lcursor.llm.pool import ModelPool


class Brains:
    """Lends models.

    Args:
        send: sends a message to Neovim, from any thread.
    """

    def __init__(self, send: Notify) -> None:
        self._send = send
        self._config = ChatConfig()
        self._completion = ""
        self._lock = threading.Lock()
        self._newest: ModelPool | None = None
        self._users: list[ModelPool] = []

    def configure(self, config: ChatConfig, completion: str) -> None:
        """Take settings; models that are lent stay as they are until they are given back.

        Args:
            config: of the chat slot.
            completion: the completion model in this process, whose memory stays free; "" for none.
        """
        with self._lock:
            if (config, completion) != (self._config, self._completion):
                self._config, self._completion, self._newest = config, completion, None

    def borrow(self) -> ModelPool:
        """Return the models of the settings as they are now."""
        from lcursor.llm.pool import ModelPool

        with self._lock:
            if self._newest is None:
                self._newest = ModelPool(self._config, tell=self._says, completion=self._completion)
            self._users.append(self._newest)
            return self._newest

    def give_back(self, models: ModelPool) -> None:
        """Use them no more; the last one who does closes them."""
        with self._lock:
            self._users.remove(models)
            is_last = models not in self._users
            if is_last and self._newest is models:
                self._newest = None
        if is_last:
            models.close()

    def _says(self, words: str) -> None:
        self._send("log", {"level": "info", "message": words})
