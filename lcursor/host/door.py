"""The way of messages to a slot that asks a model, which is made when the first of them comes.

Handlers run on the loop's thread and return at once; a lane imports the slot, makes it and hands
it the messages in their order. While the slot works the index rests.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from lcursor.errors import ConfigInvalid
from lcursor.executor import SerialExecutor
from lcursor.host.beside import Beside
from lcursor.host.brains import Brains
from lcursor.host.indexing import Indexing
from lcursor.reporting import Notify, report_error

if TYPE_CHECKING:
    from lcursor.context.codebase import Codebase
    from lcursor.llm.pool import ModelPool

CLOSE_S = 1.0


class Settings(Protocol):
    """What of a slot's settings is used here."""

    @property
    def enabled(self) -> bool:
        """Whether the slot may be made."""


class Slot(Protocol):
    """What of a slot is used here."""

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return what answers each message; nothing of it waits."""

    def close(self) -> None:
        """End what runs, and keep what there is to keep; waits no longer than a moment."""


SettingsT = TypeVar("SettingsT", bound=Settings)
SlotT = TypeVar("SlotT", bound=Slot)


class Door(ABC, Generic[SettingsT, SlotT]):
    """A slot's part of the dispatch.

    Args:
        config: until others are known.
        send: sends a message to Neovim, from any thread.
        index: is asked about the codebase, where it runs, and rests while the slot works.
        brains: lends the models.
    """

    LANE: ClassVar[str]
    """Name of the lane's thread."""
    MESSAGES: ClassVar[Iterable[str]]
    """Those that the slot answers."""
    OFF: ClassVar[tuple[str, str]]
    """What is said where the settings have it switched off, and what to do."""
    FAILED: ClassVar[str]
    """What is said where a message could not be handled and nobody foresaw why."""

    def __init__(self, config: SettingsT, send: Notify, index: Indexing, brains: Brains) -> None:
        self._config, self._send, self._brains = config, send, brains
        self._beside = Beside(index)
        self._secrets: tuple[str, ...] = ()
        self._others: object = None
        self._lane = SerialExecutor(
            self.LANE, lambda error, id_: report_error(send, error, id_, self.FAILED)
        )
        self._slot: SlotT | None = None
        self._models: ModelPool | None = None

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return what answers each message."""
        return {name: partial(self._take, name) for name in self.MESSAGES}

    def configure(self, config: SettingsT, secrets: Sequence[str], others: object) -> None:
        """Take settings; where they differ, what runs is stopped.

        Args:
            config: of the slot.
            secrets: globs of files that are never read.
            others: all else that the models depend on; `Brains` has been told.
        """
        settings = (config, tuple(secrets), others)
        if settings != (self._config, self._secrets, self._others):
            self._config, self._secrets, self._others = settings
            if self._lane.is_started:
                self._lane.submit(self._leave)

    def close(self) -> None:
        """Stop what runs, and keep what there is to keep; waits no longer than a moment."""
        if self._lane.is_started:
            done = threading.Event()
            self._lane.submit(self._leave)
            self._lane.submit(done.set)
            done.wait(CLOSE_S)

    @abstractmethod
    def _make(self, models: ModelPool) -> SlotT:
        """Import the slot and return one. Thread: the lane's."""

    def _take(self, name: str, params: Any) -> None:
        self._lane.submit(partial(self._hand, name, params), params.get("id", 0))

    def _hand(self, name: str, params: Any) -> None:
        """Thread: the lane's."""
        self._made().handlers()[name](params)

    def _made(self) -> SlotT:
        """Return the slot. Thread: the lane's."""
        if not self._config.enabled:
            raise ConfigInvalid(*self.OFF)
        if self._slot is None:
            self._models = self._brains.borrow()
            self._slot = self._make(self._models)
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
        """Return what knows a project. Thread: any."""
        return self._beside.knows(root, self._secrets)
