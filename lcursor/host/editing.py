"""The edits' messages on their way to the edit service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lcursor import protocol_edit
from lcursor.config import EditConfig
from lcursor.host.brains import Brains
from lcursor.host.door import Door
from lcursor.host.indexing import Indexing
from lcursor.reporting import Notify

if TYPE_CHECKING:
    from lcursor.context.items import Seen
    from lcursor.edit.service import EditService
    from lcursor.llm.pool import ModelPool

Edited = Callable[[str, Sequence[Mapping[str, Any]]], None]
Sees = Callable[[str, int], "Sequence[Seen]"]


class Editing(Door[EditConfig, "EditService"]):
    """The edits' part of the dispatch; see `Door`.

    Args:
        send: sends a message to Neovim, from any thread.
        index: is asked about the codebase, where it runs, and rests while an edit works.
        brains: lends the models.
        chat_edited: told which changes out of a chat were taken.
        chat_seen: asked what a model had read when it wrote a message of a chat.
    """

    LANE = "lcursor-editing"
    MESSAGES = protocol_edit.TO_PYTHON
    OFF = ("edits are switched off", "Set edit.enabled to true")
    FAILED = "the edit could not be done"

    def __init__(
        self,
        send: Notify,
        index: Indexing,
        brains: Brains,
        chat_edited: Edited = lambda _chat, _edits: None,
        chat_seen: Sees = lambda _chat, _message: (),
    ) -> None:
        super().__init__(EditConfig(), send, index, brains)
        self._chat_edited, self._chat_seen = chat_edited, chat_seen

    def _make(self, models: ModelPool) -> EditService:
        from lcursor.edit.service import EditService

        return EditService(
            self._config,
            self._send,
            models,
            self._knows,
            secrets=self._secrets,
            busy=self._beside.busy,
            chat_edited=self._chat_edited,
            chat_seen=self._chat_seen,
        )
