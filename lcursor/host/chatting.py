"""The chat's messages on their way to the chat slot, which is made when the first of them comes.

Handlers run on the loop's thread and return at once; a lane imports the slot, makes it and hands
it the messages in their order. While a turn runs the index rests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import protocol_chat
from lcursor.config import ChatConfig
from lcursor.errors import ConfigInvalid, LcursorError
from lcursor.host.beside import Beside
from lcursor.host.brains import Brains
from lcursor.host.indexing import Indexing
from lcursor.host.project import Send
from lcursor.lane import Lane

if TYPE_CHECKING:
    from lcursor.chat.slot import ChatSlot
    from lcursor.context.codebase import Codebase
    from lcursor.llm.reach import Models

CLOSE_S = 1.0


class Chatting:
    """The chat's part of the dispatch.

    Args:
        send: sends a message to Neovim, from any thread.
        index: is asked about the codebase, where it runs, and rests while a turn does.
        brains: lends the models; None for models of its own.
    """

    def __init__(self, send: Send, index: Indexing, brains: Brains | None = None) -> None:
        self._send, self._beside = send, Beside(index)
        self._brains = brains or Brains(send)
        self._models: Models | None = None
        self._config = ChatConfig()
        self._secrets: tuple[str, ...] = ()
        self._completion = ""
        self._lane = Lane("lcursor-chatting", self._failed)
        self._slot: ChatSlot | None = None

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return what answers each message of the chat."""
        return {name: partial(self._take, name) for name in protocol_chat.TO_PYTHON}

    def configure(self, config: ChatConfig, secrets: Sequence[str], completion: str) -> None:
        """Take settings; where they differ, turns that run are stopped.

        Args:
            config: of the chat slot.
            secrets: globs of files that are never read.
            completion: the completion model in this process, whose memory stays free; "" for none.
        """
        if (config, tuple(secrets), completion) != (self._config, self._secrets, self._completion):
            self._config, self._secrets = config, tuple(secrets)
            self._completion = completion
            self._brains.configure(config, completion)
            if self._lane.is_started:
                self._lane.put(self._leave)

    def close(self) -> None:
        """Stop what runs, and keep what was said; waits no longer than a moment."""
        if self._lane.is_started:
            done = threading.Event()
            self._lane.put(self._leave)
            self._lane.put(done.set)
            done.wait(CLOSE_S)

    def _take(self, name: str, params: Any) -> None:
        self._lane.put(partial(self._hand, name, params), params["id"])

    def edited(self, chat: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Write into a chat which of its changes were taken. Thread: any."""
        self._lane.put(lambda: self._made().edited(chat, edits))

    def _hand(self, name: str, params: Any) -> None:
        """Thread: the lane's."""
        self._made().handlers()[name](params)

    def _made(self) -> ChatSlot:
        """Return the slot. Thread: the lane's."""
        if not self._config.enabled:
            raise ConfigInvalid("the chat is switched off", "Set chat.enabled to true")
        if self._slot is None:
            from lcursor.chat.slot import ChatSlot

            self._models = self._brains.borrow()
            self._slot = ChatSlot(
                self._config,
                self._send,
                self._knows,
                secrets=self._secrets,
                models=self._models,
                busy=self._beside.busy,
            )
        return self._slot

    def _leave(self) -> None:
        """Thread: the lane's."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None
        if self._models is not None:
            self._brains.give_back(self._models)
            self._models = None

    def _knows(self, root: Path) -> Codebase:
        """Thread: a turn's."""
        return self._beside.knows(root, self._secrets)

    def _failed(self, error: Exception, number: int) -> None:
        """Thread: the lane's."""
        import traceback

        if not isinstance(error, LcursorError):
            words = "".join(traceback.format_exception(error))
            self._send("log", {"level": "error", "message": words})
            error = LcursorError("the chat could not do that", "See :LCursor log")
        self._send(
            "error",
            {
                "id": number,
                "code": error.code,
                "message": error.message,
                "hint": error.hint,
                "level": error.level,
            },
        )
