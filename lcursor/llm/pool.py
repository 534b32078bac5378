"""The models of chats and edits with their clients, connected on first use.

Shared by chats and edits. All calls block, on any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from lcursor.config import ChatConfig
from lcursor.errors import Cancelled, LcursorError, ServerDenied, ServerSlow, ServerUnreachable
from lcursor.llm import models
from lcursor.llm.client import ChatClient
from lcursor.llm.connection import Connection as Connection
from lcursor.llm.records import Served
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import ServerFolder, default_folder
from lcursor.llm.slot_states import IDLE_S, SlotStates

PROBE_S = 60.0
"""Time limit of a probe: the local server may first load its model from disk."""
AWAKE_SHARE = 0.9
"""Share of the idle time in which a local server has certainly not unloaded its model."""
T = TypeVar("T")
Report = Callable[[str], None]
"""Called with progress messages of the local server."""


class ModelPool:
    """The configured models.

    Args:
        folder: of the local server; None for the default.
        notify: called with messages of the local server outside of `connect`.
        completion: name or path of the completion model, for which memory is reserved.
        idle_s: time without a request before the local server's KV cache is saved.
    """

    def __init__(
        self,
        config: ChatConfig,
        folder: Path | None = None,
        notify: Report = lambda _: None,
        completion: str = "",
        idle_s: float = IDLE_S,
    ) -> None:
        self.config = config
        awake_s = config.idle_minutes * 60 * AWAKE_SHARE
        self.slot_states = SlotStates(self.slot_path, idle_s, self.is_asleep, awake_s)
        """The saved KV caches of chats and agents."""
        self._folder, self._notify, self._completion = folder, notify, completion
        self._known: dict[str, Connection] = {}
        self._servers: dict[str, LocalServer] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def claim_cache(self) -> None:
        """Prepare for a request that replaces the local server's KV cache."""
        self.slot_states.cancel_save()

    def names(self) -> list[str]:
        """Return the names of all models; the first is the default of new chats."""
        return models.targets(self.config)

    def check(self, name: str) -> None:
        """Check that there is a model of a name, without starting or querying a server.

        Raises:
            ModelError: there is none, or it is not a chat model.
        """
        running = ServerFolder(self.server_folder).running()
        models.check(self.config, name, running.model if running else "")

    def choose(self, wished: str, own: str) -> str:
        """Return the name of the model that answers a question.

        Args:
            wished: model for this question; "" for none.
            own: model of the chat; "" for the default.

        Raises:
            ConfigInvalid: there is no model at all.
        """
        return wished or own or models.default(self.config)

    def is_near(self, name: str) -> bool:
        """Return whether a model is on this machine, so that it gets texts as they are."""
        return models.is_near(self.config, name)

    def may_see(self, name: str, question: str) -> bool:
        """Return whether to attach the visible code to a question that does not mention it.

        It is only sent to models on this machine, and not with small talk.
        """
        return self.is_near(name) and not models.is_talk(question)

    def known(self, name: str) -> Connection | None:
        """Return a model that was used before, without starting anything."""
        with self._lock:
            return self._known.get(name)

    def connect(
        self, name: str, cancel: threading.Event, report: Report | None = None
    ) -> Connection:
        """Connect to a model, starting its server if necessary.

        Args:
            report: called with progress messages of the local server; None for the pool's `notify`.

        Raises:
            Cancelled: `cancel` was set.
            LcursorError: there is no such model, or no server for it.
        """
        report = report or self._notify
        found, run = self.known(name), ""
        if models.is_remote(self.config, name):
            if found is not None:
                return found
            target = models.target(self.config, name)
        else:
            target = self.server(_own(name)).ensure(cancel, report)
            run = self._run()
            if found is not None and (found.client.target, found.server) == (target, run):
                return found
        client = ChatClient(target)
        try:
            served = self._served(client, bool(run), cancel, report)
            if cancel.is_set():
                raise Cancelled("the turn was stopped")
            with self._lock:
                if self._is_closed:
                    raise Cancelled("the models are closed")
                old = self._known.get(name)
                connection = Connection(name, client, served, run)
                if old is not None and (old.client.target, old.server) == (target, run):
                    old, connection = connection, old  # another thread was faster
                self._known[name] = connection
        except BaseException:
            client.close()
            raise
        if old is not None:
            old.client.close()
        return connection

    def with_retry(
        self,
        connection: Connection,
        ask: Callable[[Connection], T],
        again: Callable[[], Connection],
    ) -> T:
        """Call a model; retry with `again` if the local server ended before it was called."""
        try:
            return ask(connection)
        except ServerDenied:
            self.invalidate(connection)
            raise
        except ServerUnreachable:
            self.invalidate(connection)
            if not connection.server:
                raise
        return ask(again())

    def invalidate(self, connection: Connection) -> None:
        """Reconnect next time, because the server did not answer correctly or denied the key."""
        with self._lock:
            found = self._known.get(connection.name)
            if found is None or found.client is not connection.client:
                return  # another thread has reconnected
            del self._known[connection.name]
            server = self._servers.get(_own(connection.name))
        if server is not None:
            server.recheck()
        found.client.close()

    def server(self, model: str) -> LocalServer:
        """Return the local server with a model; "" for the recommended one."""
        with self._lock:
            if model not in self._servers:
                config = replace(self.config, model=model)
                self._servers[model] = LocalServer(
                    config, self.server_folder, self._notify, completion=self._completion
                )
            return self._servers[model]

    def local_server(self) -> LocalServer:
        """Return the local server with the configured model."""
        return self.server(_own(models.local(self.config)))

    @property
    def server_folder(self) -> Path:
        """The folder of the local server."""
        return self._folder or default_folder()

    def _served(
        self, client: ChatClient, is_ours: bool, cancel: threading.Event, report: Report
    ) -> Served:
        """Probe a server; the local one may first have to load its model from disk."""
        ends_s = time.monotonic() + (PROBE_S if is_ours else 0.0)
        while True:
            try:
                return client.probe()
            except ServerSlow:
                if cancel.is_set() or time.monotonic() > ends_s:
                    raise
                report("it is slow to answer")

    def _run(self) -> str:
        """Return the identity of the local server's process."""
        state = ServerFolder(self.server_folder).last()
        return (state.run or str(state.pid)) if state else ""

    def is_asleep(self, connection: Connection) -> bool:
        """Return whether the local server has unloaded its model and KV cache."""
        if not connection.server:
            return False
        try:
            return self.local_server().status().state == "sleeping"
        except LcursorError:
            return False

    def slot_path(self, name: str) -> Path:
        """Return the path of a saved KV state of the local server."""
        return self.server_folder / "slots" / name

    def close(self) -> None:
        """Close all clients, and stop using the local server."""
        with self._lock:
            self._is_closed = True
            known, self._known = list(self._known.values()), {}
            servers = list(self._servers.values())
        for each in known:
            each.client.close()
        for server in servers:
            server.close()


def _own(name: str) -> str:
    """Return the model of the local server for a name."""
    return "" if name == models.LOCAL else name
