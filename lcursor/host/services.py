"""The services of chat, edits and agents in the host, created with their first message.

Message handlers run on the event loop's thread and never block; an executor imports and creates
the services, and dispatches their messages in order. All share the models; while one of them is
busy, the index pauses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor.config import Config
from lcursor.errors import ConfigInvalid, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.host.indexing import Indexing
from lcursor.protocol import agent, chat, edit, mcp
from lcursor.reporting import Notify, report_error

if TYPE_CHECKING:
    from lcursor.agent.service import AgentService
    from lcursor.chat.service import ChatService
    from lcursor.context.codebase import Codebase
    from lcursor.context.items import Seen
    from lcursor.edit.service import EditService
    from lcursor.llm.pool import ModelPool
    from lcursor.mcp.client.servers import ProjectServers, Servers
    from lcursor.mcp.client.service import McpService
    from lcursor.mcp.client.texts import ProjectTexts

THREAD = "lcursor-services"
PAUSE_S = 1.0
"""Interval at which the index is paused again."""


class Services:
    """The chat, the edits and the agents of one Neovim.

    Args:
        notify: sends a message to Neovim, from any thread.
        index: the index for codebase searches.
    """

    def __init__(self, notify: Notify, index: Indexing) -> None:
        self._notify, self._index = notify, index
        self._settings = Config()
        self._pause = IndexPause(index)
        self._executor = SerialExecutor(
            THREAD,
            lambda error, number: report_error(
                notify, error, number, "closing chat, edits or agents failed"
            ),
        )
        self._lock = threading.RLock()
        self._chat: ChatService | None = None
        self._edit: EditService | None = None
        self._agent: AgentService | None = None
        self._mcp: McpService | None = None
        self._servers: Servers | None = None
        self._models: ModelPool | None = None

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the handler of each message."""
        services = {
            **dict.fromkeys(chat.TO_PYTHON, self._get_chat),
            **dict.fromkeys(edit.TO_PYTHON, self._get_edit),
            **dict.fromkeys(agent.TO_PYTHON, self._get_agent),
            **dict.fromkeys(mcp.TO_PYTHON, self._get_mcp),
        }
        return {name: partial(self._handle, get, name) for name, get in services.items()}

    def configure(self, settings: Config) -> None:
        """Apply settings; services with changed settings are closed."""
        old, self._settings = self._settings, settings
        is_same_chat = _chat_settings(old) == _chat_settings(settings)
        # The checks of edits run in the sandbox of agents.
        is_same_edit = (old.edit, old.agent) == (settings.edit, settings.agent)
        if old.mcp != settings.mcp:
            self._close_servers()
            self._executor.submit(partial(self._check_servers, settings))
        if not self._executor.is_used:
            return
        if not (is_same_chat and is_same_edit):
            self._executor.submit(self._close_edit if is_same_chat else self._close_all)

    def close(self) -> None:
        """Close the services, after the messages that came before."""
        self._executor.submit(self._close_all)
        self._executor.finish()

    def _handle(self, get: Callable[[], Any], name: str, params: Any) -> None:
        number, feature = params.get("id", 0), name.partition(".")[0]

        def call() -> None:
            try:
                get().handlers()[name](params)
            except Exception as error:  # noqa: BLE001 - the root of a request
                report_error(self._notify, error, number, f"the {feature} request failed")

        self._executor.submit(call, number)

    def _get_chat(self) -> ChatService:
        """Return the chat service. Thread: any."""
        from lcursor.chat.service import ChatService

        with self._lock:
            self._chat = self._chat or ChatService(
                self._settings.chat,
                self._notify,
                self._codebase,
                servers_of=self._texts_of,
                secrets=self._settings.privacy.exclude,
                models=self._get_models(),
                on_busy=partial(self._pause.set_busy, "chat"),
            )
            return self._chat

    def _get_edit(self) -> EditService:
        from lcursor.edit.service import EditService

        with self._lock:
            self._edit = self._edit or EditService(
                self._settings.edit,
                self._notify,
                self._get_models(),
                self._codebase,
                secrets=self._settings.privacy.exclude,
                agent=self._settings.agent,
                busy=partial(self._pause.set_busy, "edit"),
                chat_edited=lambda key, edits: self._get_chat().record_edits(key, edits),
                chat_seen=self._read_before,
                servers_of=self._texts_of,
                chat_root=self._chat_root,
            )
            return self._edit

    def _get_agent(self) -> AgentService:
        from lcursor.acp.client.agents import ForeignAgentsOf
        from lcursor.agent.assembly import Assembly
        from lcursor.agent.service import AgentService

        with self._lock:
            if self._agent is None:
                settings, secrets = self._settings, self._settings.privacy.exclude
                record, models = self._get_edit().record, self._get_models()
                foreign = ForeignAgentsOf(settings, models)
                self._agent = AgentService(
                    settings,
                    self._notify,
                    Assembly(settings, models, record, secrets, self._servers_of, foreign),
                    busy=partial(self._pause.set_busy, "agent"),
                )
            return self._agent

    def _get_mcp(self) -> McpService:
        from lcursor.mcp.client.service import McpService

        with self._lock:
            self._mcp = self._mcp or McpService(self._notify, self._get_servers)
            return self._mcp

    def _get_servers(self) -> Servers:
        """Return the servers of the settings. Thread: any."""
        from lcursor.mcp.client.servers import Servers

        with self._lock:
            self._servers = self._servers or Servers(
                self._settings.mcp, index_of=self._index.client_of
            )
            return self._servers

    def _check_servers(self, settings: Config) -> None:
        """Report what is wrong with the settings of servers."""
        from lcursor.mcp.client import policy

        for server in settings.mcp.servers:
            if problem := policy.problem(server):
                error = ConfigInvalid(problem, "See :help lcursor-mcp-servers")
                report_error(self._notify, error, 0, problem)

    def _servers_of(self, root: Path) -> ProjectServers | None:
        """Return the servers with tools for the agents of a project. Thread: any."""
        return self._get_servers().of(root) if self._settings.mcp.servers else None

    def _texts_of(self, root: Path) -> ProjectTexts | None:
        """Return the resources and prompts of servers for chats and edits. Thread: any."""
        if (servers := self._servers_of(root)) is None:
            return None
        from lcursor.mcp.client.texts import ProjectTexts

        return ProjectTexts(servers)

    def _get_models(self) -> ModelPool:
        from lcursor.llm.pool import ModelPool

        if self._models is None:
            settings = self._settings
            self._models = ModelPool(
                settings.chat, notify=self._log, completion=settings.completion.local_model
            )
        return self._models

    def _close_all(self) -> None:
        """Close all, in the order of `Dispatch.close`."""
        self._close_edit()  # first, because it may send accepted edits to the chat
        with self._lock:
            closing = self._chat, self._models
            self._chat = self._models = None
        for each in closing:
            if each is not None:
                each.close()
        self._close_servers()

    def _close_servers(self) -> None:
        with self._lock:
            closing, self._servers = self._servers, None
        if closing is not None:
            threading.Thread(target=closing.close, name="lcursor-mcp-end", daemon=True).start()

    def _close_agent(self) -> None:
        with self._lock:
            closing, self._agent = self._agent, None
        if closing is not None:
            closing.close()

    def _close_edit(self) -> None:
        self._close_agent()  # it records its changes as edits
        with self._lock:
            closing, self._edit = self._edit, None
        if closing is not None:
            closing.close()

    def _read_before(self, key: str, message: int) -> Sequence[Seen]:
        """Return the text in the prompt of a message, newest first. Thread: any."""
        try:
            return self._get_chat().read_before(key, message)
        except LcursorError:
            return ()

    def _chat_root(self, key: str) -> str:
        """Return the root of a chat's project; "" if there is no such chat. Thread: any."""
        try:
            return self._get_chat().root_of(key)
        except LcursorError:
            return ""

    def _codebase(self, root: Path) -> Codebase:
        """Return the search of a project: its index if it runs, else by words. Thread: any."""
        from lcursor.context.codebase import GrepSearch, IndexSearch

        plain = GrepSearch(root, self._settings.privacy.exclude)
        client = self._index.client_of(root)
        return plain if client is None else IndexSearch(client, plain)

    def _log(self, words: str) -> None:
        self._notify("log", {"level": "info", "message": words})


class IndexPause:
    """Pauses the index while any service is busy. Any thread."""

    def __init__(self, index: Indexing) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._busy = set[str]()
        self._end: threading.Event | None = None

    def set_busy(self, service: str, is_busy: bool) -> None:
        """Start or end the pause for a service."""
        with self._lock:
            self._busy = self._busy | {service} if is_busy else self._busy - {service}
            if self._busy and self._end is None:
                self._end = threading.Event()
                threading.Thread(
                    target=self._pause, args=(self._end,), name="lcursor-index-pause", daemon=True
                ).start()
            elif not self._busy and self._end is not None:
                self._end.set()
                self._end = None

    def _pause(self, end: threading.Event) -> None:
        while not end.is_set():
            self._index.typing()
            end.wait(PAUSE_S)


def _chat_settings(settings: Config) -> object:
    """Return the settings of the chat and of the models."""
    return settings.chat, settings.privacy.exclude, settings.completion.local_model
