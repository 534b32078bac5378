"""The chat's messages on their way to the chat slot."""

from __future__ import annotations

import queue
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lcursor import protocol_chat
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.host.brains import Brains
from lcursor.host.door import Door
from lcursor.host.indexing import Indexing
from lcursor.reporting import Notify

if TYPE_CHECKING:
    from lcursor.chat.slot import ChatSlot
    from lcursor.context.items import Seen
    from lcursor.llm.pool import ModelPool

SEEN_S = 5.0
"""The lane imports the slot at first, and reads a chat from its file."""


class Chatting(Door[ChatConfig, "ChatSlot"]):
    """The chat's part of the dispatch; see `Door`."""

    LANE = "lcursor-chatting"
    MESSAGES = protocol_chat.TO_PYTHON
    OFF = ("the chat is switched off", "Set chat.enabled to true")
    FAILED = "the chat could not do that"

    def __init__(self, send: Notify, index: Indexing, brains: Brains) -> None:
        super().__init__(ChatConfig(), send, index, brains)

    def edited(self, chat: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Write into a chat which of its changes were taken. Thread: any."""
        self._lane.submit(lambda: self._made().edited(chat, edits))

    def seen(self, chat: str, message: int) -> Sequence[Seen]:
        """Return what the model had read when it wrote a message, the newest first.

        Nothing where the chat is not to be had, or does not answer in time. Waits; thread: any
        but the lane's.
        """
        found: queue.SimpleQueue[Sequence[Seen]] = queue.SimpleQueue()

        def job() -> None:
            try:
                found.put(self._made().seen(chat, message))
            except LcursorError:
                found.put(())

        self._lane.submit(job)
        try:
            return found.get(timeout=SEEN_S)
        except queue.Empty:
            return ()

    def _make(self, models: ModelPool) -> ChatSlot:
        from lcursor.chat.slot import ChatSlot

        return ChatSlot(
            self._config,
            self._send,
            self._knows,
            secrets=self._secrets,
            models=models,
            busy=self._beside.busy,
        )
