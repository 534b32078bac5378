"""The edits' messages on their way to the edit slot, which is made when the first of them comes.

Handlers run on the loop's thread and return at once; a lane imports the slot, makes it and hands
it the messages in their order. While an edit works the index rests.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import protocol_edit
from lcursor.config import EditConfig
from lcursor.errors import ConfigInvalid, LcursorError
from lcursor.host.beside import Beside
from lcursor.host.brains import Brains
from lcursor.host.indexing import Indexing
from lcursor.host.project import Send
from lcursor.lane import Lane

if TYPE_CHECKING:
    from lcursor.context.codebase import Codebase
    from lcursor.edit.slot import EditSlot
    from lcursor.llm.reach import Models

CLOSE_S = 1.0
Edited = Callable[[str, Sequence[Mapping[str, Any]]], None]


class Editing:
    """The edits' part of the dispatch.

    Args:
        send: sends a message to Neovim, from any thread.
        index: is asked about the codebase, where it runs, and rests while an edit works.
        brains: lends the models.
        chat_edited: told which changes out of a chat were taken.
    """

    def __init__(
        self,
        send: Send,
        index: Indexing,
        brains: Brains,
        chat_edited: Edited = lambda _chat, _edits: None,
    ) -> None:
        self._send, self._brains, self._chat_edited = send, brains, chat_edited
        self._beside = Beside(index)
        self._config = EditConfig()
        self._others: object = None
        self._secrets: tuple[str, ...] = ()
        self._lane = Lane("lcursor-editing", self._failed)
        self._slot: EditSlot | None = None
        self._models: Models | None = None

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return what answers each message of edits."""
        return {name: partial(self._take, name) for name in protocol_edit.TO_PYTHON}

    def configure(self, config: EditConfig, secrets: Sequence[str], others: object) -> None:
        """Take settings; where they differ, edits that run are stopped.

        Args:
            config: of edits.
            secrets: globs of files that are never read.
            others: settings that the models depend on; `Brains` has been told them.
        """
        settings = (config, tuple(secrets), others)
        if settings != (self._config, self._secrets, self._others):
            self._config, self._secrets, self._others = settings
            if self._lane.is_started:
                self._lane.put(self._leave)

    def close(self) -> None:
        """Stop what runs, and keep what was decided; waits no longer than a moment."""
        if self._lane.is_started:
            done = threading.Event()
            self._lane.put(self._leave)
            self._lane.put(done.set)
            done.wait(CLOSE_S)

    def _take(self, name: str, params: Any) -> None:
        self._lane.put(partial(self._hand, name, params), params.get("id", 0))

    def _hand(self, name: str, params: Any) -> None:
        """Thread: the lane's."""
        if not self._config.enabled:
            raise ConfigInvalid("edits are switched off", "Set edit.enabled to true")
        if self._slot is None:
            from lcursor.edit.slot import EditSlot

            self._models = self._brains.borrow()
            self._slot = EditSlot(
                self._config,
                self._send,
                self._models,
                self._knows,
                secrets=self._secrets,
                busy=self._beside.busy,
                chat_edited=self._chat_edited,
            )
        self._slot.handlers()[name](params)

    def _leave(self) -> None:
        """Thread: the lane's."""
        if self._slot is not None:
            self._slot.close()
            self._slot = None
        if self._models is not None:
            self._brains.give_back(self._models)
            self._models = None

    def _knows(self, root: Path) -> Codebase:
        """Thread: an edit's."""
        return self._beside.knows(root, self._secrets)

    def _failed(self, error: Exception, number: int) -> None:
        """Thread: the lane's."""
        if not isinstance(error, LcursorError):
            words = "".join(traceback.format_exception(error))
            self._send("log", {"level": "error", "message": words})
            error = LcursorError("the edit could not be done", "See :LCursor log")
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
