"""The chat and edit services in the host: created with their first message, on their own thread.

Message handlers run on the event loop's thread and return at once. Each service has a thread that
imports it, creates it and passes on its messages in order. Both services share the models; while
one of them is busy, the index pauses.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from lcursor import protocol
from lcursor.config import ChatConfig, EditConfig
from lcursor.errors import ConfigInvalid, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.host.indexing import Indexing
from lcursor.reporting import Notify, report_error

if TYPE_CHECKING:
    from lcursor.chat.service import ChatService
    from lcursor.context.codebase import Codebase
    from lcursor.context.items import Seen
    from lcursor.edit.service import EditService
    from lcursor.llm.pool import ModelPool

CLOSE_S = 1.0
PAUSE_S = 1.0
"""How often the index is paused again."""
READ_S = 5.0
"""Time for the chat service to load, and to read a chat from its file."""

ConfigT = TypeVar("ConfigT", ChatConfig, EditConfig)
ServiceT = TypeVar("ServiceT", "ChatService", "EditService")


class SharedModels:
    """The model pool of the current settings, for all services. Any thread.

    After a change of the settings, a service keeps its old pool until it releases it; the last
    release closes a pool.
    """

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._config = ChatConfig()
        self._completion = ""
        self._lock = threading.Lock()
        self._current: ModelPool | None = None
        self._users: list[ModelPool] = []

    def configure(self, config: ChatConfig, completion: str) -> None:
        """Set the settings, and the completion model whose memory must stay free; "" for none."""
        with self._lock:
            if (config, completion) != (self._config, self._completion):
                self._config, self._completion, self._current = config, completion, None

    def acquire(self) -> ModelPool:
        """Return the pool of the current settings."""
        from lcursor.llm.pool import ModelPool

        with self._lock:
            if self._current is None:
                self._current = ModelPool(
                    self._config, notify=self._log, completion=self._completion
                )
            self._users.append(self._current)
            return self._current

    def release(self, models: ModelPool) -> None:
        """Stop using a pool."""
        with self._lock:
            self._users.remove(models)
            is_last = models not in self._users
            if is_last and self._current is models:
                self._current = None
        if is_last:
            models.close()

    def _log(self, words: str) -> None:
        self._notify("log", {"level": "info", "message": words})


class IndexPause:
    """Makes the index pause while a service is busy. Any thread."""

    def __init__(self, index: Indexing) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._end: threading.Event | None = None

    def set_busy(self, is_busy: bool) -> None:
        """Start or end the pause."""
        with self._lock:
            if is_busy and self._end is None:
                self._end = threading.Event()
                threading.Thread(
                    target=self._pause, args=(self._end,), name="lcursor-index-pause", daemon=True
                ).start()
            elif not is_busy and self._end is not None:
                self._end.set()
                self._end = None

    def _pause(self, end: threading.Event) -> None:
        while not end.is_set():
            self._index.typing()
            end.wait(PAUSE_S)


class LazyService(ABC, Generic[ConfigT, ServiceT]):
    """A service that is created with its first message.

    Args:
        config: until `configure` is called.
        notify: sends a message to Neovim, from any thread.
        index: for questions about the codebase.
        models: shared with other services.
    """

    THREAD: ClassVar[str]
    """Name of the service's thread."""
    MESSAGES: ClassVar[Iterable[str]]
    DISABLED: ClassVar[tuple[str, str]]
    """Message and hint if the settings disable the service."""
    FAILED: ClassVar[str]
    """Message for an unexpected error."""

    def __init__(
        self, config: ConfigT, notify: Notify, index: Indexing, models: SharedModels
    ) -> None:
        self._config: ConfigT = config
        self._notify, self._index, self._shared = notify, index, models
        self._pause = IndexPause(index)
        self._secrets: tuple[str, ...] = ()
        self._dependencies: object = None
        self._executor = SerialExecutor(
            self.THREAD, lambda error, number: report_error(notify, error, number, self.FAILED)
        )
        self._service: ServiceT | None = None
        self._models: ModelPool | None = None

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the handler of each message."""
        return {name: partial(self._handle, name) for name in self.MESSAGES}

    def configure(self, config: ConfigT, secrets: Sequence[str], dependencies: object) -> None:
        """Set the settings; if they differ, the running service is closed.

        Args:
            config: of the service.
            secrets: globs of files that are never read.
            dependencies: all other settings of its models, see `SharedModels`.
        """
        settings = (config, tuple(secrets), dependencies)
        if settings != (self._config, self._secrets, self._dependencies):
            self._config, self._secrets, self._dependencies = settings
            if self._executor.is_started:
                self._executor.submit(self._close_service)

    def close(self) -> None:
        """Close the service; waits only for a moment."""
        if self._executor.is_started:
            done = threading.Event()
            self._executor.submit(self._close_service)
            self._executor.submit(done.set)
            done.wait(CLOSE_S)

    @abstractmethod
    def _create(self, models: ModelPool) -> ServiceT:
        """Import and create the service. Thread: the service's."""

    def _handle(self, name: str, params: Any) -> None:
        def job() -> None:
            self._get().handlers()[name](params)

        self._executor.submit(job, params.get("id", 0))

    def _get(self) -> ServiceT:
        """Return the service. Thread: the service's."""
        if not self._config.enabled:
            raise ConfigInvalid(*self.DISABLED)
        if self._service is None:
            self._models = self._shared.acquire()
            self._service = self._create(self._models)
        return self._service

    def _close_service(self) -> None:
        if self._service is not None:
            self._service.close()
            self._service = None
        if self._models is not None:
            self._shared.release(self._models)
            self._models = None

    def _codebase(self, root: Path) -> Codebase:
        """Return the search of a project: by its index if that runs, else by words. Thread: any."""
        from lcursor.context.codebase import GrepSearch, IndexSearch

        plain = GrepSearch(root, self._secrets)
        client = self._index.client_of(root)
        return plain if client is None else IndexSearch(client, plain)


class LazyChat(LazyService[ChatConfig, "ChatService"]):
    """The chat service."""

    THREAD = "lcursor-chat-service"
    MESSAGES = protocol.chat.TO_PYTHON
    DISABLED = ("the chat is switched off", "Set chat.enabled to true")
    FAILED = "the chat could not do that"

    def __init__(self, notify: Notify, index: Indexing, models: SharedModels) -> None:
        super().__init__(ChatConfig(), notify, index, models)

    def record_edits(self, chat: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Store which edits from a chat were accepted. Thread: any."""
        self._executor.submit(lambda: self._get().record_edits(chat, edits))

    def read_before(self, chat: str, message: int) -> Sequence[Seen]:
        """Return what the model had read before it wrote a message, newest first.

        Returns nothing if the chat cannot be read in time. Blocks; thread: any but the service's.
        """
        found: queue.SimpleQueue[Sequence[Seen]] = queue.SimpleQueue()

        def job() -> None:
            try:
                found.put(self._get().read_before(chat, message))
            except LcursorError:
                found.put(())

        self._executor.submit(job)
        try:
            return found.get(timeout=READ_S)
        except queue.Empty:
            return ()

    def _create(self, models: ModelPool) -> ChatService:
        from lcursor.chat.service import ChatService

        return ChatService(
            self._config,
            self._notify,
            self._codebase,
            secrets=self._secrets,
            models=models,
            on_busy=self._pause.set_busy,
        )


class LazyEdit(LazyService[EditConfig, "EditService"]):
    """The edit service; it reads chats whose code blocks it applies."""

    THREAD = "lcursor-edit-service"
    MESSAGES = protocol.edit.TO_PYTHON
    DISABLED = ("edits are switched off", "Set edit.enabled to true")
    FAILED = "the edit could not be done"

    def __init__(
        self, notify: Notify, index: Indexing, models: SharedModels, chat: LazyChat
    ) -> None:
        super().__init__(EditConfig(), notify, index, models)
        self._chat = chat

    def _create(self, models: ModelPool) -> EditService:
        from lcursor.edit.service import EditService

        return EditService(
            self._config,
            self._notify,
            models,
            self._codebase,
            secrets=self._secrets,
            busy=self._pause.set_busy,
            chat_edited=self._chat.record_edits,
            chat_seen=self._chat.read_before,
        )
