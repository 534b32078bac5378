"""The chat's messages on their way to the chat slot, which is made when the first of them comes.

Handlers run on the loop's thread and return at once; a lane imports the slot, makes it and hands
it the messages in their order. While a turn runs the index rests: an answer that is waited for
goes before work that nobody waits for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import protocol_chat
from lcursor.config import ChatConfig
from lcursor.errors import ConfigInvalid, LcursorError
from lcursor.host.indexing import Indexing
from lcursor.host.project import Send
from lcursor.lane import Lane

if TYPE_CHECKING:
    from lcursor.chat.slot import ChatSlot
    from lcursor.context.codebase import Codebase

REST_S = 1.0
"""The index is told this often that it shall rest."""
CLOSE_S = 1.0


class Chatting:
    """The chat's part of the dispatch.

    Args:
        send: sends a message to Neovim, from any thread.
        index: is asked about the codebase, where it runs, and rests while a turn does.
    """

    def __init__(self, send: Send, index: Indexing) -> None:
        self._send, self._index = send, index
        self._config = ChatConfig()
        self._secrets: tuple[str, ...] = ()
        self._completion = ""
        self._lane = Lane("lcursor-chatting", self._failed)
        self._slot: ChatSlot | None = None
        self._is_busy = threading.Event()

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

    def _hand(self, name: str, params: Any) -> None:
        """Thread: the lane's."""
        if not self._config.enabled:
            raise ConfigInvalid("the chat is switched off", "Set chat.enabled to true")
        if self._slot is None:
            from lcursor.chat.slot import ChatSlot

            self._slot = ChatSlot(
                self._config,
                self._send,
                self._knows,
                secrets=self._secrets,
                completion=self._completion,
                busy=self._busy,
            )
        self._slot.handlers()[name](params)

    def _leave(self) -> None:
        """Thread: the lane's."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def _knows(self, root: Path) -> Codebase:
        """Thread: a turn's."""
        from lcursor.context.codebase import Grep
        from lcursor.context.indexed import Indexed

        plain = Grep(root, self._secrets)
        worker = self._index.worker_of(root)
        return plain if worker is None else Indexed(worker, plain)

    def _busy(self, is_busy: bool) -> None:
        """Thread: a turn's."""
        if not is_busy:
            self._is_busy.clear()
        elif not self._is_busy.is_set():
            self._is_busy.set()
            threading.Thread(target=self._rest, name="lcursor-chat-rest", daemon=True).start()

    def _rest(self) -> None:
        pause = threading.Event()
        while self._is_busy.is_set():
            self._index.typing()
            pause.wait(REST_S)

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
